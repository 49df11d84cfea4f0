"""Who is to act first: a person who was asked, a client, an operator, a run that is alive."""

from collections.abc import Iterable, Mapping, Sequence

from repair_service.checkpoint.compose import is_patch
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import HeadRows
from repair_service.checkpoint.waiting import asked_in_a_call
from repair_service.repair.breakpoints import is_breakpoint, node_runs
from repair_service.repair.durations import said_duration
from repair_service.repair.findings import Findings
from repair_service.repair.fleet import Fleet
from repair_service.repair.namespaces import live_below, parent_task
from repair_service.repair.verdict import Policy

AT_REST = "at_rest"
"""The `allow` word for unanswered calls of a thread in which nothing is pending."""


def open_question(namespace: str, heads: Mapping[str, Head]) -> str | None:
    """Why the step must wait for a person: a question is open in it or in a sub-graph of it.

    An answer to a node with a sub-graph below may have been for the sub-graph's question: then
    the node's own is still open.
    """
    below = live_below(namespace, heads)
    asked_below = {parent.task_id for name in below if (parent := parent_task(name))}
    for name in (namespace, *below):
        if heads[name].tasks and asked_in_a_call(heads[name].stray_writes):
            return "an interrupt in a task that a pending node called has no answer yet"
        for task in heads[name].tasks:
            if task.interrupted or (task.answered and asked_below & set(task.ids)):
                node = f" at the node {task.node!r}" if task.node else ""
                return f"an interrupt{node} has no answer yet"
    return None


def declared_wait(
    head: Head,
    ancestors: Sequence[HeadRows],
    found: Iterable[Findings],
    policy: Policy,
    fleet: Fleet,
) -> str | None:
    """Why a breakpoint, the operator's word, or a thread at rest make a call somebody else's.

    Args:
        head: The head.
        ancestors: The checkpoints before it, nearest first.
        found: The faults of its transcripts.
        policy: What the operator allows and declares.
        fleet: What other threads show of breakpoints.
    """
    faulty = list(found)
    stops = sorted(
        task.node for task in head.tasks if task.node and task.node in policy.breakpoints
    )
    if stops:
        return f"it stands before the declared breakpoint {stops[0]!r}"
    if stop := _inferred_breakpoint(head, ancestors, policy, fleet):
        return (
            f"it stands before {stop!r}, where this store's runs stop and are resumed again "
            "and again: a breakpoint; --no-infer-breakpoints repairs it"
        )
    names = {call.name for findings in faulty for _, _, call in findings.open_calls}
    client = sorted(name for name in names if name and name in policy.client_tools)
    if client:
        return f"the tool {client[0]!r} is declared a client's: the client answers its calls"
    at_rest = any(findings.step_calls for findings in faulty) and not any(
        task.node for task in head.tasks
    )
    if at_rest and AT_REST not in policy.allow and not is_patch(head.row):
        if head.tasks:
            return (
                "nothing is known to be pending behind its last call: either the client is to "
                "answer it, or a node that the rows do not name"
            )
        return (
            "nothing is pending behind its last call, so the client is to answer it; "
            "--allow at_rest repairs it"
        )
    return None


def _inferred_breakpoint(
    head: Head, ancestors: Sequence[HeadRows], policy: Policy, fleet: Fleet
) -> str | None:
    """The pending node that history shows to be a static breakpoint."""
    if not policy.infer_breakpoints:
        return None
    for node in dict.fromkeys(task.node for task in head.tasks if task.node):
        if is_breakpoint(node, node_runs(head, ancestors), fleet.node_runs, head):
            return node
    return None


def still_active(newest: float | None, policy: Policy, now: float) -> str | None:
    """Why a thread may be running now.

    Args:
        newest: When its newest checkpoint was written; None where no id tells.
        policy: What the operator asks of its age.
        now: The present; all in seconds since 1970.
    """
    if newest is None:
        return None
    if policy.deployed_at is not None:
        if newest > policy.deployed_at:
            return "its head is not older than the deploy (--deployed-at)"
        return None
    if now - newest < policy.min_idle:
        least = said_duration(policy.min_idle)
        return f"its newest checkpoint is younger than {least} (--min-idle)"
    return None
