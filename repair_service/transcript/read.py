"""Reading the list of messages out of a channel's bytes, without importing what they name."""

from collections.abc import Iterable
from typing import Final

from msgspec import DecodeError, Raw

from repair_service.errors import Unreadable
from repair_service.transcript.element import read_element, without_inline_results
from repair_service.transcript.message import Encoding, Message, Transcript
from repair_service.transcript.wire import (
    CODECS,
    MISSING,
    OBJECT_CODES,
    SNAPSHOT_CODE,
    Codec,
    decode_extension,
    decode_stored,
    is_empty,
    is_extension,
    is_list,
    is_mapping,
    lenient,
)

REMOVE_ALL: Final = "__remove_all__"
"""The id of a `RemoveMessage` that empties the list (langgraph/graph/message.py)."""

OVERWRITE: Final = "overwrite"
"""The kind of the mark before the messages of a write that replaces the list."""

_ENCODINGS: Final[dict[str, Encoding]] = {"msgpack": "msgpack", "json": "json"}
_NO_LIST: Final = frozenset({"null", "empty", "bytes", "bytearray"})
_ROOT_KEY: Final = "messages"
_OVERWRITE: Final = "__overwrite__"
_OBJECTS: Final = frozenset(bytes([code]) for code in OBJECT_CODES)
_MSGPACK_TEXTS: Final = frozenset(bytes([each]) for each in (*range(0xA0, 0xC0), 0xD9, 0xDA, 0xDB))


def looks_like_transcript(type: str, blob: bytes) -> bool:  # noqa: A002
    """Whether a blob can be a list of messages, by its first bytes and the field names in it.

    Says True for whatever `read_transcript` finds to be a list of messages with something in it,
    and now and then for what is none. One that starts with a text or a `(role, text)` pair is most
    often no list of messages, so it counts only where a call or a result stands in it. A mapping
    around a list (a `__root__` channel) is not looked into: ask `read_transcript`.

    Args:
        type: The serialization type, without a cipher's suffix.
        blob: The stored bytes.
    """
    first = _first_in_json_list(blob) if type == "json" else b""
    if type == "msgpack":
        first = _first_in_msgpack_list(blob)
    if not first:
        return False
    if _starts_plain(first):
        return b"tool_" in blob or b"function_call" in blob
    return b"content" in blob or b"tool_calls" in blob or b"remove" in blob


def read_transcript(type: str, blob: bytes) -> Transcript | None:  # noqa: A002
    """Read the list of messages in a channel's value.

    The list is the value itself, or inside a delta channel's snapshot (extension 7), or under one
    key of a mapping (a `__root__` channel whose state is a mapping); where several keys hold one,
    `messages` is taken, else none.

    Args:
        type: The serialization type, without a cipher's suffix.
        blob: The stored bytes.

    Returns:
        The transcript; None where the value is something else. A list counts when each element is
        a message and one of them is an object or a dict with a role or type; the others may be
        texts and `(role, text)` pairs, as LangChain takes them.

    Raises:
        Unreadable: The bytes are truncated, corrupt, nested too deeply, or of an unknown type.
    """
    codec = _codec(type)
    if codec is None:
        return None
    try:
        value = _without_snapshot(codec, blob)
        if is_list(value):
            messages = _read_list(codec, value)
            return None if messages is None else Transcript(codec.encoding, messages)
        if is_mapping(value):
            return _read_mapping(codec, value)
        codec.anything(value)
    except (DecodeError, RecursionError) as error:
        raise _corrupt(type) from error
    return None


def read_messages(type: str, blob: bytes) -> tuple[Message, ...]:  # noqa: A002
    """Read what a task wrote to a channel of messages: one message, or a list of them.

    A write that replaces the list (`Overwrite`) is read as a mark of the kind `overwrite`, without
    bytes, before the messages that it holds. A removal has the kind `remove` and the removed
    message's id.

    Args:
        type: The serialization type, without a cipher's suffix.
        blob: The stored bytes.

    Raises:
        Unreadable: The bytes are corrupt or of an unknown type, or hold what is no message.
    """
    codec = _codec(type)
    if codec is None:
        return ()
    try:
        codec.anything(blob)
        overwrite = _overwritten(codec, blob)
        if overwrite is None:
            return _written(codec, blob)
        return Message(b"", OVERWRITE), *_written(codec, overwrite)
    except (DecodeError, RecursionError) as error:
        raise _corrupt(type) from error


def _codec(type_: str) -> Codec | None:
    """The codec for a serialization type; None for the types that hold no list.

    Source: langgraph/checkpoint/serde/jsonplus.py (`dumps_typed`).
    """
    if type_ in _ENCODINGS:
        return CODECS[_ENCODINGS[type_]]
    if type_ in _NO_LIST:
        return None
    if type_ == "pickle":
        raise Unreadable(
            "The value is pickled, and a pickle is never opened. Write it once with a serializer"
            " that has no pickle fallback."
        )
    raise Unreadable(
        f"The value has the serialization type {type_[:40]!r}, which is not known."
        " A custom serializer cannot be read."
    )


