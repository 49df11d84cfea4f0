"""What two checkpoints that follow one another show about the step between them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from repair_service.checkpoint.compose import is_patch
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import BlobRow, HeadRows
from repair_service.checkpoint.sends import scheduled_sends
from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.triggers import SENDS
from repair_service.errors import Unreadable


def was_taken_up(child: HeadRows, parent: HeadRows) -> bool:
    """Whether a checkpoint is the next step of its parent, and so holds what its tasks wrote.

    A run with `durability="exit"` leaves out the checkpoints between: its last one is a later step.
    """
    before, after = parent.row.metadata, child.row.metadata
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False
    step = before.get("step")
    return after.get("source") == "loop" and isinstance(step, int) and after.get("step") == step + 1


def is_copy(child: HeadRows) -> bool:
    """Whether a checkpoint is its parent's copy, at which the parent's tasks run once more.

    A run that goes on from an older checkpoint makes one first (langgraph/pregel/_loop.py
    `_first`). What the parent's tasks wrote is of an earlier run of the same calls.
    """
    return isinstance(child.row.metadata, dict) and child.row.metadata.get("source") == "fork"


def schedules_again(child: HeadRows, call_id: str, started: Collection[str]) -> bool:
    """Whether a checkpoint that an application wrote has a task pending that is to answer a call.

    `update_state` may schedule calls that had results before. Of an ancestor only what stands in
    the checkpoint itself and in its writes is known: in older layouts that may be too little.

    Args:
        child: The checkpoint.
        call_id: The call.
        started: The nodes that the step with the result went on to: these are not to answer it.
    """
    metadata = child.row.metadata
    source = metadata.get("source") if isinstance(metadata, dict) else None
    if source != "update" or is_patch(child.row):
        return False
    # Of an ancestor no blobs are loaded; what it schedules is looked for in its writes below.
    unloaded = {SENDS: BlobRow(SENDS, "", "empty", None), **child.blobs}
    try:
        tasks = read_head(replace(child, blobs=unloaded)).tasks
        # What an update schedules is among its own writes (langgraph/pregel/main.py).
        sends = scheduled_sends(replace(child, parent_writes=child.writes), "python-3")
    except Unreadable:
        return False
    called = [*(send.call_ids for send in sends), *(task.call_ids for task in tasks)]
    if any(call_id in ids for ids in called):
        return True
    return any(task.kind == "pull" and task.node not in {None, *started} for task in tasks)


def one_step_channels(head: Head, ancestors: Sequence[HeadRows]) -> frozenset[str]:
    """The channels with a value that this thread's history shows to live for one step only.

    Such a channel (`EphemeralValue`) is cleared by the next step although no task of that step
    wrote to it. Only values that stand in the checkpoint itself are seen to come and go.

    Args:
        head: The head.
        ancestors: The checkpoints before it, nearest first.

    Source: langgraph/pregel/_algo.py (`apply_writes`: channels that were not updated are notified
    of the new step), langgraph/channels/ephemeral_value.py.
    """
    candidates = head.valued & _part(head.rows, "channel_values").keys() - head.delta_channels
    return frozenset(
        channel
        for child, parent in pairwise((head.rows, *ancestors))
        if was_taken_up(child, parent) and parent.writes
        for channel in candidates
        if _was_cleared(channel, child, parent)
    )


def _was_cleared(channel: str, child: HeadRows, parent: HeadRows) -> bool:
    """Whether a channel lost its value with a step in which nobody wrote to it."""
    if channel not in _part(parent, "channel_values") or channel in _part(child, "channel_values"):
        return False
    before, after = (_part(rows, "channel_versions").get(channel) for rows in (parent, child))
    moved = before is not None and after is not None and before != after
    return moved and not any(write.channel == channel for write in parent.writes)


def _part(rows: HeadRows, name: str) -> Mapping[str, object]:
    part = rows.row.checkpoint.get(name) if isinstance(rows.row.checkpoint, dict) else None
    return part if isinstance(part, dict) else {}
