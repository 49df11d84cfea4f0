"""Composing the one new checkpoint behind a head, in the layout of the head."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from repair_service import __version__
from repair_service.checkpoint.delta import COUNTERS, counters
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.identifiers import NULL_TASK, successor
from repair_service.checkpoint.layout import PARENT_SENDS_LAYOUTS, stores_inline
from repair_service.checkpoint.rows import BlobRow, CheckpointRow
from repair_service.checkpoint.seen import patched_versions_seen
from repair_service.checkpoint.sends import emptied_topic
from repair_service.checkpoint.triggers import JOIN, SENDS, joined, one_step_triggers
from repair_service.checkpoint.values import decode
from repair_service.checkpoint.versions import next_version
from repair_service.checkpoint.waiting import CONTROL
from repair_service.errors import Unreadable
from repair_service.transcript.write import MARK, write_snapshot

Value = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Change:
    """What the new checkpoint changes.

    Attributes:
        transcripts: The new value of each changed transcript channel: serialization type, and the
            bytes of the plain list (a delta channel's too).
        consumed: Whether the step's tasks are taken up; otherwise the same tasks stay pending, and
            `route`, `touched` and `cleared` are not used.
        route: The trigger channels to write, with type and bytes as a sibling or history wrote
            them.
        touched: The delta channels that finished siblings wrote, transcripts aside: a reader finds
            their writes at the head once the channel has a new version.
        cleared: Further channels to clear, because they live for one step.
    """

    transcripts: Mapping[str, Value]
    consumed: bool
    route: Mapping[str, Value]
    touched: frozenset[str]
    cleared: frozenset[str]


def compose(
    head: Head, change: Change, *, timestamp: str
) -> tuple[CheckpointRow, tuple[BlobRow, ...]]:
    """The checkpoint that follows a head, and the blobs of the channels whose values change.

    Every channel that does not change keeps its version, so it is neither read nor copied.

    Args:
        head: The head; its id is a UUIDv6 (`identifiers.successor` says so).
        change: What changes.
        timestamp: The new checkpoint's `ts`, as ISO 8601.

    Returns:
        The row, with the head as its parent, and one blob for each value that is stored as one.

    Raises:
        Unreadable: The head's id is no UUIDv6, or a value that is to be changed cannot be read.
    """
    checkpoint_id = successor(head.row.checkpoint_id)
    if checkpoint_id is None:
        raise Unreadable("its checkpoint id is no UUIDv6, so no id is certain to stand behind it")
    version = next_version(head.versions.values(), head.row.checkpoint_id)
    written = dict(_written(head, change))
    fresh = written.keys() | (change.touched if change.consumed else frozenset())
    checkpoint: dict[str, Any] = dict(head.row.checkpoint)
    checkpoint |= {
        "id": checkpoint_id,
        "ts": timestamp,
        "channel_versions": {**head.versions, **dict.fromkeys(sorted(fresh), version)},
        "versions_seen": patched_versions_seen(
            head, frozenset(change.transcripts), version, consumed=change.consumed
        ),
    }
    if stores_inline(head.row, head.layout):
        checkpoint["channel_values"] = _inline(head, written, fresh)
    for key, value in (("updated_channels", None), ("pending_sends", [])):
        if key in checkpoint:
            checkpoint[key] = value
    row = CheckpointRow(
        thread_id=head.row.thread_id,
        checkpoint_ns=head.row.checkpoint_ns,
        checkpoint_id=checkpoint_id,
        parent_checkpoint_id=head.row.checkpoint_id,
        checkpoint=checkpoint,
        metadata=_metadata(head, change, checkpoint_id),
    )
    return row, tuple(_blobs(head, written, str(version)))


def keeps_tasks(head: Head) -> bool:
    """Whether a checkpoint behind the head can have the same tasks pending.

    Before format version 4 the Sends of a checkpoint are writes of its parent. Behind the head the
    parent is the head, so its own Sends are gone.
    """
    sends = any(task.kind == "push" for task in head.tasks)
    return not (sends and head.layout in PARENT_SENDS_LAYOUTS)


def is_patch(row: CheckpointRow) -> bool:
    """Whether a checkpoint is one that `compose` made: a repair's patch, and no migration's.

    The mark names the checkpoint: up to 0.4 LangGraph's `update_state` copies the metadata of the
    checkpoint before, mark included (langgraph/pregel/__init__.py, `**saved.metadata`).
    """
    mark = row.metadata.get(MARK) if isinstance(row.metadata, dict) else None
    return (
        isinstance(mark, Mapping)
        and mark.get("checkpoint_id") == row.checkpoint_id
        and not mark.get("migration")
    )


def caller_updates(head: Head) -> frozenset[str]:
    """The channels that a caller wrote at the head by `Command(update=...)` or `Command(goto=...)`.

    LangGraph reads them as part of the head's own state (langgraph/pregel/main.py
    `_prepare_state_snapshot`), and a checkpoint behind the head would drop them.
    """
    return frozenset(
        write.channel
        for write in head.rows.writes
        if write.task_id == NULL_TASK and write.channel not in CONTROL
    )


def leaked_channels(head: Head, change: Change) -> frozenset[str]:
    """The delta channels that would take up writes which the change does not take up.

    A delta channel without a snapshot is rebuilt from all writes of the checkpoints before it, the
    head's among them, whoever made them. Only the writes of tasks that are taken up may count.
    """
    taken = {
        write.task_id
        for task in head.tasks
        if change.consumed and task.finished
        for write in task.writes
    }
    stored = head.valued - change.touched
    return frozenset(
        write.channel
        for write in head.rows.writes
        if write.channel in head.delta_channels
        and write.channel not in change.transcripts
        and write.channel not in stored
        and write.task_id not in taken
    )


def _written(head: Head, change: Change) -> Iterator[tuple[str, Value | None]]:
    """By channel, its new stored value; None where it is cleared. What is named later wins."""
    if change.consumed:
        cleared = one_step_triggers(head) | (change.cleared & head.valued)
        yield from ((channel, None) for channel in sorted(cleared))
        topic = None if head.layout in PARENT_SENDS_LAYOUTS else emptied_topic(head.rows)
        if topic is not None:
            yield SENDS, topic
        for channel, value in change.route.items():
            yield channel, _arrived(head, channel, value)
    for channel, (type_, value_bytes) in change.transcripts.items():
        delta = channel in head.delta_channels
        yield channel, (type_, write_snapshot(value_bytes) if delta else value_bytes)


def _arrived(head: Head, channel: str, value: Value) -> Value:
    """The value of a trigger channel once a task has written it."""
    if not channel.startswith(JOIN):
        return value
    name = decode(*value)
    if not isinstance(name, str):
        raise Unreadable(f"what was written to the barrier {channel!r} is no name of a node")
    fired = any(channel in task.triggers for task in head.tasks)
    return joined(None if fired else head.rows.blobs.get(channel), name, value[0])


def _inline(
    head: Head, written: Mapping[str, Value | None], fresh: frozenset[str] | set[str]
) -> dict[str, Any]:
    """The values that stand in the checkpoint itself (langgraph/checkpoint/postgres `put`)."""
    kept = head.row.checkpoint["channel_values"]
    inline = {channel: value for channel, value in kept.items() if channel not in fresh}
    for channel, value in written.items():
        if value is not None and channel in head.delta_channels:
            inline[channel] = True
        elif value is not None and _is_inline(value):
            inline[channel] = decode(*value)
    return inline


def _is_inline(value: Value) -> bool:
    if value[0] == "null":
        return True
    if value[0] not in ("msgpack", "json"):
        return False
    decoded = decode(*value)
    return decoded is None or isinstance(decoded, str | int | float)


def _blobs(head: Head, written: Mapping[str, Value | None], version: str) -> Iterator[BlobRow]:
    inline = stores_inline(head.row, head.layout)
    for channel, value in written.items():
        if value is None:
            if not inline:
                yield BlobRow(channel, version, "empty", None)
        elif not inline or channel in head.delta_channels or not _is_inline(value):
            yield BlobRow(channel, version, *value, cipher=cipher_of(head, channel))


def cipher_of(head: Head, channel: str) -> str | None:
    """The cipher that the channel's value is stored with; else that of any value of the head."""
    stored = head.rows.blobs.get(channel)
    if stored is not None and stored.type != "empty":
        return stored.cipher
    ciphers = [blob.cipher for blob in head.rows.blobs.values()]
    ciphers += [write.cipher for write in head.rows.writes]
    return next((cipher for cipher in ciphers if cipher is not None), None)


def _metadata(head: Head, change: Change, checkpoint_id: str) -> dict[str, Any]:
    """The metadata that `update_state` would write (langgraph/pregel/_checkpoint.py)."""
    metadata = dict(head.row.metadata) | {
        "source": "update",
        "step": head.step + 1,
        MARK: {"version": __version__, "checkpoint_id": checkpoint_id},
    }
    if "writes" in metadata:
        metadata["writes"] = None
    metadata.pop(COUNTERS, None)
    touched = change.touched if change.consumed else frozenset()
    counted = {}
    before = counters(head.rows)
    for channel in sorted(head.delta_channels | touched):
        if channel in change.transcripts:
            continue
        updates, steps = before.get(channel, (0, 0))
        counted[channel] = [updates + (channel in touched), steps + 1]
    if counted:
        metadata[COUNTERS] = counted
    return metadata
