"""How messages stand in msgpack and in JSON: the shapes, and decoders that import nothing.

`langgraph/checkpoint/serde/jsonplus.py` writes a Python object as a msgpack extension around
`(module, class, payload, method)`. Decoding with msgspec types hands the extension over as plain
bytes, so the module that it names is never looked at. LangGraph.js writes JSON with
`{"lc": 1, "type": "constructor", "id": [..., CLASS], "kwargs": {...}}` around the same fields.

What can have many shapes is kept as `Raw`, its own bytes, and decoded where it is asked for: a
field of a shape that nobody expected then spoils itself and nothing else.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from repair_service.transcript.message import Encoding

Value = TypeVar("Value")

OBJECT_CODES: Final = frozenset({0, 2, 3, 4, 5})
"""Extensions of jsonplus whose third element can be an object's fields."""
PYDANTIC_CODE: Final = 5
SNAPSHOT_CODE: Final = 7
"""The extension around a delta channel's whole value."""
MISSING: Final = Raw(b"")
_EMPTY: Final = frozenset(
    {b"", b"\xc0", b"\xa0", b"\x90", b"\x80", b"null", b'""', b"[]", b"{}"},
)


class Fields(msgspec.Struct, gc=False):
    """The fields of a message that matter here; `lc` and `kwargs` where it is a constructor.

    `id` is a list of texts in a constructor, where it names the class.
    """

    type: str | None = None
    role: str | None = None
    id: str | list[str] | None = None
    name: str | None = None
    tool_call_id: str | None = None
    status: str | None = None
    lc: Raw = MISSING
    kwargs: Raw = MISSING
    content: Raw = MISSING
    tool_calls: Raw = MISSING
    invalid_tool_calls: Raw = MISSING
    additional_kwargs: Raw = MISSING
    response_metadata: Raw = MISSING
    artifact: Raw = MISSING
    value: Raw = MISSING


_TEXTS: Final = frozenset({"type", "role", "id", "name", "tool_call_id", "status"})
_RAWS: Final = frozenset(Fields.__struct_fields__) - _TEXTS


class Stored(msgspec.Struct, array_like=True, gc=False):
    """The inside of a jsonplus extension."""

    module: str
    name: str
    payload: Raw


class Call(msgspec.Struct, gc=False):
    """A tool call: LangChain's own, or OpenAI's with the name inside `function`."""

    type: Raw = MISSING
    id: Raw = MISSING
    name: Raw = MISSING
    function: Raw = MISSING


class Block(msgspec.Struct, gc=False):
    """A content block, or anything else that may carry a signature."""

    type: Raw = MISSING
    id: Raw = MISSING
    call_id: Raw = MISSING
    tool_use_id: Raw = MISSING
    name: Raw = MISSING
    signature: Raw = MISSING
    thought_signature: Raw = MISSING
    encrypted_content: Raw = MISSING
    data: Raw = MISSING
    extras: Raw = MISSING
    reasoning_content: Raw = MISSING
    value: Raw = MISSING


class Additional(msgspec.Struct, gc=False):
    """What `additional_kwargs` may hold."""

    tool_calls: Raw = MISSING
    repair_service: Raw = MISSING
    reasoning: Raw = MISSING
    reasoning_details: Raw = MISSING
    gemini_signatures: Raw = msgspec.field(
        default=MISSING, name="__gemini_function_call_thought_signatures__"
    )


class Metadata(msgspec.Struct, gc=False):
    """What `response_metadata` says about the model."""

    model_name: Raw = MISSING
    model: Raw = MISSING


class Codec:
    """The decoders of one encoding, made once.

    Each takes the bytes of one value and raises `msgspec.DecodeError` or `RecursionError` where
    they are corrupt, and `msgspec.ValidationError` (a `DecodeError`) where they are of another
    shape; `lenient` turns all of these into None.
    """

    def __init__(self, encoding: Encoding) -> None:
        decoder = msgspec.msgpack.Decoder if encoding == "msgpack" else msgspec.json.Decoder
        self.encoding: Encoding = encoding
        self.anything: Callable[[bytes], Raw] = decoder(Raw).decode
        self.plain: Callable[[bytes], Any] = decoder(Any).decode
        self.text: Callable[[bytes], str | None] = decoder(str | None).decode
        self.elements: Callable[[bytes], list[Raw] | None] = decoder(list[Raw] | None).decode
        self.mapping: Callable[[bytes], dict[str, Raw]] = decoder(dict[str, Raw]).decode
        self._usual_fields: Callable[[bytes], Fields] = decoder(Fields).decode
        self.call: Callable[[bytes], Call] = decoder(Call).decode
        self.block: Callable[[bytes], Block] = decoder(Block).decode
        self.additional: Callable[[bytes], Additional | None] = decoder(Additional | None).decode
        self.metadata: Callable[[bytes], Metadata | None] = decoder(Metadata | None).decode
        self.encode: Callable[[object], bytes] = (
            msgspec.msgpack.encode if encoding == "msgpack" else msgspec.json.encode
        )

    def fields(self, raw: bytes) -> Fields:
        """The fields of a mapping; one of a shape that nobody expected counts as missing."""
        try:
            return self._usual_fields(raw)
        except msgspec.ValidationError:
            entries = self.mapping(raw)
        texts = {key: lenient(self.text, entries.get(key, MISSING)) for key in _TEXTS}
        raws = {key: entries.get(key, MISSING) for key in _RAWS}
        return msgspec.convert(texts | raws, Fields)


CODECS: Final[dict[Encoding, Codec]] = {"msgpack": Codec("msgpack"), "json": Codec("json")}
decode_extension: Final = msgspec.msgpack.Decoder(msgspec.msgpack.Ext).decode
decode_stored: Final = msgspec.msgpack.Decoder(Stored).decode


def lenient(decode: Callable[[bytes], Value], raw: bytes) -> Value | None:
    """Decodes one field, or returns None where it is missing or not of the shape asked for."""
    if not raw:
        return None
    try:
        return decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def head_of(raw: bytes) -> int:
    """The first byte of a value, which tells its type; 0 where there is none."""
    return memoryview(raw)[0] if len(raw) else 0


def is_empty(raw: bytes) -> bool:
    """Whether a field is missing, null, or an empty text, list or mapping, in either encoding."""
    return len(raw) <= 4 and bytes(raw) in _EMPTY


def is_list(raw: bytes) -> bool:
    """Whether the bytes of one value are those of a list, in either encoding."""
    head = head_of(raw)
    return head == 0x5B or 0x90 <= head <= 0x9F or head in (0xDC, 0xDD)


def is_mapping(raw: bytes) -> bool:
    """Whether the bytes of one value are those of a mapping, in either encoding."""
    head = head_of(raw)
    return head == 0x7B or 0x80 <= head <= 0x8F or head in (0xDE, 0xDF)


def is_extension(raw: bytes) -> bool:
    """Whether the bytes of one msgpack value are those of an extension."""
    head = head_of(raw)
    return 0xC7 <= head <= 0xC9 or 0xD4 <= head <= 0xD8


def codec_of(raw: bytes) -> Codec:
    """The codec of one message's bytes.

    A JSON message starts with a brace, a bracket or a quote; in msgpack these bytes are the numbers
    123, 91 and 34, and no number is a message.
    """
    return CODECS["json" if head_of(raw) in (0x7B, 0x5B, 0x22) else "msgpack"]
