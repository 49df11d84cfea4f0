"""One head's transcript, with its faults and what the patch changes, message by message."""

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

import msgspec

from repair_service.checkpoint.rows import ThreadRows
from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.transcripts import read_transcripts
from repair_service.errors import Unreadable
from repair_service.repair.diagnosis import Diagnosis
from repair_service.report.items import Item, item_of
from repair_service.transcript.kinds import unwrap
from repair_service.transcript.message import Message, Transcript
from repair_service.transcript.read import read_transcript
from repair_service.transcript.wire import codec_of

Change = Literal["insert", "move", "remove"]


class CallLine(msgspec.Struct, frozen=True):
    """A tool call of a message."""

    id: str | None
    name: str | None
    invalid: bool


class MessageLine(msgspec.Struct, frozen=True, omit_defaults=False):
    """One message.

    Attributes:
        index: Its place in the list as it is; None for one that the patch puts in. A message that
            the patch moves stands at its new place, with its old index.
        kind: Its kind.
        id: Its message id.
        name: Its `name`.
        calls: The calls that the application has to answer.
        answers: The call that it is a result for.
        placeholder: Whether it is a made-up result.
        bytes: Its size as stored.
        change: What the patch does to it; None where it stays as it is.
        faults: The kinds of fault at it.
        content: Its text; None unless content was asked for.
    """

    index: int | None
    kind: str
    id: str | None
    name: str | None
    calls: list[CallLine]
    answers: str | None
    placeholder: bool
    bytes: int
    change: Change | None
    faults: list[str]
    content: str | None


class ChannelView(msgspec.Struct, frozen=True):
    """One channel's list of messages."""

    channel: str
    messages: list[MessageLine]


class HeadView(msgspec.Struct, frozen=True):
    """One head: the item of a report, and its lists of messages; none where it is unreadable."""

    item: Item
    channels: list[ChannelView]


def view_head(thread: ThreadRows, diagnosis: Diagnosis, *, content: bool) -> HeadView:
    """Show what one head holds and what its patch would change.

    Args:
        thread: The thread's rows.
        diagnosis: The judgement of one of its heads.
        content: Whether to show the text of messages.
    """
    namespace = diagnosis.checkpoint_ns
    try:
        before = read_transcripts(
            read_head(thread.heads[namespace]),
            thread.ancestors.get(namespace, ()),
            namespace in thread.pruned,
        )
    except Unreadable:
        before = {}
    after = _patched(diagnosis, before)
    return HeadView(
        item_of(diagnosis),
        [
            ChannelView(
                channel,
                _lines(
                    transcript.messages,
                    after.get(channel, transcript).messages,
                    _fault_kinds(diagnosis, channel),
                    content=content,
                ),
            )
            for channel, transcript in before.items()
        ],
    )


def _patched(diagnosis: Diagnosis, before: Mapping[str, Transcript]) -> dict[str, Transcript]:
    """The lists that the patch writes, by channel."""
    after = {}
    for blob in diagnosis.patch.blobs if diagnosis.patch else ():
        if blob.channel in before and blob.blob is not None:
            transcript = read_transcript(blob.type, blob.blob)
            if transcript is not None:
                after[blob.channel] = transcript
    return after


def _fault_kinds(diagnosis: Diagnosis, channel: str) -> dict[int, list[str]]:
    """The kinds of fault by the index of the message."""
    kinds: dict[int, list[str]] = {}
    for fault in diagnosis.faults:
        if fault.channel == channel and fault.message_index is not None:
            kinds.setdefault(fault.message_index, []).append(fault.kind.value)
    return kinds


def _lines(
    before: Sequence[Message],
    after: Sequence[Message],
    faults: Mapping[int, list[str]],
    *,
    content: bool,
) -> list[MessageLine]:
    """The old list and the new one as one, in the new order; what is taken out stays in view."""

    def line(message: Message, index: int | None, change: Change | None) -> MessageLine:
        return MessageLine(
            index=index,
            kind=message.kind,
            id=message.id,
            name=message.name,
            calls=[CallLine(call.id, call.name, call.invalid) for call in message.calls],
            answers=message.answers,
            placeholder=message.placeholder,
            bytes=len(message.raw),
            change=change,
            faults=[] if index is None else list(faults.get(index, ())),
            content=text_of(message) if content else None,
        )

    old = [message.raw for message in before]
    new = [message.raw for message in after]
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    added = Counter(raw for tag, _, _, a, b in steps if tag != "equal" for raw in new[a:b])
    gone: dict[bytes, list[int]] = {}
    for tag, a, b, _, _ in steps:
        if tag != "equal":
            for index in range(a, b):
                gone.setdefault(old[index], []).append(index)
    shown = []
    for tag, old_from, old_to, new_from, new_to in steps:
        if tag == "equal":
            shown += [line(before[index], index, None) for index in range(old_from, old_to)]
            continue
        for index in range(old_from, old_to):
            if added[old[index]]:  # shown where it is moved to
                added[old[index]] -= 1
            else:
                shown.append(line(before[index], index, "remove"))
        for index in range(new_from, new_to):
            moved = gone.get(new[index])
            change: Change = "move" if moved else "insert"
            shown.append(line(after[index], moved.pop(0) if moved else None, change))
    return shown


def text_of(message: Message) -> str:
    """The text of a message: its text blocks, and the type of every other block in brackets."""
    found = unwrap(codec_of(message.raw), message.raw)
    if found is None or not found[0].content:
        return ""
    value = _plain(codec_of(message.raw).encoding, bytes(found[0].content))
    if isinstance(value, list):
        return " ".join(_block_text(block) for block in value)
    return value if isinstance(value, str) else ""


def _plain(encoding: str, raw: bytes) -> Any:
    # An extension comes out as bytes with a code: nothing that it names is imported.
    try:
        decode = msgspec.msgpack.decode if encoding == "msgpack" else msgspec.json.decode
        return decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return ""


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, dict):
        text = block.get("text")
        return text if isinstance(text, str) else f"[{block.get('type', 'block')}]"
    return "[block]"
