"""Reading one head: which channels have values, which tasks are pending, and what they wrote."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from repair_service.checkpoint.delta import delta_channels
from repair_service.checkpoint.head import Head, Layout, Task
from repair_service.checkpoint.identifiers import (
    NULL_TASK,
    PULL,
    PUSH,
    js_pull_task_id,
    js_push_task_id,
    pull_task_ids,
    push_task_ids,
    timestamp,
)
from repair_service.checkpoint.layout import (
    NODE_CHANNEL_LAYOUTS,
    channel_versions,
    inline_values,
    layout_of,
    mapping,
    stores_inline,
    versions_seen,
)
from repair_service.checkpoint.rows import HeadRows, WriteRow
from repair_service.checkpoint.sends import scheduled_sends
from repair_service.checkpoint.triggers import (
    INPUT,
    RESERVED_NODES,
    has_fired,
    known_nodes,
    named_node,
)
from repair_service.checkpoint.triggers import is_trigger as is_trigger
from repair_service.checkpoint.triggers import node_started_by as node_started_by
from repair_service.checkpoint.waiting import Asking, is_finished, question_of
from repair_service.errors import Unreadable

Version = str | int | float
Writes = Mapping[str, tuple[WriteRow, ...]]


def read_head(rows: HeadRows) -> Head:
    """Read one head.

    Args:
        rows: Its rows; the blobs of trigger channels and scheduled Sends with their bytes.

    Raises:
        Unreadable: The checkpoint is of an unknown layout, malformed, or says of a task that it is
            pending in a way that cannot be read.
    """
    row = rows.row
    layout = layout_of(row)
    metadata = mapping(row.metadata, "`metadata`")
    if row.checkpoint.get("id", row.checkpoint_id) != row.checkpoint_id:
        raise Unreadable("the checkpoint holds another id than its row; it was changed by hand")
    versions = channel_versions(row)
    valued = valued_channels(rows)
    parts = _Parts(rows, layout, _step(metadata), versions, valued, versions_seen(row))
    tasks = (*_push_tasks(parts), *_pull_tasks(parts))
    own = {write.task_id for task in tasks for write in task.writes}
    stray = tuple(write for write in rows.writes if write.task_id not in own)
    return Head(
        rows=rows,
        layout=layout,
        step=parts.step,
        timestamp=timestamp(row.checkpoint_id),
        versions=versions,
        valued=valued,
        tasks=_with_questions(tasks, stray, row.checkpoint_ns),
        stray_writes=stray,
        delta_channels=delta_channels(rows),
    )


def valued_channels(rows: HeadRows) -> frozenset[str]:
    """The channels that have a value: inline, even null, or a blob that is not `empty`.

    Raises:
        Unreadable: The checkpoint is malformed.
    """
    inline = inline_values(rows.row)
    return frozenset(
        channel
        for channel in channel_versions(rows.row)
        if channel in inline or (channel in rows.blobs and rows.blobs[channel].type != "empty")
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """What the tasks are read from."""

    rows: HeadRows
    layout: Layout
    step: int
    versions: Mapping[str, Version]
    valued: frozenset[str]
    seen: Mapping[str, Mapping[str, Version]]
    by_task: dict[str, tuple[WriteRow, ...]] = field(init=False)

    def __post_init__(self) -> None:
        grouped: dict[str, list[WriteRow]] = {}
        for write in self.rows.writes:
            if write.task_id != NULL_TASK:
                grouped.setdefault(write.task_id, []).append(write)
        found = {task_id: tuple(sorted(w, key=lambda x: x.idx)) for task_id, w in grouped.items()}
        object.__setattr__(self, "by_task", found)

    @property
    def place(self) -> tuple[str, str, int]:
        row = self.rows.row
        return row.checkpoint_id, row.checkpoint_ns, self.step


def _step(metadata: Mapping[str, object]) -> int:
    step = metadata.get("step")
    if isinstance(step, bool) or not isinstance(step, int):
        raise Unreadable("`metadata.step` is no number; restore the row from a backup")
    return step


def _push_tasks(parts: _Parts) -> Iterator[Task]:
    for send in scheduled_sends(parts.rows, parts.layout):
        if parts.layout.startswith("js"):
            ids = _known(js_push_task_id(*parts.place, send.node, send.index))
        else:
            ids = push_task_ids(*parts.place, send.node, send.index)
        path = f"~{PUSH}, {send.index:010d}"
        writes, proven = _writes_of(parts, ids, (path, f"{path}, {0:010d}"))
        yield Task(
            kind="push",
            node=send.node,
            index=send.index,
            call_ids=send.call_ids,
            ids=ids,
            writes=writes,
            proven=proven,
            finished=is_finished(writes),
            failed=_failed(writes),
        )


def _pull_tasks(parts: _Parts) -> Iterator[Task]:
    started: dict[str, list[str]] = {}
    unknown: list[str] = []
    nodes = known_nodes(parts.seen, parts.versions)
    inline = stores_inline(parts.rows.row, parts.layout)
    for channel in parts.versions:
        if channel not in parts.valued:
            continue
        listeners = _listeners(parts, channel, nodes)
        if listeners is None:
            unknown.append(channel)
            continue
        fresh = [node for node in listeners if _is_newer(parts, node, channel)]
        if fresh and has_fired(channel, parts.rows.blobs.get(channel), inline=inline):
            for node in fresh:
                started.setdefault(node, []).append(channel)
    for node, triggers in sorted(started.items()):
        yield _pull_task(parts, node, tuple(sorted(triggers)))
    for channel in sorted(unknown):
        yield Task(kind="pull", node=None, triggers=(channel,))


def _pull_task(parts: _Parts, node: str, triggers: tuple[str, ...]) -> Task:
    ids = _pull_ids(parts, node, triggers)
    writes, proven = _writes_of(parts, ids, (f"~{PULL}, {node}",))
    return Task(
        kind="pull",
        node=node,
        triggers=triggers,
        ids=ids,
        writes=writes,
        proven=proven,
        finished=is_finished(writes),
        failed=_failed(writes),
    )


def _listeners(parts: _Parts, channel: str, nodes: frozenset[str]) -> list[str] | None:
    """The nodes that a channel starts; None for a node's own channel that nobody is known to read.

    By the channel's name, else by the nodes that have read it before (old layouts, raw Pregel).
    """
    node = named_node(channel)
    if node is not None and node != INPUT:
        return [node]
    readers = [
        name for name, seen in parts.seen.items() if name not in RESERVED_NODES and channel in seen
    ]
    if node == INPUT:
        return readers or [INPUT]
    if not readers and parts.layout in NODE_CHANNEL_LAYOUTS and channel in nodes:
        return None
    return readers


def _is_newer(parts: _Parts, node: str, channel: str) -> bool:
    """Whether a channel's version is newer than the one that a node has seen (`_triggers`)."""
    version, seen = parts.versions[channel], parts.seen.get(node, {}).get(channel)
    if seen is None:
        return True
    if isinstance(version, str) and isinstance(seen, str):
        return version > seen
    if isinstance(version, str) or not isinstance(seen, int | float):
        raise Unreadable("a version in `versions_seen` has another form than the channel's")
    return version > seen


