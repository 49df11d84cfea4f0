"""A delta channel's list is rebuilt as LangGraph's own reducers rebuild it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from deepagents._messages_reducer import _messages_delta_reducer as deepagents_reducer
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import _messages_delta_reducer as langgraph_reducer
from langgraph.types import Overwrite

from repair_service.errors import Unreadable
from repair_service.transcript.message import Message, Transcript
from repair_service.transcript.read import REMOVE_ALL, read_messages, read_transcript
from repair_service.transcript.replay import replay
from repair_service.transcript.write import write_transcript
from tests.transcript.make import SERIALIZER, ai, as_msgpack, human, result

Reducer = Callable[[Any, Any], list[Any]]

ids = st.sampled_from(["1", "2", "3", "4", ""])
some_messages = st.one_of(
    st.tuples(st.sampled_from("xyz"), ids | st.none()).map(
        lambda drawn: human(drawn[0], id=drawn[1])
    ),
    ids.map(lambda each: ai("a", id=each)),
    (ids | st.none()).map(lambda each: result("a", id=each)),
    ids.map(lambda each: RemoveMessage(each)),
    st.just(RemoveMessage(REMOVE_ALL)),
)
kept_messages = some_messages.filter(lambda message: message.type != "remove")
dicts = st.sampled_from(
    [
        {"role": "user", "content": "x"},
        {"role": "user", "content": [{"type": "text", "text": "x"}], "id": "1"},
        {"type": "human", "content": "x", "name": "n", "additional_kwargs": {}},
        {"role": "assistant", "content": "y", "id": "2", "tool_calls": []},
        {"role": "system", "content": "z"},
        {"role": "tool", "content": "r", "tool_call_id": "a", "id": "3"},
        "just text",
        ("user", "pair"),
    ]
)
writes_of = st.lists(st.one_of(some_messages, dicts), max_size=4)
history = st.lists(
    st.one_of(
        writes_of, some_messages, dicts, st.lists(kept_messages).map(lambda value: Overwrite(value))
    ),
    max_size=6,
)


def stored_and_replayed(seed: list[Any], writes: Sequence[Any]) -> bytes:
    found = read_transcript("msgpack", as_msgpack(seed))
    assert found is not None
    written = [read_messages("msgpack", as_msgpack(write)) for write in writes]
    return write_transcript(Transcript("msgpack", replay(found.messages, written)))


def reduced(reducer: Reducer, seed: list[Any], writes: Sequence[Any]) -> bytes:
    """What the channel holds after LangGraph replayed the writes."""
    channel = DeltaChannel(reducer, list).from_checkpoint(list(seed))
    loaded = [SERIALIZER.loads_typed(SERIALIZER.dumps_typed(write)) for write in writes]
    channel.replay_writes([("task", "messages", write) for write in loaded])
    return as_msgpack(channel.get())


@pytest.mark.parametrize("reducer", [deepagents_reducer, langgraph_reducer])
@settings(max_examples=150, deadline=None)
@given(seed=st.lists(kept_messages, max_size=5), writes=history)
def test_any_history_is_replayed_as_langgraph_replays_it(
    reducer: Reducer, seed: list[BaseMessage], writes: list[Any]
) -> None:
    assert stored_and_replayed(seed, writes) == reduced(reducer, seed, writes)


@pytest.mark.parametrize("reducer", [deepagents_reducer, langgraph_reducer])
def test_a_message_that_comes_back_after_its_removal_stands_last(reducer: Reducer) -> None:
    seed = [human("x", id="1"), human("y", id="2")]
    writes = [[RemoveMessage("1")], [human("z", id="1")]]
    replayed = stored_and_replayed(seed, writes)
    assert replayed == as_msgpack([human("y", id="2"), human("z", id="1")])
    assert replayed == reduced(reducer, seed, writes)


def test_messages_keep_their_bytes() -> None:
    seed = [HumanMessage("x", id="1", additional_kwargs={"odd": {1: "int key"}})]
    assert stored_and_replayed(seed, [[human(id="2")]]) == as_msgpack([*seed, human(id="2")])


@pytest.mark.parametrize(
    "odd",
    [
        {"role": "user", "content": "x", "cache_control": {"type": "ephemeral"}},
        {"role": "developer", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a"}]},
        {"role": "function", "content": "x", "name": "f"},
        {"role": "tool", "content": "x"},
    ],
)
def test_a_dict_with_fields_of_unknown_meaning_is_unreadable(odd: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        stored_and_replayed([], [[odd]])


def test_replaying_a_long_history_takes_one_pass() -> None:
    message = read_messages("msgpack", as_msgpack(human("x")))[0]
    writes = [
        [Message(message.raw, "human", str(number)), Message(b"", "remove", str(number - 1))]
        for number in range(50_000)
    ]
    assert len(replay((), writes)) == 1
