"""Which result belongs to which call, and what is wrong where they do not stand together.

Pairing goes by position, one call at a time, and never by a set of ids: applications and models use
ids again in later turns. The tool messages directly behind an AI message answer its calls. Any
other tool message answers the nearest call with its id before it.

Every rule here is linear in the length of the list.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from repair_service.transcript.element import result_parts
from repair_service.transcript.fault import FaultKind, Finding, Mend
from repair_service.transcript.message import Message, ToolCall

Place = tuple[int, int]
"""A call: index of its AI message in the list, and its place among that message's calls."""

_ORDER: Final = {kind: order for order, kind in enumerate(FaultKind)}


@dataclass(slots=True)
class Pairing:
    """The calls of a list and the tool messages that answer them.

    Attributes:
        results: For each call, the indices of all tool messages that answer it, in order.
        calls: For each tool message that answers a call, that call.
        adjacent: The tool messages that stand directly behind the AI message whose call they
            answer.
        orphans: The tool messages that answer no call.
    """

    results: dict[Place, list[int]] = field(default_factory=dict)
    calls: dict[int, Place] = field(default_factory=dict)
    adjacent: set[int] = field(default_factory=set)
    orphans: list[int] = field(default_factory=list)


def pair(messages: Sequence[Message]) -> Pairing:
    """Find for each call the tool messages that answer it.

    Where one message uses an id for several calls, its results are taken to answer them in turn.
    """
    pairing = Pairing()
    latest: dict[str, list[Place]] = {}
    caller: int | None = None
    for index, message in enumerate(messages):
        if message.kind != "tool":
            caller = index
            for position in range(len(message.calls)):
                pairing.results[index, position] = []
            latest |= _places(index, message)
            continue
        places = latest.get(message.answers or "", [])
        if not places:
            pairing.orphans.append(index)
            continue
        open_places = [place for place in places if not pairing.results[place]]
        place = (open_places or places)[0]
        pairing.results[place].append(index)
        pairing.calls[index] = place
        if place[0] == caller:
            pairing.adjacent.add(index)
    return pairing


def find_faults(
    messages: Sequence[Message],
    *,
    salvage: Mapping[Place, Message] | None = None,
    allow: frozenset[str] = frozenset(),
    start: int = 0,
) -> tuple[Finding, ...]:
    """Say what is wrong in a list of messages, in the order of the list.

    Args:
        messages: The list.
        salvage: Real results that were found elsewhere, by the call that they answer.
        allow: Kinds that may be mended although a default would leave them to a person:
            `duplicate_result`, `orphan_result`, `bound_prefix`.
        start: Index of the first message at which a fault may be mended; earlier ones are said,
            with the mend `none`.
    """
    pairing = pair(messages)
    findings = [
        *_call_faults(messages, pairing, salvage or {}),
        *_result_faults(messages, pairing, allow),
    ]
    if start:
        findings = [
            found if found.message_index >= start else replace(found, mend="none")
            for found in findings
        ]
    if FaultKind.BOUND_PREFIX not in allow:
        findings += _bound_prefix(messages, pairing, findings)
    findings.sort(
        key=lambda found: (found.message_index, found.call_position or 0, _ORDER[found.kind])
    )
    return tuple(findings)


def open_calls(messages: Sequence[Message]) -> tuple[tuple[int, int, ToolCall], ...]:
    """The calls that have an id and no result anywhere in the list.

    Returns:
        For each: index of the AI message, place among its calls, and the call.
    """
    return tuple(
        (index, position, call)
        for (index, position), found in pair(messages).results.items()
        if not found and (call := messages[index].calls[position]).id
    )


def tail_index(messages: Sequence[Message]) -> int | None:
    """Index of the AI message with calls that has nothing behind it but tool messages.

    This is the message whose calls the pending step is about; None where the list ends otherwise.
    """
    index = len(messages) - 1
    while index >= 0 and messages[index].kind == "tool":
        index -= 1
    return index if index >= 0 and messages[index].calls else None


