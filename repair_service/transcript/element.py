"""Reading one message: its kind, its calls or what it answers, and what stands in its content."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from msgspec import Raw

from repair_service.transcript.calls import blocks_of, calls_of, is_signed, words_of
from repair_service.transcript.kinds import ROLES, kind_of, unwrap
from repair_service.transcript.message import Message
from repair_service.transcript.placeholders import is_known_placeholder
from repair_service.transcript.wire import (
    Codec,
    Fields,
    codec_of,
    is_empty,
    is_list,
    lenient,
)


def read_element(codec: Codec, raw: bytes) -> Message | None:
    """Read one element of a list; None for what is no message.

    Args:
        codec: The list's codec.
        raw: The element's bytes: an object, a dict, a plain text, or a pair of role and text.

    Raises:
        msgspec.DecodeError, RecursionError: The bytes inside are corrupt.
    """
    found = unwrap(codec, raw)
    if found is not None:
        return _message(codec, raw, *found)
    return _read_text(codec, raw)


def without_inline_results(codec: Codec, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Leave out the calls that a human message behind them answers in its own content.

    Source: Anthropic's Messages API, where a result is a `tool_result` block of the user's turn;
    LangChain passes such a block on as it stands.
    """
    kept = list(messages)
    caller: int | None = None
    for index, message in enumerate(messages):
        if message.kind == "ai":
            caller = index if message.calls else None
        elif message.kind == "human" and caller is not None:
            answered = set(_inline_results(codec, message.raw))
            if answered:
                calls = tuple(call for call in kept[caller].calls if call.id not in answered)
                kept[caller] = replace(kept[caller], calls=calls)
            caller = None
        elif message.kind != "tool":
            caller = None
    return tuple(kept)


def result_parts(message: Message) -> tuple[bytes, bytes, bytes]:
    """Content, status and artifact of a tool message as stored, to compare two results by."""
    codec = codec_of(message.raw)
    found = unwrap(codec, message.raw)
    if found is None:
        return message.raw, b"", b""
    fields = found[0]
    status = fields.status or "success"
    artifact = b"" if is_empty(fields.artifact) else bytes(fields.artifact)
    return bytes(fields.content), status.encode(), artifact


def asks_the_same(message: Message, other: Message, call_id: str) -> bool:
    """Whether two writings of a message ask one call for the same: the tool and its arguments."""
    if message.raw == other.raw:
        return True
    said = []
    for each in (message, other):
        codec = codec_of(each.raw)
        found = unwrap(codec, each.raw)
        said.append(words_of(codec, found[0], call_id) if found else [])
    return said[0] == said[1] != []


def _read_text(codec: Codec, raw: bytes) -> Message | None:
    """A plain text (a human's), or a pair of role and text."""
    if is_list(raw):
        pair = codec.elements(raw) or []
        role = lenient(codec.text, pair[0]) if len(pair) == 2 else None
        return Message(raw, ROLES[role]) if role in ROLES else None
    return None if lenient(codec.text, raw) is None else Message(raw, "human")


def _message(codec: Codec, raw: bytes, fields: Fields, class_name: str | None) -> Message | None:
    kind = kind_of(fields, class_name)
    if kind is None:
        return None
    identifier = fields.id if isinstance(fields.id, str) else None
    if kind == "ai":
        return _ai_message(codec, raw, fields, identifier)
    if kind == "tool":
        return Message(
            raw,
            kind,
            identifier,
            answers=fields.tool_call_id,
            name=fields.name,
            placeholder=is_known_placeholder(codec, fields),
        )
    return Message(raw, kind, identifier, name=fields.name)


def _ai_message(codec: Codec, raw: bytes, fields: Fields, identifier: str | None) -> Message:
    blocks = blocks_of(codec, fields.content)
    additional = (
        None
        if is_empty(fields.additional_kwargs)
        else lenient(codec.additional, fields.additional_kwargs)
    )
    calls, mismatched = calls_of(codec, fields, blocks, additional)
    return Message(
        raw,
        "ai",
        identifier,
        calls=calls,
        name=fields.name,
        signed=is_signed(codec, blocks, additional),
        mismatched=mismatched,
        model=_model(codec, fields.response_metadata),
    )


def _model(codec: Codec, metadata: Raw) -> str | None:
    if is_empty(metadata) or (found := lenient(codec.metadata, metadata)) is None:
        return None
    return lenient(codec.text, found.model_name) or lenient(codec.text, found.model)


def _inline_results(codec: Codec, raw: bytes) -> Iterator[str | None]:
    found = unwrap(codec, raw) if b"tool_result" in raw else None
    for block in blocks_of(codec, found[0].content) if found else ():
        if lenient(codec.text, block.type) == "tool_result":
            yield lenient(codec.text, block.tool_use_id)
