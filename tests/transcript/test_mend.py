"""A mended list obeys every provider, and nothing that was real is lost."""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from repair_service.transcript.element import result_parts
from repair_service.transcript.fault import FaultKind, Finding
from repair_service.transcript.mend import Mended, mend
from repair_service.transcript.message import Message, ToolCall, Transcript
from repair_service.transcript.pairing import find_faults, last_signed, open_calls
from repair_service.transcript.read import read_transcript
from repair_service.transcript.write import compose_result, write_transcript
from tests.transcript.make import (
    ai,
    as_dict,
    as_json,
    as_msgpack,
    cancelled,
    human,
    placeholder,
    read,
    result,
)

ALL = frozenset({FaultKind.DUPLICATE_RESULT, FaultKind.ORPHAN_RESULT})


def mended(*messages: BaseMessage, allow: frozenset[str] = frozenset()) -> Mended:
    listed = read(*messages)
    findings = find_faults(listed, allow=allow)
    return mend(listed, findings, salvage={}, placeholder=placeholder, allow=allow)


def shape(messages: Sequence[Message]) -> list[str | None]:
    """Each message's id, `!` and the call's id where it is a placeholder we made."""
    return [
        f"!{message.answers}" if (message.id or "").startswith("made-") else message.id
        for message in messages
    ]


def test_a_list_without_faults_is_left_as_it_is() -> None:
    messages = read(ai("a", "b"), result("b"), result("a"))
    assert mend(messages, (), salvage={}, placeholder=placeholder) == Mended(messages)


def test_a_placeholder_goes_directly_behind_its_call() -> None:
    found = mended(human(id="h"), ai("a", "b", id="m"), result("b", id="b"), human(id="n"))
    assert shape(found.messages) == ["h", "m", "!a", "b", "n"]
    assert found.removed == ()


def test_a_misplaced_result_is_moved_behind_its_call() -> None:
    found = mended(ai("a", id="m"), human(id="h"), ai("b", id="n"), result("a", id="a"))
    assert shape(found.messages) == ["m", "a", "h", "n", "!b"]


def test_a_real_result_takes_the_place_of_a_placeholder() -> None:
    found = mended(
        ai("a", id="m"), cancelled("a"), human(id="h"), result("a", id="a"), human(id="n")
    )
    assert shape(found.messages) == ["m", "a", "h", "n"]
    assert [message.placeholder for message in found.removed] == [True]


def test_what_is_removed_is_handed_back() -> None:
    stray = result("x", id="stray")
    found = mended(stray, human(id="h"), allow=ALL)
    assert shape(found.messages) == ["h"]
    assert found.removed == read(stray)


def test_other_runs_are_put_in_call_order_when_the_list_is_written_anew() -> None:
    early = [ai("a", "b", id="m"), result("b", id="b"), result("a", id="a"), human(id="h")]
    assert shape(mended(*early).messages) == ["m", "b", "a", "h"]
    assert shape(mended(*early, ai("c", id="n")).messages) == ["m", "a", "b", "h", "n", "!c"]


def test_the_order_alone_is_not_changed_before_signed_thinking() -> None:
    thinking = [{"type": "redacted_thinking", "data": "x"}]
    early = [ai("a", "b", id="m"), result("b", id="b"), result("a", id="a")]
    late = ai("c", "d", id="n", content=thinking), result("d", id="d")
    assert shape(mended(*early, *late).messages) == ["m", "b", "a", "n", "!c", "d"]
    allow = frozenset({FaultKind.BOUND_PREFIX})
    assert shape(mended(*early, *late, allow=allow).messages) == ["m", "a", "b", "n", "!c", "d"]


def test_the_results_of_the_signed_message_itself_are_put_in_order() -> None:
    thinking = [{"type": "redacted_thinking", "data": "x"}]
    late = ai("a", "b", id="m", content=thinking), result("b", id="b"), result("a", id="a")
    assert shape(mended(*late, ai("c", id="n")).messages) == ["m", "a", "b", "n", "!c"]


