"""Real results that came after a patch had put a placeholder in their place.

A process of before the deploy may still write a tool's result under the old head, behind which our
patch stands already. While the patch is the head, nothing has read the placeholder, so the real
result can take its place. A placeholder of an earlier patch, behind which the thread went on, has
been read, and stays.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from repair_service.checkpoint.compose import is_patch
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import CheckpointRow, HeadRows, WriteRow
from repair_service.repair.salvage import from_ancestors
from repair_service.transcript.message import Message, Transcript
from repair_service.transcript.pairing import open_calls
from repair_service.transcript.write import MARK


def without_outdated(
    head: Head, channel: str, transcript: Transcript, ancestors: Sequence[HeadRows]
) -> Transcript:
    """A patched list without our placeholders whose real result has come since.

    Their calls are open then, and the results are found where dropped ones are.

    Args:
        head: The head.
        channel: The transcript's channel.
        transcript: The list as it is stored.
        ancestors: The checkpoints before the head, nearest first.

    Returns:
        The list itself where the head is no patch, or nothing came late.

    Raises:
        Unreadable: An ancestor's write on the channel cannot be read.
    """
    if not is_patch(head.row):
        return transcript
    unread = _mended_heads(head, ancestors)
    bare = tuple(m for m in transcript.messages if not _is_unread(m, unread))
    stripped = replace(transcript, messages=bare)
    # The tasks that were cut off write where they were scheduled: at a head that was mended.
    late = from_ancestors(head, stripped, channel, ancestors, open_calls(bare), nearest=len(unread))
    answered = {message.answers for message in late.results.values()}
    kept = tuple(
        message
        for message in transcript.messages
        if not (_is_unread(message, unread) and message.answers in answered)
    )
    return replace(transcript, messages=kept)


def may_be_outdated(row: CheckpointRow, transcript: Transcript, mended: Iterable[WriteRow]) -> bool:
    """Whether a real result may have come since for a placeholder of a patched list.

    The quick form of the question: False is certain, without the ancestors.

    Args:
        row: The patched head.
        transcript: The list as it is stored.
        mended: The pending writes of the head that it mended, its parent.
    """
    ours = [m for m in transcript.messages if m.placeholder and MARK.encode() in m.raw]
    if not ours:
        return False
    parents = frozenset({row.parent_checkpoint_id} if row.parent_checkpoint_id else ())
    if not all(_is_unread(message, parents) for message in ours):
        return True  # one of an earlier patch: read by now, or one of several in a row
    calls = [message.answers or "" for message in ours]
    if not all(map(_is_verbatim, calls)):
        return True
    # Whatever names the call may be its result.
    return any(
        write.problem is not None or any(call.encode() in (write.blob or b"") for call in calls)
        for write in mended
    )


_is_verbatim = re.compile("[A-Za-z0-9_.:|-]+").fullmatch
"""An id that stands in every serialization as it is."""


def _mended_heads(head: Head, ancestors: Sequence[HeadRows]) -> frozenset[str]:
    """The heads that were mended since the thread last went on: one, or more in a row."""
    mended = set()
    for row in (head.row, *(ancestor.row for ancestor in ancestors)):
        if not is_patch(row):
            break
        mended.add(row.parent_checkpoint_id)
    return frozenset(checkpoint_id for checkpoint_id in mended if checkpoint_id)


def _is_unread(message: Message, mended: frozenset[str]) -> bool:
    """Whether a message is a placeholder of ours that says that it was made at one of the heads."""
    return (
        message.placeholder
        and MARK.encode() in message.raw
        and any(checkpoint_id.encode() in message.raw for checkpoint_id in mended)
    )
