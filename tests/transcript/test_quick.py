"""The quick look at a list passes over none in which the whole reading finds something."""

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from repair_service.errors import Unreadable
from repair_service.transcript.pairing import find_faults
from repair_service.transcript.quick import is_surely_faultless
from repair_service.transcript.read import read_transcript
from tests.corpus.loader import VERSIONS
from tests.transcript.make import ai, as_dict, as_msgpack, human, result
from tests.transcript.stored import stored

IDS = st.sampled_from(["a", "b", "c", "srvtoolu_1", ""])
BLOCKS = st.sampled_from(
    [
        "",
        "text",
        [],
        [{"type": "text", "text": "hi"}],
        [{"type": "tool_use", "id": "a", "name": "search", "input": {}}],
        [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}],
        [{"type": "tool_result", "tool_use_id": "a", "content": "done"}],
        [{"type": "computer_call", "call_id": "c"}],
    ]
)
ADDITIONAL = st.sampled_from(
    [{}, {"refusal": None}, {"tool_calls": [{"id": "b", "function": {"name": "search"}}]}]
)
HUMANS = st.builds(HumanMessage, BLOCKS, additional_kwargs=ADDITIONAL)
CALLERS = st.builds(
    lambda ids, invalid, content, additional, chunk: _ai(ids, invalid, content, additional, chunk),
    st.lists(IDS | st.none(), max_size=3),
    st.sampled_from([(), (), (), ("c",)]),
    BLOCKS,
    ADDITIONAL,
    st.booleans(),
)
RESULTS = st.builds(lambda identifier: result(identifier), IDS)
OTHERS = st.sampled_from([SystemMessage("Be kind."), HumanMessage("x", tool_calls=[{"id": "a"}])])
REAL = sorted({blob for version in VERSIONS for _, _, blob in stored(version) if len(blob) > 200})


def _ai(
    ids: list[str | None],
    invalid: tuple[str, ...],
    content: object,
    additional: dict[str, object],
    chunk: bool,
) -> BaseMessage:
    if chunk:
        return AIMessageChunk("" if not isinstance(content, str) else content)
    return ai(*ids, invalid=invalid, content=content, additional_kwargs=additional)


@st.composite
def lists(draw: st.DrawFn) -> list[BaseMessage]:
    """Turns that end well more often than not, with all that can be wrong in between."""
    messages: list[BaseMessage] = []
    for turn in range(draw(st.integers(1, 4))):
        messages.append(draw(HUMANS) if draw(st.integers(0, 3)) == 0 else human())
        ids = [f"{turn}-{number}" for number in range(draw(st.integers(0, 3)))]
        if ids:
            messages += [ai(*ids), *(result(each) for each in draw(st.permutations(ids)))]
        messages.append(AIMessage("So it is."))
    for _ in range(draw(st.integers(0, 2))):
        if draw(st.booleans()):
            del messages[draw(st.integers(0, len(messages) - 1))]
        at = draw(st.integers(0, len(messages)))
        messages.insert(at, draw(HUMANS | CALLERS | RESULTS | OTHERS))
    return messages


def is_faultless(type_: str, blob: bytes) -> bool:
    """What the whole reading says."""
    try:
        transcript = read_transcript(type_, blob)
    except Unreadable:
        return False
    return transcript is not None and not find_faults(transcript.messages)


@settings(max_examples=1_000, deadline=None)
@given(lists())
def test_a_list_that_is_surely_faultless_has_no_fault(messages: list[BaseMessage]) -> None:
    blob = as_msgpack(messages)
    assert not is_surely_faultless("msgpack", blob) or is_faultless("msgpack", blob)


@settings(max_examples=1_000, deadline=None)
@given(
    st.sampled_from([as_msgpack([human(), ai("a"), result("a"), ai()]), *REAL]),
    st.lists(
        st.tuples(st.floats(0, 1), st.binary(max_size=3), st.integers(0, 4)), min_size=1, max_size=3
    ),
)
def test_nor_has_one_with_damaged_bytes(blob: bytes, cuts: list[tuple[float, bytes, int]]) -> None:
    for where, piece, width in cuts:
        at = int(where * len(blob))
        blob = blob[:at] + piece + blob[at + width :]
        assert not is_surely_faultless("msgpack", blob) or is_faultless("msgpack", blob)


@settings(max_examples=500, deadline=None)
@given(st.integers(0), st.integers(0, 255))
@example(0, 0x90)
def test_nor_has_one_with_a_single_other_byte(at: int, value: int) -> None:
    blob = bytearray(as_msgpack([human(), ai("a", "b"), result("a"), result("b"), ai()]))
    blob[at % len(blob)] = value
    changed = bytes(blob)
    assert not is_surely_faultless("msgpack", changed) or is_faultless("msgpack", changed)


@pytest.mark.parametrize(
    "messages",
    [
        [human()],
        [SystemMessage("Be kind."), human(), AIMessage("hi")],
        [human(), ai("a"), result("a"), AIMessage("So it is.")],
        [human(), ai("a", "b"), result("b"), result("a"), AIMessageChunk("hi"), human()],
        [human(), AIMessage("", additional_kwargs={"refusal": None})],
        [human(), ai("a"), result("a"), human(), ai("a"), result("a")],
    ],
)
def test_an_everyday_list_is_seen_at_once(messages: list[BaseMessage]) -> None:
    assert is_surely_faultless("msgpack", as_msgpack(messages))


@pytest.mark.parametrize(
    "value",
    [
        [human(), ai("a")],
        [human(), ai("a"), human(), result("a")],
        [human(), ai("a"), result("a"), result("a")],
        [human(), result("a")],
        [human(), ai("a", "a"), result("a"), result("a")],
        [human(), ai("a", invalid=["b"]), result("a")],
        [HumanMessage("x", tool_calls=[{"id": "a"}]), result("a")],
        [human(), ai("a"), result("a"), HumanMessage([{"type": "tool_result"}])],
        [human(), ai(content=[{"type": "tool_use", "id": "a", "name": "x", "input": {}}])],
        [human(), AIMessage("", additional_kwargs={"tool_calls": [{"id": "a"}]})],
        [human(), ToolMessage("x", tool_call_id="")],
        [as_dict(human())],
        [],
        {"messages": [human()]},
        [1],
    ],
)
def test_what_is_wrong_or_unusual_is_read_in_whole(value: object) -> None:
    assert not is_surely_faultless("msgpack", as_msgpack(value))


def test_an_object_longer_than_its_extension_is_no_message() -> None:
    """Two objects in one extension and none in the next would come out even."""
    twice = as_msgpack([human(), human()])
    elements = msgspec.msgpack.decode(twice, type=list[msgspec.msgpack.Ext])
    both = elements[0].data + b"\xc0" + elements[1].data
    one = msgspec.msgpack.encode([msgspec.msgpack.Ext(5, both)])
    uneven = msgspec.msgpack.encode([msgspec.msgpack.Ext(5, both), msgspec.msgpack.Ext(5, b"")])
    assert not is_surely_faultless("msgpack", one)
    assert not is_surely_faultless("msgpack", uneven)