def _corrupt(type_: str) -> Unreadable:
    return Unreadable(
        f"The value is not valid {type_}: it is truncated, corrupt or nested too deeply."
        " Restore the row from a backup."
    )


def _without_snapshot(codec: Codec, blob: bytes) -> bytes:
    if codec.encoding == "msgpack" and is_extension(blob):
        extension = decode_extension(blob)
        if extension.code == SNAPSHOT_CODE:
            return bytes(extension.data)
    return blob.lstrip() if codec.encoding == "json" else blob


def _read_list(codec: Codec, value: bytes) -> tuple[Message, ...] | None:
    elements = codec.elements(value) or ()
    if elements and all(map(_is_plain, elements)):
        return None
    messages: list[Message] = []
    for element in elements:
        message = read_element(codec, bytes(element))
        if message is None:
            return None
        messages.append(message)
    return without_inline_results(codec, messages)


def _read_mapping(codec: Codec, value: bytes) -> Transcript | None:
    entries = lenient(codec.mapping, value)
    if entries is None:
        # Either the keys are no texts, or the bytes are corrupt: only the latter is an error.
        codec.anything(value)
        return None
    found = {
        key: messages
        for key, entry in entries.items()
        if is_list(entry) and (messages := _read_list(codec, bytes(entry)))
    }
    key = _ROOT_KEY if _ROOT_KEY in found else next(iter(found), None)
    if key is None or (key != _ROOT_KEY and len(found) > 1):
        return None
    entries[key] = Raw(codec.encode(None))
    return Transcript(codec.encoding, found[key], (key,), codec.encode(entries))


def _overwritten(codec: Codec, raw: bytes) -> Raw | None:
    """The value inside an `Overwrite`, in the three forms that LangGraph takes it in.

    Source: langgraph/channels/binop.py (`_get_overwrite`).
    """
    if is_extension(raw):
        extension = decode_extension(raw)
        if extension.code not in OBJECT_CODES:
            return None
        stored = decode_stored(extension.data)
        if (stored.module, stored.name) != ("langgraph.types", "Overwrite"):
            return None
        return codec.fields(stored.payload).value or Raw(codec.encode(None))
    if not is_mapping(raw):
        return None
    entries = codec.mapping(raw)
    if set(entries) == {_OVERWRITE}:
        return entries[_OVERWRITE]
    kind = lenient(codec.text, entries.get("type", MISSING))
    return entries.get("value") if kind == _OVERWRITE else None


def _written(codec: Codec, raw: bytes) -> tuple[Message, ...]:
    elements: Iterable[bytes] = [raw]
    if is_list(raw):
        elements = codec.elements(raw) or ()
    elif is_empty(raw):
        elements = ()
    messages: list[Message] = []
    for element in elements:
        message = read_element(codec, bytes(element))
        if message is None:
            raise Unreadable(
                "A pending write on the messages holds something that is no message."
                " Its effect on the list is not known."
            )
        messages.append(message)
    return tuple(messages)


def _is_plain(element: bytes) -> bool:
    """Whether an element is a text or a pair (or a number, say), and neither object nor dict."""
    return not (is_extension(element) or is_mapping(element))


def _first_in_json_list(blob: bytes) -> bytes:
    """The first byte of a list's first element; empty where there is none that may be a message.

    Behind 64 bytes of blanks anything may stand: then it is a brace.
    """
    opening = blob[:64].lstrip()
    first = opening[1:].lstrip()[:1] or b"{"
    return first if opening[:1] == b"[" and first in (b"{", b"[", b'"') else b""


def _first_in_msgpack_list(blob: bytes) -> bytes:
    """The same, where the list may stand in a snapshot."""
    start = 0
    if is_extension(blob[:1]):
        start = {0xC7: 3, 0xC8: 4, 0xC9: 6}.get(blob[0], 2)
        if blob[start - 1 : start] != bytes([SNAPSHOT_CODE]):
            return b""
    opening = blob[start : start + 1]
    if not is_list(opening) or opening in (b"\x90", b"["):
        return b""
    start += {0xDC: 3, 0xDD: 5}.get(opening[0], 1)
    first = blob[start : start + 6]
    if is_extension(first):
        place = {0xC7: 2, 0xC8: 3, 0xC9: 5}.get(first[0], 1)
        return first[:1] if first[place : place + 1] in _OBJECTS else b""
    if is_mapping(first) and first[0] != 0x7B:
        return first[:1]
    return first[:1] if _starts_plain(first) else b""


def _starts_plain(first: bytes) -> bool:
    """Whether a text or a pair starts with a byte."""
    return first[:1] in (b"[", b'"', b"\x92") or first[:1] in _MSGPACK_TEXTS
