"""The quick look at a list of messages: whether it is certain that nothing is wrong in it.

A scan asks this of every head, so it decodes the whole list in two calls and looks only at what
pairs calls with results. It says True only where `pairing.find_faults` finds nothing and the list
reads without an error; whatever is unusual is left to the whole reading.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import Raw

from repair_service.transcript.calls import SERVER_CALLS, SERVER_ID
from repair_service.transcript.wire import MISSING, PYDANTIC_CODE

_NIL: Final = b"\xc0"
_NO_BLOCKS: Final = frozenset({*range(0xA0, 0xC0), 0xC0, 0xD9, 0xDA, 0xDB, 0x90})
"""First bytes of contents without blocks: a text, nil, the empty list."""


class _Call(msgspec.Struct, gc=False):
    id: str | None = None
    type: str | None = None


class _Additional(msgspec.Struct, gc=False):
    tool_calls: Raw = MISSING


class _Fields(msgspec.Struct, gc=False):
    """The texts are here because the whole reading decodes them, and may fail at it."""

    type: Literal["human", "system", "ai", "AIMessageChunk", "tool"]
    content: Raw
    id: str | None = None
    name: str | None = None
    role: str | None = None
    status: str | None = None
    tool_call_id: str | None = None
    tool_calls: list[_Call] | None = None
    invalid_tool_calls: list[_Call] | None = None
    additional_kwargs: _Additional | None = None


class _Object(msgspec.Struct, array_like=True, gc=False):
    module: str
    name: str
    fields: _Fields


_MODELS: Final = frozenset({"ai", "AIMessageChunk"})

_elements: Final = msgspec.msgpack.Decoder(list[msgspec.msgpack.Ext]).decode
_objects: Final = msgspec.msgpack.Decoder(list[_Object | None]).decode


def is_surely_faultless(type: str, blob: bytes) -> bool:  # noqa: A002
    """Whether a value is a list of message objects in which each call has its one result behind it.

    Args:
        type: The serialization type, without a cipher's suffix.
        blob: The stored bytes.

    Returns:
        False also where it is only not certain.
    """
    if type != "msgpack":
        return False
    try:
        elements = _elements(blob)
        # With nil between them: an object that is not exactly its extension's content shows.
        joined = _NIL.join([element.data for element in elements])
        objects = _objects(b"\xdd" + (2 * len(elements) - 1).to_bytes(4) + joined)
    except (msgspec.DecodeError, RecursionError, OverflowError):
        return False
    if {element.code for element in elements} != {PYDANTIC_CODE} or any(objects[1::2]):
        return False
    return _is_paired(objects[::2])


def _is_paired(objects: Sequence[_Object | None]) -> bool:
    """Whether each message is of a usual shape, and all calls are answered at once."""
    open_calls: list[str | None] = []
    for found in objects:
        if found is None:
            return False
        fields = found.fields
        if fields.type == "tool":
            if fields.tool_call_id not in open_calls:
                return False
            open_calls.remove(fields.tool_call_id)
            continue
        # Blocks of content may hold calls, and a human's may hold results.
        if open_calls or memoryview(fields.content)[0] not in _NO_BLOCKS:
            return False
        calls = fields.tool_calls
        if calls:
            if fields.invalid_tool_calls or fields.type not in _MODELS:
                return False
            open_calls = _ids(calls)
            if not open_calls:
                return False
        elif fields.invalid_tool_calls or _names_calls(fields.additional_kwargs):
            return False
    return not open_calls


def _names_calls(additional: _Additional | None) -> bool:
    return additional is not None and bool(additional.tool_calls)


def _ids(calls: Sequence[_Call]) -> list[str | None]:
    """The ids of calls; none of them where one has no id of its own, or is the provider's."""
    ids: list[str | None] = []
    for call in calls:
        if not call.id or call.id in ids or call.id.startswith(SERVER_ID):
            return []
        if call.type in SERVER_CALLS:
            return []
        ids.append(call.id)
    return ids
