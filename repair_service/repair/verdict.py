"""Verdicts, faults and policy: the words in which a diagnosis is said."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from repair_service.transcript.fault import FaultKind as FaultKind
from repair_service.transcript.fault import Mend as Mend


class Verdict(StrEnum):
    """What is to become of one head."""

    HEALTHY = "healthy"
    """Nothing wrong, or the namespace is dead. Never written."""
    REPAIRABLE = "repairable"
    """Faults, and a patch that mends all of them safely. Written by sweep and repair."""
    WAITING = "waiting"
    """An open question, a declared breakpoint, or a call that the client answers. Never written."""
    ACTIVE = "active"
    """Too young, or the application says that it runs. Looked at again later."""
    MANUAL = "manual"
    """A fault that no default may mend; the reason names the switch that would allow it."""
    UNREADABLE = "unreadable"
    """The rows cannot be read. Never written."""
    REPAIRED = "repaired"
    """After a write: the patch is the head, read back and healthy."""
    DRIFTED = "drifted"
    """After a write: the head had moved on, so nothing was written."""
    FAILED = "failed"
    """After a write: the patch did not read back as healthy, so it was rolled back."""


Resume = Literal["continue", "park", "keep"]
RouteSource = Literal["sibling", "history", "fleet", "declared"]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at one place.

    Attributes:
        kind: The kind of fault.
        channel: The transcript's channel; for a stuck node, that which starts it.
        message_index: Index of the message at fault, from 0: the AI message for a call, the tool
            message for a result; None for a stuck node, which is no fault of a list.
        tool_call_id: The call's id, None where it has none.
        tool_name: The tool's name, where the rows say it.
        model: The model that made the call, where the rows say it.
        mend: What the patch does about it; `none` where it does nothing.
    """

    kind: FaultKind
    channel: str
    message_index: int | None
    tool_call_id: str | None
    tool_name: str | None
    model: str | None
    mend: Mend


@dataclass(frozen=True, slots=True)
class Placeholders:
    """The templates of the text that stands for a result that was never recorded.

    Fields in braces: `{tool}`, `{call_id}`. Looked up by tool name first, then by cause.

    Attributes:
        interrupted: For a call that was cut off.
        invalid: For a call whose arguments could not be read.
        by_tool: Templates for single tools, by tool name, for both causes.
    """

    interrupted: str = (
        "The call to {tool} was interrupted before a result was recorded. "
        "It may or may not have taken effect."
    )
    invalid: str = (
        "The call to {tool} was not run: its arguments could not be read. No result was recorded."
    )
    by_tool: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Migration:
    """What changed in a graph since its threads were stored.

    Attributes:
        kind: What the names are of.
        renames: By old name, the new one. A node's or a state key's old name is `NAME` in the root
            graph and `NODE|NAME` in the graph that the node is; a new one is the bare name. A class
            is `module.Class`.
        removed: The nodes that are there no more, named as the old ones.
    """

    kind: Literal["nodes", "channels", "types"]
    renames: Mapping[str, str] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator allows and declares.

    Attributes:
        allow: Kinds that a default would leave to a person: fault kinds, and `at_rest` for
            unanswered calls of a thread that has no task pending.
        breakpoints: Nodes that are static breakpoints: a head pending there is waiting.
        infer_breakpoints: Whether a node before which history shows runs to stop again and again
            is taken for a breakpoint.
        client_tools: Tools whose calls the client answers: always waiting.
        tool_nodes: Nodes that run tools, where neither their name nor history says so.
        last: Only faults among so many messages at the end of a list are mended; None for all.
        resume: Where a mended step goes on.
        route: The node to go on at, declared by the operator; None to learn it.
        placeholders: The placeholder templates.
        min_idle: Seconds for which a thread must have been quiet.
        deployed_at: Seconds since 1970; with it, heads not older are active and `min_idle` is not
            asked.
        nodes: The nodes that the graphs have now, named as in Migration; empty where they were not
            said. A head that is pending at another one is stuck.
        migration: What heads are to be carried over to; None to repair them.
    """

    allow: frozenset[str] = frozenset()
    breakpoints: frozenset[str] = frozenset()
    infer_breakpoints: bool = True
    client_tools: frozenset[str] = frozenset()
    tool_nodes: frozenset[str] = frozenset()
    last: int | None = None
    resume: Literal["continue", "park"] = "continue"
    route: str | None = None
    placeholders: Placeholders = field(default_factory=Placeholders)
    min_idle: float = 600.0
    deployed_at: float | None = None
    nodes: frozenset[str] = frozenset()
    migration: Migration | None = None
