"""Mending a list of messages: what stays keeps its very bytes, and nothing real is lost."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from repair_service.transcript.fault import FaultKind, Finding
from repair_service.transcript.message import Message, ToolCall
from repair_service.transcript.pairing import Pairing, Place, last_signed, pair


@dataclass(frozen=True, slots=True)
class Mended:
    """A mended list.

    Attributes:
        messages: The list.
        removed: The messages that are no longer in it, in the order in which they stood.
    """

    messages: tuple[Message, ...]
    removed: tuple[Message, ...] = ()


def mend(
    messages: Sequence[Message],
    findings: Sequence[Finding],
    *,
    salvage: Mapping[Place, Message],
    placeholder: Callable[[int, ToolCall], Message],
    allow: frozenset[str] = frozenset(),
) -> Mended:
    """Mend what the findings say, and nothing else; those with the mend `none` are left alone.

    The results of a call go directly behind its message, in the order of its calls, one each, with
    nothing between. Once a list is written anew, all runs of results are put in that order, since
    some providers pair by order; but not where the order is all that would change before a message
    with signed thinking, whose prefix may not change.

    Args:
        messages: The list as it was found.
        findings: What `find_faults` said of it, or a part of that.
        salvage: The real results for the findings with the mend `salvage`.
        placeholder: Makes the result for an AI message's index and one of its calls.
        allow: The kinds that the operator allowed: with `bound_prefix`, all runs are put in order.
    """
    dropped = {found.message_index for found in findings if found.mend == "remove"}
    moved = {found.message_index for found in findings if found.mend == "move"}
    made = _made(findings, salvage, placeholder)
    if not (dropped or moved or made):
        return Mended(tuple(messages))
    pairing = pair(messages)
    for index in sorted(moved):
        made[pairing.calls[index]] = messages[index]
    bound = -1 if FaultKind.BOUND_PREFIX in allow else last_signed(messages)
    kept: list[Message] = []
    for caller, run in _runs(messages):
        if caller is not None:
            kept.append(messages[caller])
        left = [index for index in run if index not in dropped and index not in moved]
        changed = len(left) < len(run) or any(place in made for place in _places(messages, caller))
        if changed or (caller is not None and caller >= bound):
            kept += _in_order(messages, pairing, caller, left, made)
        else:
            kept += (messages[index] for index in left)
    return Mended(tuple(kept), tuple(messages[index] for index in sorted(dropped)))


def _made(
    findings: Sequence[Finding],
    salvage: Mapping[Place, Message],
    placeholder: Callable[[int, ToolCall], Message],
) -> dict[Place, Message]:
    """The results to put in, by the call that they answer."""
    made: dict[Place, Message] = {}
    for found in findings:
        if found.call is None or found.call_position is None:
            continue
        place = (found.message_index, found.call_position)
        if found.mend == "salvage":
            made[place] = salvage[place]
        elif found.mend == "placeholder":
            made[place] = placeholder(found.message_index, found.call)
    return made


def _runs(messages: Sequence[Message]) -> Iterator[tuple[int | None, list[int]]]:
    """Each message that is no result, with the results directly behind it.

    The first one is None where the list starts with results.
    """
    caller: int | None = None
    run: list[int] = []
    for index, message in enumerate(messages):
        if message.kind == "tool":
            run.append(index)
            continue
        if caller is not None or run:
            yield caller, run
        caller, run = index, []
    yield caller, run


def _places(messages: Sequence[Message], caller: int | None) -> list[Place]:
    if caller is None:
        return []
    return [(caller, position) for position in range(len(messages[caller].calls))]


def _in_order(
    messages: Sequence[Message],
    pairing: Pairing,
    caller: int | None,
    run: Sequence[int],
    made: Mapping[Place, Message],
) -> list[Message]:
    """The results of a message's calls in the order of the calls, then what else stood there."""
    ordered: list[Message] = []
    here = set(run)
    for place in _places(messages, caller):
        if place in made:
            ordered.append(made[place])
        own = [index for index in pairing.results[place] if index in here]
        here.difference_update(own)
        ordered += (messages[index] for index in own)
    return ordered + [messages[index] for index in run if index in here]