def _pull_ids(parts: _Parts, node: str, triggers: tuple[str, ...]) -> tuple[str, ...]:
    """The ids the task may have: the rows name the triggers that fired, not all of the node's."""
    if parts.layout.startswith("js"):
        found = [js_pull_task_id(*parts.place, node, trigger) for trigger in triggers]
        return _known(*found)
    lists = trigger_lists(parts.versions, parts.seen, node, triggers)
    ids = [task_id for names in lists for task_id in pull_task_ids(*parts.place, node, names)]
    return _known(*ids)


def trigger_lists(
    versions: Iterable[str],
    seen: Mapping[str, Mapping[str, Version]],
    node: str,
    triggers: tuple[str, ...],
) -> list[tuple[str, ...]]:
    """The lists of triggers that a node may have, as far as a checkpoint shows.

    Args:
        versions: The checkpoint's channels.
        seen: Its `versions_seen`.
        node: The node.
        triggers: Those of its triggers that fired.
    """
    if INPUT in triggers:
        return [(INPUT,)]
    read = seen.get(node, {})
    known = {channel for channel in (*versions, *read) if named_node(channel) == node}
    joins = {channel for channel in known if channel.startswith("join:")}
    current = f"branch:to:{node}"
    return [
        triggers,
        tuple(sorted(known | set(triggers) | set(read))),
        (current,),
        tuple(sorted({current} | joins)),
    ]


def _known(*ids: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(task_id for task_id in ids if task_id is not None))


def _writes_of(
    parts: _Parts, ids: Sequence[str], paths: Sequence[str]
) -> tuple[tuple[WriteRow, ...], bool]:
    """A task's writes, found by its id, else by its path; and whether an id proves them its own."""
    for task_id in ids:
        if task_id in parts.by_task:
            return parts.by_task[task_id], True
    placed = [
        writes for writes in parts.by_task.values() if any(w.task_path in paths for w in writes)
    ]
    return (tuple(write for writes in placed for write in writes), not placed)


def _failed(writes: Iterable[WriteRow]) -> bool:
    return any(write.channel == "__error__" for write in writes)


def _with_questions(
    tasks: Sequence[Task], stray: Sequence[WriteRow], namespace: str
) -> tuple[Task, ...]:
    """The tasks with what is known of their questions."""
    caller = [write for write in stray if write.task_id == NULL_TASK]
    strangers: dict[str, list[WriteRow]] = {}
    for write in stray:
        if write.task_id != NULL_TASK:
            strangers.setdefault(write.task_id, []).append(write)
    others = [Asking(namespace, None, writes) for writes in strangers.values()]
    asking = [Asking(namespace, task.node, task.writes) for task in tasks]
    judged = []
    for place, task in enumerate(tasks):
        rest = [*asking[:place], *asking[place + 1 :], *others]
        question = question_of(asking[place], rest, caller)
        judged.append(
            replace(task, interrupted=question == "open", answered=question == "answered")
        )
    return tuple(judged)
