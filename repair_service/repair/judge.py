"""The judgement of one head: rows in, diagnosis and patch out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from repair_service.checkpoint.compose import caller_updates
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.identifiers import successor, timestamp
from repair_service.checkpoint.rows import ThreadRows
from repair_service.checkpoint.transcripts import read_transcripts
from repair_service.errors import Unreadable
from repair_service.repair.arrival import arriving
from repair_service.repair.compose import Mending, compose_patch
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.findings import Findings, examine, faults_of
from repair_service.repair.fleet import Fleet
from repair_service.repair.graph import graph_of
from repair_service.repair.heads import ThreadHeads
from repair_service.repair.late import without_outdated
from repair_service.repair.lineage import one_step_channels
from repair_service.repair.namespaces import is_live, live_below, outer
from repair_service.repair.route import (
    Route,
    ToolStep,
    declared_route,
    learn_route,
    pulled_nodes,
    started_nodes,
    tool_steps,
)
from repair_service.repair.step import Step, judge_rest, judge_step
from repair_service.repair.stuck import faults_of_stuck, reason_of_stuck, stuck_tasks, unknown_nodes
from repair_service.repair.verdict import Policy, Resume, Verdict
from repair_service.repair.waits import declared_wait, open_question, still_active
from repair_service.transcript.fault import Finding
from repair_service.transcript.message import Transcript


def diagnose(
    thread: ThreadRows, namespace: str, policy: Policy, now: float, fleet: Fleet
) -> Diagnosis:
    """Judge the head of one namespace.

    Args:
        thread: The thread's rows; its heads include the namespace.
        namespace: The namespace to judge.
        policy: What the operator allows and declares.
        now: The present, seconds since 1970.
        fleet: What other threads show, asked only where this one does not show enough.

    Returns:
        The diagnosis, with a patch where the verdict is `repairable`.
    """
    return _Case(thread, policy, now, fleet).diagnose(namespace)


class _Case:
    """One thread while it is judged."""

    def __init__(self, thread: ThreadRows, policy: Policy, now: float, fleet: Fleet) -> None:
        self.thread = thread
        self.policy = policy
        self.now = now
        self.fleet = fleet
        self.heads = ThreadHeads(thread.heads)
        self.diagnoses: dict[str, Diagnosis] = {}
        stamps = (timestamp(rows.row.checkpoint_id) for rows in thread.heads.values())
        self.newest = max((stamp for stamp in stamps if stamp is not None), default=None)

    def diagnose(self, namespace: str) -> Diagnosis:
        """The diagnosis of a namespace; made once, though all that hang under it ask for it."""
        if namespace not in self.diagnoses:
            self.diagnoses[namespace] = self._diagnose(namespace)
        return self.diagnoses[namespace]

    def _diagnose(self, namespace: str) -> Diagnosis:
        row = self.thread.heads[namespace].row
        blank = Diagnosis(
            thread_id=row.thread_id,
            checkpoint_ns=namespace,
            checkpoint_id=row.checkpoint_id,
            verdict=Verdict.HEALTHY,
            reason="",
            idle_seconds=self._idle(),
        )
        if problem := self.heads.problem(namespace):
            return replace(blank, verdict=Verdict.UNREADABLE, reason=problem)
        head = self.heads[namespace]
        blank = replace(
            blank,
            pending=tuple(dict.fromkeys(task.node for task in head.tasks if task.node)),
            interrupts=sum(task.interrupted for task in head.tasks),
        )
        try:
            diagnosis = self._judge(head, blank)
        except Unreadable as unreadable:
            return replace(blank, verdict=Verdict.UNREADABLE, reason=str(unreadable))
        if diagnosis.patch is None:
            unmended = tuple(replace(fault, mend="none") for fault in diagnosis.faults)
            return replace(diagnosis, faults=unmended)
        return diagnosis

    def _judge(self, head: Head, blank: Diagnosis) -> Diagnosis:
        namespace = head.row.checkpoint_ns
        for name in outer(namespace):
            if problem := self.heads.problem(name):
                reason = f"the namespace above it cannot be read: {problem}"
                return replace(blank, verdict=Verdict.UNREADABLE, reason=reason)
        if not is_live(namespace, self.heads):
            return replace(blank, reason="its task is no longer pending at its parent")
        if stuck := stuck_tasks(head, self.policy.nodes):
            return replace(
                blank,
                verdict=Verdict.MANUAL,
                reason=reason_of_stuck(head, stuck),
                faults=faults_of_stuck(stuck),
            )
        ancestors = self.thread.ancestors.get(namespace, ())
        transcripts = {
            name: without_outdated(head, name, transcript, ancestors)
            for name, transcript in read_transcripts(
                head, ancestors, namespace in self.thread.pruned
            ).items()
        }
        found = {
            name: findings
            for name, transcript in transcripts.items()
            if (findings := self._examine(head, name, transcript))
        }
        diagnosis = replace(
            blank,
            channel=next(iter(found), None),
            faults=tuple(
                fault for name in found for fault in faults_of(name, transcripts[name], found[name])
            ),
        )
        if question := open_question(namespace, self.heads):
            return replace(diagnosis, verdict=Verdict.WAITING, reason=question)
        if not found:
            return diagnosis
        if overruled := self._call_above(namespace, diagnosis):
            return overruled
        return self._decide(head, transcripts, found, diagnosis)

    def _examine(self, head: Head, channel: str, transcript: Transcript) -> Findings | None:
        ancestors = self.thread.ancestors.get(head.row.checkpoint_ns, ())
        policy = self.policy
        return examine(head, channel, transcript, ancestors, policy.allow, policy.last)

    def _decide(
        self,
        head: Head,
        transcripts: Mapping[str, Transcript],
        found: Mapping[str, Findings],
        diagnosis: Diagnosis,
    ) -> Diagnosis:
        """The verdict on a live head with faults that nobody is being asked about."""
        ancestors = self.thread.ancestors.get(head.row.checkpoint_ns, ())
        if reason := declared_wait(head, ancestors, found.values(), self.policy, self.fleet):
            return replace(diagnosis, verdict=Verdict.WAITING, reason=reason)
        if reason := still_active(self.newest, self.policy, self.now):
            return replace(diagnosis, verdict=Verdict.ACTIVE, reason=reason)
        if reason := self._unmendable(head, found):
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=reason)
        history = [step for name in found for step in tool_steps(head, ancestors, name)]
        step = self._step(head, transcripts, found, history)
        if step.obstacle:
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=step.obstacle)
        resume, route = self._resume(head, found, step, history)
        if resume == "park" and step.beside:
            nodes = ", ".join(map(repr, started_nodes(head, step.beside))) or "what comes next"
            reason = (
                f"a branch beside the calls has finished and starts {nodes}, which a patch would "
                "drop: the tools' own way on is not known, or meets it; --route NODE names it"
            )
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=reason)
        channels = arriving(head, ancestors, route.channels) if route else {}
        if channels is None:
            nodes = ", ".join(map(repr, route.nodes)) if route else ""
            reason = (
                f"it goes on at {nodes}, and the rows do not tell whether one of them waits for "
                "the rest of the graph (a deferred node); --route NODE or --resume park"
            )
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=reason)
        route = replace(route, channels=channels) if route else None
        if route and (gone := sorted(unknown_nodes(head, route.nodes, self.policy.nodes))):
            reason = (
                f"it would go on at {gone[0]!r}, which is not among --nodes; --route NODE names "
                "where, --resume park lets it wait for a new message"
            )
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=reason)
        if resume is None:
            reason = f"no channel is known to start the node {self.policy.route!r} in this layout"
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=reason)
        return compose_patch(
            Mending(
                head, transcripts, found, step, resume, route, one_step_channels(head, ancestors)
            ),
            diagnosis,
            templates=self.policy.placeholders,
            above={
                name: self.heads[name].row.checkpoint_id for name in outer(diagnosis.checkpoint_ns)
            },
            now=self.now,
        )

    def _unmendable(self, head: Head, found: Mapping[str, Findings]) -> str | None:
        """Why no patch may be made of these faults, wherever the thread would go on."""
        left = [finding for findings in found.values() for finding in findings.left]
        if left:
            return _left_reason(left)
        if all(findings.early for findings in found.values()):
            return f"its faults stand before the last {self.policy.last} messages (--last)"
        if beside := sorted(set().union(*(findings.beside for findings in found.values()))):
            return (
                f"a call that a new input overtook wrote the channel {beside[0]!r} beside its "
                "result, and that was dropped: write both with update_state"
            )
        if updates := caller_updates(head):
            return (
                f"the caller's own update of {', '.join(sorted(updates))} is among the pending "
                "writes, and a new checkpoint would drop it; going on with invoke(None) takes it up"
            )
        if successor(head.row.checkpoint_id) is None:
            return (
                "its checkpoint id is no UUIDv6, so no id is certain to stand behind it and before "
                "a live run's"
            )
        return None

    def _call_above(self, namespace: str, diagnosis: Diagnosis) -> Diagnosis | None:
        """The verdict where a call above this namespace has no result: that call decides.

        Once the call above is answered, what hangs under it is dead with it.
        """
        for name in outer(namespace):
            above = self.diagnose(name)
            if above.verdict is Verdict.HEALTHY or not above.faults:
                continue
            if above.verdict is Verdict.REPAIRABLE and above.resume != "keep":
                reason = "the call above it is answered by a patch, and it is dead with it"
                return replace(diagnosis, verdict=Verdict.HEALTHY, reason=reason, faults=())
            if above.verdict is not Verdict.REPAIRABLE:
                reason = f"the namespace above it is {above.verdict.value}: {above.reason}"
                return replace(diagnosis, verdict=above.verdict, reason=reason)
        return None

    def _step(
        self,
        head: Head,
        transcripts: Mapping[str, Transcript],
        found: Mapping[str, Findings],
        history: Sequence[ToolStep],
    ) -> Step:
        """What becomes of the pending tasks."""
        called = {
            name: found[name].called if name in found else frozenset[str]() for name in transcripts
        }
        step = judge_rest(head, called)
        if any(called.values()) and any(task.node for task in head.tasks):
            ran = pulled_nodes(self.thread.ancestors.get(head.row.checkpoint_ns, ()))

            def tool_nodes() -> frozenset[str]:
                return self.policy.tool_nodes | self._fleets_tool_nodes(head)

            step = judge_step(head, called, history, ran, tool_nodes)
        below = live_below(head.row.checkpoint_ns, self.heads)
        if not step.consumed and not step.obstacle and below:
            return replace(
                step,
                obstacle=f"the sub-graph {below[0]!r} is in the middle of a pending task, "
                "and a new checkpoint above it would drop its work",
            )
        return step

    def _fleets_tool_nodes(self, head: Head) -> frozenset[str]:
        """The nodes that return tool results in other threads of what may be this graph."""
        graph = graph_of(head)
        steps = self.fleet.tool_steps()
        return frozenset(step.node for step in steps if step.node and graph.may_be(step.graph))

    def _resume(
        self, head: Head, found: Mapping[str, Findings], step: Step, history: Sequence[ToolStep]
    ) -> tuple[Resume | None, Route | None]:
        """Where the thread goes on: (None, None) where the declared node cannot be started."""
        if not step.consumed:
            return "keep", None
        if self.policy.resume == "park":
            return "park", None
        if self.policy.route is not None:
            route = declared_route(head, self.policy.route)
            if route is None:
                return None, None
            both = step.with_beside(head, route)
            return ("continue", both) if both else ("park", None)
        unfinished = any(task.node and not task.finished for task in head.tasks)
        route = step.sibling_route(head)
        if route is None or (unfinished and not route.channels):
            tools = frozenset(
                call.name
                for findings in found.values()
                for _, _, call in findings.step_calls
                if call.name
            )
            route = learn_route(head, tools, step.node, history, self.fleet.tool_steps)
        both = step.with_beside(head, route) if route and route.channels else None
        return ("continue", both) if both else ("park", None)

    def _idle(self) -> float | None:
        return None if self.newest is None else max(0.0, self.now - self.newest)


def _left_reason(left: Sequence[Finding]) -> str:
    """One sentence for the faults that no default mends."""
    kinds = sorted({finding.kind.value for finding in left})
    named = ", ".join(kinds)
    allowable = [kind for kind in kinds if kind in ALLOWABLE]
    if len(allowable) == len(kinds):
        switches = " ".join(f"--allow {kind}" for kind in kinds)
        return f"{named} is left to a person; {switches} mends it"
    return f"{named} is left to a person: no switch mends it"


ALLOWABLE = frozenset({"duplicate_result", "orphan_result", "bound_prefix"})
"""The fault kinds that the operator may allow to be mended."""
