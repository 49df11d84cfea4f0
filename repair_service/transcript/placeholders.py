"""Which tool messages were put in for a call that was cut off, and are no result."""

import re
from typing import Final

from repair_service.transcript.wire import Codec, Fields, is_empty, lenient

_BY_CALL: Final = re.compile(
    r"Tool call (?P<tool>.*?)(?: with id (?P<id>.+?))? (?:"
    # deepagents up to 0.6, its JavaScript twin, and LangChain's ports of it
    r"was cancelled - another message came in before it could be completed\."
    # deepagents/middleware/patch_tool_calls.py since 0.7
    r"|did not complete - no result was recorded\. It may have been cancelled or interrupted\."
    r"|could not be executed - arguments were malformed or truncated\."
    r")",
    re.DOTALL,
)
_FIXED: Final = frozenset(
    {
        # deer-flow's DanglingToolCallMiddleware and its many copies
        "[Tool call was interrupted and did not return a result.]",
        "[Tool call could not be executed because its arguments were invalid.]",
    }
)
_LONGEST: Final = 1000
"""Bytes; a longer content is not one of these texts, and is not decoded."""


def is_known_placeholder(codec: Codec, fields: Fields) -> bool:
    """Whether a tool message says that it is a placeholder, or has the very text of a known one.

    Args:
        codec: The message's codec.
        fields: Its fields. A text that names another call than it answers is a result.
    """
    if not is_empty(fields.additional_kwargs):
        additional = lenient(codec.additional, fields.additional_kwargs)
        if additional is not None and additional.repair_service:
            return True
    if len(fields.content) > _LONGEST or b"Tool call " not in bytes(fields.content):
        return False
    text = lenient(codec.text, fields.content) or ""
    if text in _FIXED:
        return True
    found = _BY_CALL.fullmatch(text)
    return found is not None and found["id"] in (None, fields.tool_call_id)
