"""The JSON documents of a checkpoint, decoded."""

import json
from typing import Any, Final

import msgspec

_decode: Final = msgspec.json.Decoder().decode


def read_document(text: str | bytes) -> Any:
    """A JSON document; None, to be refused later, where Python cannot hold it (depth, digits)."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass  # a number that is no float; json knows more of them, and is slower
    try:
        return json.loads(text)
    except (RecursionError, ValueError):
        return None
