"""Where each head of a thread goes, and which of its tasks has which id there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from repair_service.checkpoint.head import Head, Task
from repair_service.checkpoint.identifiers import (
    NAMESPACE_SEPARATOR,
    TASK_SEPARATOR,
    js_pull_task_id,
    js_push_task_id,
    node_namespace,
    pull_task_ids,
    push_task_ids,
    successor,
)
from repair_service.checkpoint.layout import versions_seen
from repair_service.checkpoint.tasks import trigger_lists
from repair_service.errors import NotCarried
from repair_service.migration.rewriting import Rewriting
from repair_service.repair.heads import ThreadHeads
from repair_service.repair.namespaces import live_below, parent_task

NO_SUCCESSOR = (
    "its checkpoint id is no UUIDv6, so no id is certain to stand behind it and before a live run's"
)


@dataclass(frozen=True, slots=True)
class MovedTask:
    """A pending task under the name and id that it has behind the new checkpoint.

    Attributes:
        task: As it is stored.
        node: Its node's new name; None where layout 1 or 2 does not say which node it is.
        triggers: For `pull`, the new names of the triggers that fired.
        index: For `push`, the new index into the Sends.
        old_id, new_id: Its ids; None where no row names it, so that none has to.
    """

    task: Task
    node: str | None
    triggers: tuple[str, ...]
    index: int | None
    old_id: str | None
    new_id: str | None


@dataclass(frozen=True, slots=True)
class Move:
    """A head, and where it goes.

    Attributes:
        head: As it is stored.
        namespace: Its namespace behind the patch.
        checkpoint_id: Its new checkpoint's id.
        tasks: The pending tasks that stay.
        dropped: Those at nodes that are no more.
    """

    head: Head
    namespace: str
    checkpoint_id: str
    tasks: tuple[MovedTask, ...]
    dropped: tuple[Task, ...]

    @property
    def step(self) -> int:
        """The new checkpoint's step."""
        return self.head.step + 1


def moves_of(namespace: str, heads: ThreadHeads, rewriting: Rewriting) -> list[Move]:
    """The moves of a head that is below no other, and of the live ones below it, outermost first.

    Args:
        namespace: The head's namespace, which it keeps.
        heads: The heads of its thread.
        rewriting: What changes.

    Raises:
        NotCarried: An id cannot be recomputed, so what belongs to a task is not certain.
    """
    return list(_moves(namespace, namespace, heads, rewriting))


def _moves(
    namespace: str, new_namespace: str, heads: ThreadHeads, rewriting: Rewriting
) -> Iterator[Move]:
    head = heads[namespace]
    checkpoint_id = successor(head.row.checkpoint_id)
    if checkpoint_id is None:
        raise NotCarried(NO_SUCCESSOR)
    below = _below(namespace, heads)
    tasks: list[MovedTask] = []
    dropped: list[Task] = []
    for task in head.tasks:
        if task.node is None:
            # A node's own channel, which starts who knows whom: it stays as it is.
            triggers = tuple(rewriting.channel(head, channel) for channel in task.triggers)
            tasks.append(MovedTask(task, None, triggers, None, None, None))
            continue
        node = rewriting.node(namespace, task.node)
        if node is None:
            dropped.append(_dropped(task))
            continue
        sends_before = sum(each.kind == "push" for each in dropped)
        tasks.append(
            _moved(head, task, node, new_namespace, checkpoint_id, below, rewriting, sends_before)
        )
    yield Move(head, new_namespace, checkpoint_id, tuple(tasks), tuple(dropped))
    for moved in tasks:
        if moved.old_id is None or moved.new_id is None or moved.node is None:
            continue
        old = _task_namespace(namespace, str(moved.task.node), moved.old_id)
        new = _task_namespace(new_namespace, moved.node, moved.new_id)
        for name in below:
            if name == old or name.startswith(old + NAMESPACE_SEPARATOR):
                yield from _moves(name, new + name.removeprefix(old), heads, rewriting)


def _below(namespace: str, heads: ThreadHeads) -> list[str]:
    """The live namespaces of a head's own pending tasks.

    Raises:
        NotCarried: One of them is known by the checkpoint that it was called from alone.
    """
    ids = {task_id for task in heads[namespace].tasks for task_id in task.ids}
    below = []
    for name in live_below(namespace, heads):
        parent = parent_task(name)
        if parent is None or parent.namespace != namespace:
            continue
        if parent.task_id not in ids:
            raise NotCarried(
                f"the task id in the sub-graph's namespace {name!r} is not the one that follows "
                "from its place, so its id behind a new checkpoint is not known"
            )
        below.append(name)
    return below


def _dropped(task: Task) -> Task:
    if task.finished:
        raise NotCarried(
            f"a task at {task.node!r} has finished, and what it wrote is taken up only by a graph "
            "that has this node: let it go on with the old graph, or rename the node"
        )
    return task


def _moved(
    head: Head,
    task: Task,
    node: str,
    namespace: str,
    checkpoint_id: str,
    below: Sequence[str],
    rewriting: Rewriting,
    sends_before: int,
) -> MovedTask:
    named = {write.task_id for write in task.writes}
    for name in below:
        parent = parent_task(name)
        if parent is not None and parent.task_id in task.ids:
            named.add(parent.task_id)
    triggers = tuple(sorted(rewriting.channel(head, channel) for channel in task.triggers))
    index = None if task.index is None else task.index - sends_before
    if not named:
        return MovedTask(task, node, triggers, index, None, None)
    if len(named) > 1 or not task.proven or not named <= set(task.ids):
        raise NotCarried(
            f"the stored id of the task at {task.node!r} is not the one that follows from its "
            "place, so what it wrote would not be found under a new one"
        )
    (old_id,) = named
    place = (checkpoint_id, namespace, head.step + 1, node)
    if task.kind == "push":
        new_id = _push_id(head, task, old_id, place, index or 0)
    else:
        new_id = _pull_id(head, task, old_id, place, rewriting)
    if new_id is None:
        raise NotCarried(f"the id of the task at {task.node!r} cannot be made anew")
    return MovedTask(task, node, triggers, index, old_id, new_id)


Place = tuple[str, str, int, str]
"""Checkpoint id, namespace, step and node: what a task's id is made from first."""


def _stored_place(head: Head, task: Task) -> Place:
    row = head.row
    return row.checkpoint_id, row.checkpoint_ns, head.step, str(task.node)


def _push_id(head: Head, task: Task, old_id: str, place: Place, index: int) -> str | None:
    if head.layout.startswith("js"):
        return js_push_task_id(*place, index)
    made = push_task_ids(*_stored_place(head, task), task.index or 0)
    return push_task_ids(*place, index)[made.index(old_id)] if old_id in made else None


def _pull_id(head: Head, task: Task, old_id: str, place: Place, rewriting: Rewriting) -> str | None:
    stored = _stored_place(head, task)
    if head.layout.startswith("js"):
        for trigger in task.triggers:
            if js_pull_task_id(*stored, trigger) == old_id:
                return js_pull_task_id(*place, rewriting.channel(head, trigger))
        return None
    seen = versions_seen(head.row)
    for names in trigger_lists(head.versions, seen, str(task.node), task.triggers):
        made = pull_task_ids(*stored, names)
        if old_id in made:
            renamed = sorted(rewriting.channel(head, name) for name in names)
            return pull_task_ids(*place, renamed)[made.index(old_id)]
    return None


def _task_namespace(namespace: str, node: str, task_id: str) -> str:
    return f"{node_namespace(namespace, node)}{TASK_SEPARATOR}{task_id}"