def last_signed(messages: Sequence[Message]) -> int:
    """Index of the last message with signed thinking, -1 where there is none."""
    return max((index for index, message in enumerate(messages) if message.signed), default=-1)


def _places(index: int, message: Message) -> dict[str, list[Place]]:
    places: dict[str, list[Place]] = {}
    for position, call in enumerate(message.calls):
        if call.id:
            places.setdefault(call.id, []).append((index, position))
    return places


def _bad_positions(message: Message) -> frozenset[int]:
    """The calls of a message whose id is null, empty, or used by another of its calls."""
    ids = [call.id for call in message.calls]
    if all(ids) and len(set(ids)) == len(ids):
        return frozenset()
    first = {identifier: position for position, identifier in reversed(list(enumerate(ids)))}
    return frozenset(
        position
        for position, identifier in enumerate(ids)
        if not identifier or first[identifier] != position
    )


def _call_faults(
    messages: Sequence[Message], pairing: Pairing, salvage: Mapping[Place, Message]
) -> Iterator[Finding]:
    for index, message in enumerate(messages):
        if not message.calls:
            continue
        bad = _bad_positions(message)
        if message.mismatched:
            yield Finding(FaultKind.CALL_MISMATCH, index, None, None, "none")
        for position, call in enumerate(message.calls):
            place = (index, position)
            if position in bad:
                yield Finding(FaultKind.BAD_CALL_ID, index, call, position, "none")
            elif not pairing.results[place]:
                # A message whose calls cannot be told for sure is not answered in part.
                certain = not bad and not message.mismatched
                kind, mend = _open_fault(call, place in salvage)
                yield Finding(kind, index, call, position, mend if certain else "none")


def _open_fault(call: ToolCall, salvaged: bool) -> tuple[FaultKind, Mend]:
    if salvaged:
        return FaultKind.UNCOMMITTED_RESULT, "salvage"
    if call.invalid:
        return FaultKind.UNANSWERED_INVALID_CALL, "placeholder"
    return FaultKind.UNANSWERED_CALL, "none" if call.own_kind else "placeholder"


def _result_faults(
    messages: Sequence[Message], pairing: Pairing, allow: frozenset[str]
) -> Iterator[Finding]:
    orphan: Mend = "remove" if FaultKind.ORPHAN_RESULT in allow else "none"
    for index in pairing.orphans:
        yield Finding(FaultKind.ORPHAN_RESULT, index, None, None, orphan)
    for (caller, position), indices in pairing.results.items():
        if not indices:
            continue
        call = messages[caller].calls[position]
        keeper = next((i for i in indices if not messages[i].placeholder), indices[0])
        if keeper not in pairing.adjacent:
            yield Finding(FaultKind.MISPLACED_RESULT, keeper, call, position, "move")
        for index in indices:
            if index != keeper:
                spare = _is_spare(messages[keeper], messages[index])
                allowed = spare or FaultKind.DUPLICATE_RESULT in allow
                mend: Mend = "remove" if allowed else "none"
                yield Finding(FaultKind.DUPLICATE_RESULT, index, call, position, mend)


def _is_spare(keeper: Message, other: Message) -> bool:
    """Whether nothing is lost without the other result: a placeholder, or an equal one."""
    return other.placeholder or result_parts(keeper) == result_parts(other)


def _bound_prefix(
    messages: Sequence[Message], pairing: Pairing, findings: Sequence[Finding]
) -> list[Finding]:
    """The first change to the list that stands before a message with signed thinking.

    Source: Anthropic's extended thinking and others' reasoning items are bound to what came before.
    """
    changes = [
        pairing.calls[found.message_index][0] if found.mend == "move" else found.message_index
        for found in findings
        if found.mend != "none"
    ]
    first = min(changes, default=len(messages))
    if first >= last_signed(messages):
        return []
    return [Finding(FaultKind.BOUND_PREFIX, first, None, None, "none")]
