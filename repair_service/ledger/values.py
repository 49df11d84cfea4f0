"""Values as Postgres takes them in jsonb and text."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID


def clean_text(text: str) -> str:
    """The text without what Postgres refuses: NUL, and surrogates that JavaScript lets stand alone.

    Tool names and call ids are as the model wrote them, and one bad one must not cost a sweep its
    ledger.
    """
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def clean_optional(text: str | None) -> str | None:
    """The same for a text that may be missing."""
    return None if text is None else clean_text(text)


def plain(value: Any) -> Any:
    """The value as jsonb takes it.

    Dataclasses become objects, sets sorted lists, times ISO 8601, numbers that JSON has not null.

    Raises:
        TypeError: Something else is in it.
    """
    match value:
        case None | bool() | int():
            return value
        case Enum():
            return plain(value.value)
        case float():
            return value if math.isfinite(value) else None
        case str():
            return clean_text(value)
        case datetime():
            return value.isoformat()
        case UUID():
            return str(value)
        case Mapping():
            return {clean_text(str(key)): plain(item) for key, item in value.items()}
        case set() | frozenset():
            return sorted((plain(item) for item in value), key=str)
        case list() | tuple():
            return [plain(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be kept in the ledger")
