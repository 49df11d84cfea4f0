"""Small stored values taken apart: Sends, barriers, questions and answers.

Nothing that an extension names is imported. What is inside an extension is decoded only where it is
asked for, so a message list in a Send's argument costs nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from repair_service.errors import Unreadable

CONSTRUCTORS = frozenset({0, 1, 2})
"""Extensions around (module, class, argument or arguments); jsonplus.py `EXT_CONSTRUCTOR_...`."""

_CORRUPT = "a stored value is not valid {}; restore the row from a backup"


@dataclass(frozen=True, slots=True)
class Extension:
    """A Python object in msgpack, its content not decoded."""

    code: int
    data: bytes


def decode(type_: str, blob: bytes | None) -> Any:
    """A stored value as plain Python: mappings, lists, texts, numbers, None and `Extension`.

    Args:
        type_: The serialization type, without a cipher's suffix.
        blob: The stored bytes.

    Raises:
        Unreadable: The bytes are missing or corrupt, or the type is none that can be read.
    """
    if type_ == "null":
        return None
    if type_ in ("bytes", "bytearray"):
        return bytes(blob or b"")
    if type_ not in ("msgpack", "json"):
        raise Unreadable(
            f"a stored value has the serialization type {type_[:40]!r}, which cannot be read safely"
        )
    if blob is None:
        raise Unreadable("a stored value has no bytes; restore the row from a backup")
    return _decoded(_MSGPACK.decode if type_ == "msgpack" else _JSON.decode, blob, type_)


def constructed(value: object) -> tuple[str, Any] | None:
    """Class name and arguments of an object in msgpack; None for anything else.

    Raises:
        Unreadable: The extension's content is corrupt.
    """
    if not isinstance(value, Extension) or value.code not in CONSTRUCTORS:
        return None
    parts = _decoded(_MSGPACK.decode, value.data, "msgpack")
    if not isinstance(parts, list) or len(parts) < 3 or not isinstance(parts[1], str):
        return None
    return parts[1], parts[2]


def encode(type_: str, value: object) -> bytes:
    """The bytes of a plain value, in the serialization type named."""
    return msgspec.json.encode(value) if type_ == "json" else msgspec.msgpack.encode(value)


def encode_set(names: list[str]) -> bytes:
    """A set of texts as jsonplus stores it (langgraph/checkpoint/serde/jsonplus.py)."""
    content = msgspec.msgpack.encode(("builtins", "set", sorted(names)))
    return msgspec.msgpack.encode(msgspec.msgpack.Ext(0, content))


def _decoded(decoder: Callable[[bytes], Any], blob: bytes, type_: str) -> Any:
    try:
        return decoder(blob)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, TypeError) as error:
        raise Unreadable(_CORRUPT.format(type_)) from error


_MSGPACK = msgspec.msgpack.Decoder(
    ext_hook=lambda code, data: Extension(code, bytes(data)), strict=False
)
_JSON = msgspec.json.Decoder()
