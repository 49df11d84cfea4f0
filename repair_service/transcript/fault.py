"""The kinds of fault that a transcript can have, and what may be done about one."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from repair_service.transcript.message import ToolCall


class FaultKind(StrEnum):
    """What is wrong at one place of a transcript, or with the step behind it."""

    UNANSWERED_CALL = "unanswered_call"
    """No result behind its message: a real result is salvaged, else a placeholder is put in."""
    UNANSWERED_INVALID_CALL = "unanswered_invalid_call"
    """A malformed call that nobody answered: a placeholder says so."""
    UNCOMMITTED_RESULT = "uncommitted_result"
    """The real result is a pending write; it is salvaged."""
    MISPLACED_RESULT = "misplaced_result"
    """The result stands elsewhere after its call; the real message is moved behind its call."""
    DUPLICATE_RESULT = "duplicate_result"
    """Two results for one call: removed where equal or a placeholder, else left to a person."""
    ORPHAN_RESULT = "orphan_result"
    """A result that answers no call; left to a person."""
    BAD_CALL_ID = "bad_call_id"
    """A call id that is null, empty or used twice in one message; left to a person."""
    CALL_MISMATCH = "call_mismatch"
    """Content blocks and `tool_calls` disagree; left to a person."""
    BOUND_PREFIX = "bound_prefix"
    """A mend before a later message with signed thinking; left to a person."""
    STUCK_NODE = "stuck_node"
    """No fault of a list: a task is pending at a node that the graph has no more; a migration."""


Mend = Literal["placeholder", "salvage", "move", "remove", "none"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault in one list of messages.

    Attributes:
        kind: The kind of fault.
        message_index: Index in the list as it was found: the AI message for a call, the tool
            message for a result.
        call: The call concerned; None for a result without one.
        call_position: The call's place among `Message.calls`; None where there is no call.
        mend: What mending does about it; `none` where it must be left to a person.
    """

    kind: FaultKind
    message_index: int
    call: ToolCall | None
    call_position: int | None
    mend: Mend
