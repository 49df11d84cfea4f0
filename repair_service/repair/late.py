"""Real results that came after a patch had put a placeholder in their place.

A process of before the deploy may still write a tool's result under the old head, behind which our
patch stands already. While the patch is the head, nothing has read the placeholder, so the real
result can take its place. A placeholder of an earlier patch, behind which the thread went on, has
been read, and stays.
"""

from collections.abc import Sequence
from dataclasses import replace

from repair_service.checkpoint.compose import is_patch
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import HeadRows
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
    late = from_ancestors(
        head, replace(transcript, messages=bare), channel, ancestors, open_calls(bare)
    )
    answered = {message.answers for message in late.results.values()}
    kept = tuple(
        message
        for message in transcript.messages
        if not (_is_unread(message, unread) and message.answers in answered)
    )
    return replace(transcript, messages=kept)


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
