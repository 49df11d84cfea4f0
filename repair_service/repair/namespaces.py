"""Which namespaces of a thread are live, and what hangs under what."""

from collections.abc import Mapping
from typing import NamedTuple

from repair_service.checkpoint.head import Head, Task
from repair_service.checkpoint.identifiers import NAMESPACE_SEPARATOR, TASK_SEPARATOR


class ParentTask(NamedTuple):
    """The task that a sub-graph's namespace names."""

    namespace: str
    node: str
    task_id: str


def parent_task(namespace: str) -> ParentTask | None:
    """The task a namespace belongs to.

    A namespace is `NODE:TASK_ID`, joined by `|` when deeper; a further sub-graph called by the same
    task has a bare number behind it. A namespace in which no part has a task id belongs to no task:
    it is the root, or a sub-graph with memory of its own (`checkpointer=True`).

    Source: langgraph/pregel/_algo.py (`task_checkpoint_ns`), langgraph/pregel/_loop.py
    (`subgraph_counter`).
    """
    parts = namespace.split(NAMESPACE_SEPARATOR)
    for position in range(len(parts) - 1, -1, -1):
        node, separator, task_id = parts[position].partition(TASK_SEPARATOR)
        if separator:
            return ParentTask(NAMESPACE_SEPARATOR.join(parts[:position]), node, task_id)
    return None


def task_of(namespace: str, heads: Mapping[str, Head]) -> Task | None:
    """The unfinished task at the parent's head that a namespace belongs to; None where it is dead.

    The id in the namespace is the task's, which covers the parent's checkpoint id: once the parent
    moved on, no task has it any more. Where an id cannot be recomputed (a task called by the
    functional API) the checkpoint that `metadata.parents` names must still be the parent's head.
    """
    parent = parent_task(namespace)
    if parent is None:
        return None
    head = heads.get(parent.namespace)
    if head is None:
        return None
    for task in head.tasks:
        if parent.task_id in task.ids:
            return None if task.finished else task
    parents = heads[namespace].row.metadata.get("parents")
    recorded = parents.get(parent.namespace) if isinstance(parents, Mapping) else None
    if recorded != head.row.checkpoint_id:
        return None
    unfinished = [task for task in head.tasks if not task.finished]
    named = [task for task in unfinished if task.node == parent.node]
    return next(iter(named or unfinished), None)


def is_live(namespace: str, heads: Mapping[str, Head]) -> bool:
    """Whether a run that goes on would use this namespace again.

    The root and sub-graphs with memory of their own always are. Another one is live only while its
    task is pending at the head of its parent, and its parent is live.
    """
    parent = parent_task(namespace)
    if parent is None:
        return True
    return task_of(namespace, heads) is not None and is_live(parent.namespace, heads)


def live_below(namespace: str, heads: Mapping[str, Head]) -> list[str]:
    """The live namespaces that hang, directly or deeper, under pending tasks of a namespace.

    A sub-graph with memory of its own hangs under the checkpoint from which it was last called.
    """
    below = []
    for other in heads:
        if other == namespace or not is_live(other, heads):
            continue
        if parent_task(other) is None:
            hangs = _called_from(other, heads) == heads[namespace].row.checkpoint_id
        else:
            hangs = namespace in _above(other)
        if hangs:
            below.append(other)
    return below


def _above(namespace: str) -> list[str]:
    """The namespaces of the tasks that a namespace hangs under, nearest first."""
    above = []
    parent = parent_task(namespace)
    while parent is not None:
        above.append(parent.namespace)
        parent = parent_task(parent.namespace)
    return above


def outer(namespace: str) -> list[str]:
    """The namespaces that a namespace hangs under, outermost first."""
    return _above(namespace)[::-1]


def _called_from(namespace: str, heads: Mapping[str, Head]) -> str | None:
    """The checkpoint from which a sub-graph with memory of its own was last called."""
    parents = heads[namespace].row.metadata.get("parents")
    if not isinstance(parents, Mapping) or not parents:
        return None
    nearest = max(parents, key=len)
    checkpoint_id = parents[nearest]
    return checkpoint_id if isinstance(checkpoint_id, str) else None


def shape(namespace: str) -> str:
    """The namespace without its task ids: the same for every thread of a graph."""
    parts = namespace.split(NAMESPACE_SEPARATOR)
    return NAMESPACE_SEPARATOR.join(part.partition(TASK_SEPARATOR)[0] for part in parts)