def test_only_the_findings_that_are_handed_in_are_mended() -> None:
    messages = read(ai("a", id="m"), human(id="h"), ai("b", id="n"))
    findings = find_faults(messages)
    kept = mend(messages, findings[1:], salvage={}, placeholder=placeholder)
    assert shape(kept.messages) == ["m", "h", "n", "!b"]


def test_what_is_left_to_a_person_is_left_alone() -> None:
    found = mended(ai("a", id="m"), result("a", id="1"), result("a", "else", id="2"), ai("b"))
    assert shape(found.messages)[:3] == ["m", "1", "2"]


Form = str
FORMS = ("objects", "javascript", "dicts")

ids = st.sampled_from("abc")
turns = st.lists(
    st.one_of(
        st.just(("human",)),
        st.tuples(
            st.just("ai"),
            st.lists(ids, max_size=3, unique=True),
            st.integers(0, 3),
            st.sampled_from(["", "", "server", "signed"]),
        ),
        st.tuples(st.just("result"), ids, st.sampled_from(["fresh", "fresh", "same", "cut off"])),
    ),
    max_size=14,
)


def build(turn: tuple[Any, ...], index: int) -> BaseMessage:
    match turn:
        case ("ai", calls, valid, extra):
            content: Any = "text"
            if extra == "server":
                content = [{"type": "server_tool_use", "id": f"srvtoolu_{index}", "name": "web"}]
            if extra == "signed":
                content = [{"type": "thinking", "thinking": "x", "signature": "s"}]
            return ai(*calls[:valid], invalid=calls[valid:], content=content, id=f"m{index}")
        case ("result", call, "cut off"):
            return cancelled(call).model_copy(update={"id": f"m{index}"})
        case ("result", call, "same"):
            return result(call, f"result of {call}", id=f"m{index}")
        case ("result", call, _):
            return result(call, f"result {index}", id=f"m{index}")
    return human(id=f"m{index}")


def stored(script: Sequence[tuple[Any, ...]], form: Form) -> Transcript:
    messages = [build(turn, index) for index, turn in enumerate(script)]
    found = {
        "objects": lambda: read_transcript("msgpack", as_msgpack(messages)),
        "javascript": lambda: read_transcript("json", as_json(messages)),
        "dicts": lambda: read_transcript("msgpack", as_msgpack(list(map(as_dict, messages)))),
    }[form]()
    assert found is not None
    return found


def repair(
    transcript: Transcript,
    findings: Sequence[Finding],
    salvage: dict[tuple[int, int], Message],
    allow: frozenset[str],
) -> Mended:
    messages = transcript.messages

    def make(index: int, call: ToolCall) -> Message:
        return compose_result(
            transcript.encoding,
            call_id=call.id or "",
            tool=call.name,
            text="interrupted",
            message_id=f"made-{index}-{call.id}",
            marks={"cause": "interrupted"},
            like=messages[index],
        )

    return mend(messages, findings, salvage=salvage, placeholder=make, allow=allow)


