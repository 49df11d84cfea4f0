"""Heads that are pending at a node which the graph has no more: a deploy has renamed or removed it.

LangGraph passes over such a task: no next node, no question, and an answer goes nowhere.
"""

from collections.abc import Collection, Sequence

from repair_service.checkpoint.head import Head, Task
from repair_service.checkpoint.identifiers import NAMESPACE_SEPARATOR, TASK_SEPARATOR
from repair_service.checkpoint.rows import HeadRows
from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.triggers import INPUT, SENDS
from repair_service.errors import Unreadable
from repair_service.repair.verdict import Fault
from repair_service.transcript.fault import FaultKind


def is_stuck(rows: HeadRows, nodes: Collection[str]) -> bool:
    """Whether a head may be pending at a node that is not among those named.

    A head that cannot be read may be.
    """
    if not nodes:
        return False
    try:
        return bool(stuck_tasks(read_head(rows), nodes))
    except Unreadable:
        return True


def stuck_tasks(head: Head, nodes: Collection[str]) -> list[Task]:
    """The pending tasks at nodes that the graph does not have.

    Args:
        head: The head.
        nodes: The nodes in use: `NODE` of the root graph, `PARENT|NODE` of the graph that PARENT
            is. A graph none of whose nodes is named is not asked about.
    """
    named = [task.node for task in head.tasks if task.node not in (None, INPUT)]
    gone = unknown_nodes(head, [str(node) for node in named], nodes)
    return [task for task in head.tasks if task.node in gone]


def unknown_nodes(head: Head, names: Collection[str], nodes: Collection[str]) -> frozenset[str]:
    """Those of some names that no node of a head's graph has; none where its nodes are not named.

    Args:
        head: The head.
        names: The names.
        nodes: The nodes in use, as for `stuck_tasks`.
    """
    path = graph_path(head.row.checkpoint_ns)
    start = f"{path}{NAMESPACE_SEPARATOR}" if path else ""
    known = {
        name.removeprefix(start)
        for name in nodes
        if name.startswith(start) and NAMESPACE_SEPARATOR not in name.removeprefix(start)
    }
    return frozenset(names) - known if known else frozenset()


def graph_path(namespace: str) -> str:
    """The place of a namespace's graph among the nested ones: its nodes' names, joined by `|`.

    The root graph's is the empty text. Task ids, and the numbers of further sub-graphs that one
    task called, are left out (langgraph/_internal/_config.py `recast_checkpoint_ns`).
    """
    parts = namespace.split(NAMESPACE_SEPARATOR)
    return NAMESPACE_SEPARATOR.join(
        part.partition(TASK_SEPARATOR)[0] for part in parts if not part.isdigit()
    )


def faults_of_stuck(tasks: Sequence[Task]) -> tuple[Fault, ...]:
    """A fault for each task that is stuck."""
    return tuple(
        Fault(
            kind=FaultKind.STUCK_NODE,
            channel=task.triggers[0] if task.triggers else SENDS,
            message_index=None,
            tool_call_id=None,
            tool_name=None,
            model=None,
            mend="none",
        )
        for task in tasks
    )


def reason_of_stuck(head: Head, tasks: Sequence[Task]) -> str:
    """Why a head is left to a person, and the command that carries it over."""
    path = graph_path(head.row.checkpoint_ns)
    names = sorted({str(task.node) for task in tasks})
    place = f"{path}{NAMESPACE_SEPARATOR}{names[0]}" if path else names[0]
    said = " and ".join(map(repr, names))
    return (
        f"stuck_node: it is pending at {said}, which is not among --nodes, so the graph passes "
        f"over it; migrate nodes --rename {place}=NEW carries it over, --remove {place} parks it"
    )
