"""Deep agents keep their messages and files in delta channels, rebuilt from the history."""

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.programs import EARLIER, LINES, said, thread
from repair_service.demo.witness import KILLED
from tests.acceptance.nursery import Nursery
from tests.acceptance.programs import FAMILIES
from tests.acceptance.service import (
    assert_accepted,
    assert_repaired,
    audit,
    never_again,
    results,
)
from tests.conftest import Database

# The snapshot is written every 50 updates; a turn is three of them at least.
HISTORIES = {
    "first call": ([], "sync"),
    "a turn before": ([EARLIER], "sync"),
    "past a snapshot": (["Hello."] * 24, "sync"),
    "past a snapshot, kept at exit only": (["Hello."] * 24, "exit"),
    "turns kept at exit only": ([EARLIER, EARLIER], "exit"),
}


@pytest.mark.parametrize("line", ["one-call", "three-calls"])
@pytest.mark.parametrize("history", HISTORIES)
def test_a_deep_agent_goes_on_both_ways(
    history: str, line: str, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    turns, durability = HISTORIES[history]
    inputs = [*turns, LINES[line]]
    graph = FAMILIES["deep_agent"](saver, never_again)
    before = {}
    for thread_id in ("continued", "told"):
        code = nursery.run("talk", "deep_agent", database.url, thread_id, inputs, durability)
        assert code == KILLED
        before[thread_id] = graph.get_state(thread(thread_id)).values["messages"]

    done = assert_repaired(database, ("continued", ""), ("told", ""))

    turn = len(inputs)
    kept = {f"call_{turn}_{n}": f"fast call_{turn}_{n}" for n in (1, 3) if line == "three-calls"}
    for thread_id in ("continued", "told"):
        messages = graph.get_state(thread(thread_id)).values["messages"]
        assert_accepted(messages)
        assert results(messages).items() >= kept.items()
        # All that LangGraph read before is there, and one placeholder is new.
        there = {message.id: message for message in before[thread_id]}
        new = [message for message in messages if message.id not in there]
        assert all(there[message.id] == message for message in messages if message not in new)
        assert len(messages) == len(there) + 1
        assert [(type(message), message.name) for message in new] == [(ToolMessage, "slow")]

    # Nothing tells where a first call goes on, nor turns of which the exit alone was kept: the
    # writes that started their nodes are gone.
    routed = line == "three-calls" or (EARLIER in turns and durability == "sync")
    assert [item.resume for item in done] == ["continue" if routed else "park"] * 2
    answer = graph.invoke(None, thread("continued"), durability="sync")
    if routed:
        assert answer["messages"][-1].text.startswith("The tools said: ")
    for thread_id in ("continued", "told"):
        answer = graph.invoke(said("Are you there?"), thread(thread_id), durability="sync")
        assert answer["messages"][-1].text == "You said: Are you there?"
        assert_accepted(answer["messages"])
    assert audit(database) == []


def test_a_finished_sibling_keeps_the_file_it_wrote(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    inputs = ["Write a file, and call slow."]
    graph = FAMILIES["deep_agent"](saver, never_again)
    for thread_id in ("continued", "told"):
        assert nursery.run("talk", "deep_agent", database.url, thread_id, inputs) == KILLED

    assert_repaired(database, ("continued", ""), ("told", ""))

    for thread_id in ("continued", "told"):
        values = graph.get_state(thread(thread_id)).values
        assert_accepted(values["messages"])
        assert "/kept.txt" in results(values["messages"])["call_1_1"]
        assert values["files"]["/kept.txt"]["content"] in ("kept", ["kept"])
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text.startswith("The tools said: ")
    assert "/kept.txt" in state["files"]
    state = graph.invoke(said("Are you there?"), thread("told"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"
    assert "/kept.txt" in state["files"]


def test_a_death_inside_a_sub_agent_is_mended_at_the_call_to_it(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    inputs = ["Have slow called."]
    graph = FAMILIES["deep_agent"](saver, never_again)
    for thread_id in ("continued", "told"):
        assert nursery.run("talk", "deep_agent", database.url, thread_id, inputs) == KILLED

    # The sub-agent's own namespace is dead with the call that started it.
    assert_repaired(database, ("continued", ""), ("told", ""))

    for thread_id in ("continued", "told"):
        messages = graph.get_state(thread(thread_id)).values["messages"]
        assert_accepted(messages)
        assert results(messages)["call_1_2"] == "fast call_1_2"
        (placeholder,) = [m for m in messages if isinstance(m, ToolMessage) and m.name == "task"]
        assert placeholder.status == "error"
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert isinstance(state["messages"][-1], AIMessage)
    assert state["messages"][-1].text.endswith("fast call_1_2")
    state = graph.invoke(said("Are you there?"), thread("told"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"
    assert audit(database) == []
