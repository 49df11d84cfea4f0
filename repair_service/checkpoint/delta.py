"""Delta channels: which they are, and the stored value and writes that one is rebuilt from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from repair_service.checkpoint.layout import inline_values, mapping
from repair_service.checkpoint.rows import BlobRow, HeadRows, WriteRow
from repair_service.errors import Unreadable

COUNTERS = "counters_since_delta_snapshot"
"""The metadata that counts updates and steps of each delta channel since its last snapshot."""


@dataclass(frozen=True, slots=True)
class History:
    """What a delta channel's value at a head is rebuilt from.

    Attributes:
        seed: The nearest stored value before the head; None where the channel starts empty.
        writes: The writes on the channel from that checkpoint on, in the order they apply.
    """

    seed: BlobRow | None
    writes: tuple[WriteRow, ...]


def delta_channels(rows: HeadRows) -> frozenset[str]:
    """The head's delta channels: those that are counted, and those that have a snapshot here.

    A snapshot stands as `true` in the checkpoint, with its blob behind it
    (langgraph/checkpoint/postgres/__init__.py `put`); a plain `true` has no blob.

    Raises:
        Unreadable: The metadata is malformed.
    """
    inline = inline_values(rows.row)
    snapshots = {
        channel for channel, blob in rows.blobs.items() if inline.get(channel) is True and blob.type
    }
    return frozenset(counters(rows)) | snapshots


def counters(rows: HeadRows) -> Mapping[str, tuple[int, int]]:
    """By delta channel, its updates and its steps since its last snapshot.

    Raises:
        Unreadable: The metadata is malformed.
    """
    metadata = mapping(rows.row.metadata, "`metadata`")
    counted = mapping(metadata.get(COUNTERS) or {}, f"`metadata.{COUNTERS}`")
    found = {}
    for channel, pair in counted.items():
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise Unreadable(f"`metadata.{COUNTERS}` is malformed; restore the row from a backup")
        updates, steps = pair
        if not isinstance(updates, int) or not isinstance(steps, int):
            raise Unreadable(f"`metadata.{COUNTERS}` is malformed; restore the row from a backup")
        found[channel] = (updates, steps)
    return found


def history_of(
    channel: str, rows: HeadRows, ancestors: Sequence[HeadRows], pruned: bool
) -> History:
    """What a delta channel without a stored value at the head is rebuilt from.

    The walk goes from the parent back to the nearest checkpoint that has a stored value, and takes
    in the writes of that one too: they led to its child. A checkpoint's writes apply in the order
    of (task_path, task_id, idx), which also keeps the later supersteps of a run with
    `durability="exit"` behind the first.

    Args:
        channel: The channel.
        rows: The head.
        ancestors: The checkpoints before it, nearest first.
        pruned: Whether the chain breaks off at a parent that has no row.

    Raises:
        Unreadable: The history is not complete, or the stored value is lost.

    Source: langgraph/checkpoint/postgres/base.py (`_try_advance_walks`,
    `_build_delta_channels_writes_history`).
    """
    chain: list[HeadRows] = []
    seed = None
    parent = rows.row.parent_checkpoint_id
    for ancestor in ancestors:
        if ancestor.row.checkpoint_id != parent:
            raise Unreadable(f"the history of the channel {channel!r} is not complete")
        chain.append(ancestor)
        parent = ancestor.row.parent_checkpoint_id
        seed = _stored(channel, ancestor)
        if seed is not None:
            break
    if seed is None and (parent is not None or pruned):
        raise Unreadable(
            f"the history that the channel {channel!r} is rebuilt from was pruned; "
            "keep the ancestors of threads that use delta channels"
        )
    writes = [
        write
        for ancestor in reversed(chain)
        for write in sorted(ancestor.writes, key=lambda w: (w.task_path, w.task_id, w.idx))
        if write.channel == channel
    ]
    return History(seed, tuple(writes))


def _stored(channel: str, rows: HeadRows) -> BlobRow | None:
    """A checkpoint's own value of a channel; None where it has none, or null."""
    blob = rows.blobs.get(channel)
    if blob is not None and blob.type != "empty":
        return blob
    value = inline_values(rows.row).get(channel)
    if value is True:
        raise Unreadable(
            f"the snapshot of the channel {channel!r} has no blob; restore the row from a backup"
        )
    # Any other value in the checkpoint itself is a text or a number, and so no list.
    return None if value is None else BlobRow(channel, "", "null", b"")