def again(transcript: Transcript, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The mended list, written and read back."""
    blob = write_transcript(Transcript(transcript.encoding, tuple(messages)))
    found = read_transcript(transcript.encoding, blob)
    assert found is not None
    return found.messages


def obeys_every_provider(messages: Sequence[Message]) -> bool:
    """Behind each message exactly one result for each of its calls, in order, and no other."""
    rest = iter(messages)
    for message in rest:
        if message.kind == "tool":
            return False
        for call, answer in zip(
            message.calls, itertools.islice(rest, len(message.calls)), strict=False
        ):
            if answer.kind != "tool" or answer.answers != call.id or not call.id:
                return False
    wanted = sum(len(message.calls) for message in messages)
    return wanted == sum(message.kind == "tool" for message in messages)


def found_elsewhere(
    transcript: Transcript, chosen: frozenset[int]
) -> dict[tuple[int, int], Message]:
    """Real results for some of the open calls."""
    return {
        (index, position): compose_result(
            transcript.encoding,
            call_id=call.id or "",
            tool=call.name,
            text="found elsewhere",
            message_id=f"found-{index}-{position}",
            marks={},
            like=transcript.messages[index],
        )
        for number, (index, position, call) in enumerate(open_calls(transcript.messages))
        if number in chosen
    }


def raws(messages: Sequence[Message]) -> Counter[bytes]:
    return Counter(message.raw for message in messages)


def others(messages: Sequence[Message]) -> list[Message]:
    """All that is no tool result."""
    return [message for message in messages if message.kind != "tool"]


@settings(max_examples=120, deadline=None)
@given(turns, st.sampled_from(FORMS), st.frozensets(st.integers(0, 4), max_size=3))
def test_whatever_may_be_mended_comes_out_as_every_provider_wants_it(
    script: list[tuple[Any, ...]], form: Form, chosen: frozenset[int]
) -> None:
    allow = ALL | {FaultKind.BOUND_PREFIX}
    transcript = stored(script, form)
    salvage = found_elsewhere(transcript, chosen)
    findings = find_faults(transcript.messages, salvage=salvage, allow=allow)
    outcome = repair(transcript, findings, salvage, allow)

    messages = again(transcript, outcome.messages)
    added = raws(messages) - raws(transcript.messages)
    made = [message for message in messages if message.raw in added]
    assert not findings or obeys_every_provider(messages)
    assert all(message.name and message.answers for message in made)
    # Every message is there in its own bytes, but for those that were handed back as removed.
    assert raws(transcript.messages) + added - raws(outcome.removed) == raws(messages)
    assert others(messages) == others(transcript.messages)
    assert raws(list(salvage.values())) <= added
    # And there is nothing left to mend.
    assert find_faults(messages, allow=allow) == ()
    assert repair(Transcript(transcript.encoding, messages), (), {}, allow).messages == messages


@settings(max_examples=120, deadline=None)
@given(turns, st.sampled_from(FORMS))
def test_by_default_nothing_is_lost_but_placeholders_and_copies(
    script: list[tuple[Any, ...]], form: Form
) -> None:
    transcript = stored(script, form)
    findings = find_faults(transcript.messages)
    outcome = repair(transcript, findings, {}, frozenset())
    messages = again(transcript, outcome.messages)

    def real(listed: Sequence[Message]) -> set[tuple[Any, ...]]:
        """Real results by call, content, status and artifact; copies count once."""
        return {
            (message.answers, *result_parts(message))
            for message in listed
            if message.kind == "tool" and not message.placeholder
        }

    assert real(transcript.messages) <= real(messages)
    assert others(messages) == others(transcript.messages)
    left = [found for found in findings if found.mend == "none"]
    kinds = [found.kind for found in find_faults(messages) if found.kind != "bound_prefix"]
    assert Counter(kinds) == Counter(f.kind for f in left if f.kind != "bound_prefix")


@settings(max_examples=120, deadline=None)
@given(turns)
def test_nothing_changes_before_signed_thinking_without_a_finding_that_says_so(
    script: list[tuple[Any, ...]],
) -> None:
    transcript = stored(script, "objects")
    findings = find_faults(transcript.messages, allow=ALL)
    bound = [found for found in findings if found.kind == FaultKind.BOUND_PREFIX]
    outcome = repair(transcript, findings, {}, ALL)
    end = last_signed(transcript.messages) + 1
    unchanged = outcome.messages[:end] == transcript.messages[:end]
    assert unchanged is not bool(bound)


@pytest.mark.parametrize("form", FORMS)
def test_mending_a_long_list_takes_one_pass(form: Form) -> None:
    script = [("human",), ("ai", ["a", "b"], 2, ""), ("result", "b", "fresh"), ("human",)] * 50
    transcript = stored(script, form)
    messages = transcript.messages * 100
    long = Transcript(transcript.encoding, messages)
    outcome = repair(long, find_faults(messages), {}, frozenset())
    assert len(outcome.messages) == len(messages) + 5_000
