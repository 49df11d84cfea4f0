"""Whether a value is a message, and of which kind."""

from typing import Final

from msgspec import ValidationError

from repair_service.transcript.wire import (
    OBJECT_CODES,
    Codec,
    Fields,
    decode_extension,
    decode_stored,
    is_extension,
    is_mapping,
)

KINDS: Final = frozenset(
    {"human", "ai", "system", "developer", "tool", "function", "chat", "generic", "remove"}
)
"""The `type` field of LangChain's own messages, in Python and in JavaScript."""

ROLES: Final = {
    "user": "human",
    "human": "human",
    "assistant": "ai",
    "ai": "ai",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "function",
}
"""The roles that a message dict may have (langchain_core/messages/utils.py)."""

CLASSES: Final = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
    "ChatMessage": "chat",
    "RemoveMessage": "remove",
}
"""What a constructor's last id element says where its fields have no `type` (LangGraph.js)."""


def unwrap(codec: Codec, raw: bytes) -> tuple[Fields, str | None] | None:
    """The fields of what may be a message, and its class's name where it is an object.

    Raises:
        msgspec.DecodeError, RecursionError: The bytes inside are corrupt.
    """
    try:
        if codec.encoding == "msgpack" and is_extension(raw):
            extension = decode_extension(raw)
            if extension.code not in OBJECT_CODES:
                return None
            stored = decode_stored(extension.data)
            return codec.fields(stored.payload), stored.name
        if not is_mapping(raw):
            return None
        fields = codec.fields(raw)
        if not (fields.lc and fields.kwargs):
            return fields, None
        path = fields.id if isinstance(fields.id, list) else []
        return codec.fields(fields.kwargs), path[-1] if path else ""
    except ValidationError:
        return None


def kind_of(fields: Fields, class_name: str | None) -> str | None:
    """The kind of a message; None for what is no message.

    An object's kind is its `type` field, because applications subclass; a class's name counts only
    where there is no such field. What has no content is no message, whatever its type says.
    """
    kind = fields.type
    if class_name is None:
        kind = kind if fields.role is None else ROLES.get(fields.role)
        if kind not in KINDS:
            return None
    else:
        kind = _whole(kind or class_name)
        if kind not in KINDS and not fields.additional_kwargs:
            return None
    if not (fields.content or fields.tool_calls or kind == "remove"):
        return None
    return "system" if kind == "developer" else kind


def _whole(name: str) -> str:
    """The kind for a `type` or class name; a chunk is the message that it is a part of."""
    return CLASSES.get(name.removesuffix("Chunk"), name)
