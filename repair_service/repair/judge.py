"""The judgement of one head: rows in, diagnosis and patch out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from repair_service.checkpoint.compose import caller_updates, is_patch
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.identifiers import successor, timestamp
from repair_service.checkpoint.rows import HeadRows, ThreadRows
from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.transcripts import needs_history, read_transcripts
from repair_service.checkpoint.waiting import asked_in_a_call
from repair_service.errors import Unreadable
from repair_service.repair.arrival import arriving
from repair_service.repair.breakpoints import is_breakpoint, node_runs
from repair_service.repair.compose import Mending, compose_patch
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.findings import Findings, examine, faults_of
from repair_service.repair.fleet import Fleet
from repair_service.repair.graph import graph_of
from repair_service.repair.heads import ThreadHeads
from repair_service.repair.late import without_outdated
from repair_service.repair.lineage import one_step_channels
from repair_service.repair.namespaces import is_live, live_below, outer, parent_task
from repair_service.repair.quick import is_surely_clean
from repair_service.repair.route import (
    Route,
    ToolStep,
    declared_route,
    learn_route,
    pulled_nodes,
    started_nodes,
    tool_steps,
)
from repair_service.repair.step import Step, judge_step, lost_by_keeping
from repair_service.repair.verdict import Policy, Resume, Verdict
from repair_service.transcript.fault import Finding
from repair_service.transcript.message import Transcript

AT_REST = "at_rest"
"""The `allow` word for unanswered calls of a thread in which nothing is pending."""


def is_clean(rows: HeadRows) -> bool:
    """Whether a head is healthy by its own rows alone, whatever the rest of its thread says.

    The quick look of a scan: False says only that the whole thread has to be read.
    """
    return is_surely_clean(rows) or reads_clean(rows)


def reads_clean(rows: HeadRows) -> bool:
    """What `is_clean` says after reading the head in whole."""
    try:
        head = read_head(rows)
        asking = any(task.interrupted for task in head.tasks)
        if asking or is_patch(rows.row) or needs_history(head):
            return False
        transcripts = read_transcripts(head, (), False)
        return not any(examine(head, name, found, ()) for name, found in transcripts.items())
    except Unreadable:
        return False


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
        stamps = (timestamp(rows.row.checkpoint_id) for rows in thread.heads.values())
        self.newest = max((stamp for stamp in stamps if stamp is not None), default=None)

    def diagnose(self, namespace: str) -> Diagnosis:
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
        if question := self._open_question(namespace):
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
        if reason := self._declared_wait(head, found):
            return replace(diagnosis, verdict=Verdict.WAITING, reason=reason)
        if reason := self._still_active():
            return replace(diagnosis, verdict=Verdict.ACTIVE, reason=reason)
        left = [finding for findings in found.values() for finding in findings.left]
        if left:
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=_left_reason(left))
        if all(findings.early for findings in found.values()):
            reason = f"its faults stand before the last {self.policy.last} messages (--last)"
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=reason)
        if beside := sorted(set().union(*(findings.beside for findings in found.values()))):
            reason = (
                f"a call that a new input overtook wrote the channel {beside[0]!r} beside its "
                "result, and that was dropped: write both with update_state"
            )
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=reason)
        ancestors = self.thread.ancestors.get(head.row.checkpoint_ns, ())
        history = [step for name in found for step in tool_steps(head, ancestors, name)]
        if updates := caller_updates(head):
            reason = (
                f"the caller's own update of {', '.join(sorted(updates))} is among the pending "
                "writes, and a new checkpoint would drop it; going on with invoke(None) takes it up"
            )
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=reason)
        step = self._step(head, transcripts, found, history)
        if step.obstacle:
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=step.obstacle)
        if successor(head.row.checkpoint_id) is None:
            reason = (
                "its checkpoint id is no UUIDv6, so no id is certain to stand behind it and before "
                "a live run's"
            )
            return replace(diagnosis, verdict=Verdict.MANUAL, reason=reason)
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

    def _open_question(self, namespace: str) -> str | None:
        """Why the step must wait for a person: a question is open in it or in a sub-graph of it.

        An answer to a node with a sub-graph below may have been for the sub-graph's question: then
        the node's own is still open.
        """
        below = live_below(namespace, self.heads)
        asked_below = {parent.task_id for name in below if (parent := parent_task(name))}
        for name in (namespace, *below):
            if self.heads[name].tasks and asked_in_a_call(self.heads[name].stray_writes):
                return "an interrupt in a task that a pending node called has no answer yet"
            for task in self.heads[name].tasks:
                if task.interrupted or (task.answered and asked_below & set(task.ids)):
                    node = f" at the node {task.node!r}" if task.node else ""
                    return f"an interrupt{node} has no answer yet"
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

    def _declared_wait(self, head: Head, found: Mapping[str, Findings]) -> str | None:
        """Why the operator's declarations, or a thread at rest, make a call somebody else's."""
        stops = sorted(
            task.node for task in head.tasks if task.node and task.node in self.policy.breakpoints
        )
        if stops:
            return f"it stands before the declared breakpoint {stops[0]!r}"
        if stop := self._inferred_breakpoint(head):
            return (
                f"it stands before {stop!r}, where this store's runs stop and are resumed again "
                "and again: a breakpoint; --no-infer-breakpoints repairs it"
            )
        names = {call.name for findings in found.values() for _, _, call in findings.open_calls}
        client = sorted(name for name in names if name and name in self.policy.client_tools)
        if client:
            return f"the tool {client[0]!r} is declared a client's: the client answers its calls"
        at_rest = any(findings.step_calls for findings in found.values()) and not any(
            task.node for task in head.tasks
        )
        if at_rest and AT_REST not in self.policy.allow and not is_patch(head.row):
            return (
                "nothing is pending behind its last call, so the client is to answer it; "
                "--allow at_rest repairs it"
            )
        return None

    def _inferred_breakpoint(self, head: Head) -> str | None:
        """The pending node that history shows to be a static breakpoint."""
        if not self.policy.infer_breakpoints:
            return None
        own = tuple(node_runs(head, self.thread.ancestors.get(head.row.checkpoint_ns, ())))
        for task in head.tasks:
            if task.node and is_breakpoint(task.node, own, self.fleet.node_runs, head):
                return task.node
        return None

    def _still_active(self) -> str | None:
        """Why the thread may be running now."""
        newest = self.newest
        if newest is None:
            return None
        if self.policy.deployed_at is not None:
            if newest > self.policy.deployed_at:
                return "its head is not older than the deploy"
            return None
        if self.now - newest < self.policy.min_idle:
            return f"its newest checkpoint is younger than {self.policy.min_idle:g} s"
        return None

    def _step(
        self,
        head: Head,
        transcripts: Mapping[str, Transcript],
        found: Mapping[str, Findings],
        history: Sequence[ToolStep],
    ) -> Step:
        """What becomes of the pending tasks."""
        stepping = [name for name in found if found[name].step_calls]
        pending = any(task.node for task in head.tasks)
        step = Step(consumed=False, obstacle=lost_by_keeping(head))
        if stepping and pending:
            name = stepping[0]
            tail = found[name].step_calls[0][0]
            message = transcripts[name].messages[tail]
            ran = pulled_nodes(self.thread.ancestors.get(head.row.checkpoint_ns, ()))

            def tool_nodes() -> frozenset[str]:
                return self.policy.tool_nodes | self._fleets_tool_nodes(head)

            step = judge_step(head, frozenset(transcripts), message, history, ran, tool_nodes)
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
