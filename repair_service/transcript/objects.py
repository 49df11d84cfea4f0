"""Message objects as LangGraph's serializer writes them, made without their classes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec
from msgspec import Raw

from repair_service.errors import Unreadable
from repair_service.transcript.message import Message
from repair_service.transcript.wire import (
    CODECS,
    PYDANTIC_CODE,
    codec_of,
    is_empty,
    is_extension,
    is_list,
    is_mapping,
    lenient,
)

_CLASSES: Final = {
    "human": ("langchain_core.messages.human", "HumanMessage"),
    "ai": ("langchain_core.messages.ai", "AIMessage"),
    "system": ("langchain_core.messages.system", "SystemMessage"),
    "tool": ("langchain_core.messages.tool", "ToolMessage"),
}
_OWN_FIELDS: Final[dict[str, dict[str, object]]] = {
    "ai": {"tool_calls": [], "invalid_tool_calls": [], "usage_metadata": None},
    "tool": {"tool_call_id": None, "artifact": None, "status": "success"},
}
_KEPT: Final = frozenset({"content", "name", "id", "tool_call_id"})
_DROPPED_WHEN_EMPTY: Final = frozenset({"additional_kwargs", "response_metadata", "tool_calls"})


def extension(code: int, data: bytes) -> bytes:
    """The bytes of a msgpack extension."""
    return msgspec.msgpack.encode(msgspec.msgpack.Ext(code, data))


def is_object(raw: bytes) -> bool:
    """Whether a message is an object or a constructor, and not a dict, a text or a pair."""
    if is_extension(raw):
        return True
    fields = lenient(codec_of(raw).fields, raw) if is_mapping(raw) else None
    return fields is not None and bool(fields.lc and fields.kwargs)


def pack_object(kind: str, fields: Mapping[str, object]) -> bytes:
    """A message object in msgpack.

    Source: langgraph/checkpoint/serde/jsonplus.py (`EXT_PYDANTIC_V2`), and the order of the fields
    in langchain_core's `model_dump`.

    Args:
        kind: `human`, `ai`, `system` or `tool`.
        fields: The fields that are not at their defaults.
    """
    module, name = _CLASSES[kind]
    whole: dict[str, object] = {
        "content": "",
        "additional_kwargs": {},
        "response_metadata": {},
        "type": kind,
        "name": None,
        "id": None,
        **_OWN_FIELDS.get(kind, {}),
    }
    encode = CODECS["msgpack"].encode
    return extension(
        PYDANTIC_CODE, encode((module, name, whole | dict(fields), "model_validate_json"))
    )


def as_object(message: Message) -> Message:
    """A dict, a text or a pair as the object that LangChain makes of it; an object as it is.

    Source: langchain_core/messages/utils.py (`convert_to_messages`).

    Raises:
        Unreadable: It has fields whose meaning is not known for sure.
    """
    if is_object(message.raw):
        return message
    codec = codec_of(message.raw)
    fields: dict[str, Raw] | None = None
    if is_mapping(message.raw):
        fields = lenient(codec.mapping, message.raw)
    elif is_list(message.raw):
        pair = lenient(codec.elements, message.raw) or []
        fields = {"role": pair[0], "content": pair[1]} if len(pair) == 2 else None
    else:
        fields = {"role": Raw(codec.encode("user")), "content": Raw(message.raw)}
    kept = _known_fields(message, fields) if fields and codec.encoding == "msgpack" else None
    if kept is None:
        raise Unreadable(
            "A write of a delta channel holds a message dict with fields that are not known, so"
            " what LangGraph reads it as is not known. Let the thread take one more message."
        )
    return replace(message, raw=pack_object(message.kind, kept))


def _known_fields(message: Message, fields: Mapping[str, Raw]) -> dict[str, object] | None:
    """The fields that the object takes over; None where one is not understood."""
    codec = codec_of(message.raw)
    role = lenient(codec.text, fields.get("role", fields.get("type", Raw(b""))))
    others = set(fields) - _KEPT - {"role", "type"}
    if message.kind not in _CLASSES or role == "developer" or message.calls:
        return None
    if any(key not in _DROPPED_WHEN_EMPTY or not is_empty(fields[key]) for key in others):
        return None
    if ("role" in fields and "type" in fields) or "content" not in fields:
        return None
    if (message.kind == "tool") != bool(message.answers):
        return None
    return {key: value for key, value in fields.items() if key in _KEPT}
