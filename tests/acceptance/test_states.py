"""Wherever an application keeps its messages, and in whatever form, its threads go on."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.programs import EARLIER, LINES, Graph, thread
from repair_service.demo.witness import KILLED
from tests.acceptance.nursery import Nursery
from tests.acceptance.programs import FAMILIES, told
from tests.acceptance.service import (
    assert_accepted,
    assert_repaired,
    audit,
    never_again,
    results,
    rows,
)
from tests.acceptance.states import FORMS
from tests.conftest import Database

KEPT = {"call_2_1": "fast call_2_1", "call_2_3": "fast call_2_3"}


def stored_lists(family: str, graph: Graph, thread_id: str) -> Sequence[list[Any]]:
    """The lists of a thread as LangGraph reads them, each element in its own form."""
    values = graph.get_state(thread(thread_id)).values
    keys = FORMS[family].keys
    return [values[key] for key in keys] if keys else [values]


def messages_of(family: str, state: Any) -> list[BaseMessage]:
    """The messages of a state, as LangChain's objects."""
    return FORMS[family].read(state)


@pytest.mark.parametrize("family", FORMS)
def test_goes_on_both_ways(
    family: str, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    one_task = FORMS[family].whole
    inputs = [EARLIER, LINES["three-calls"]]
    for thread_id in ("continued", "told"):
        assert nursery.run("talk", family, database.url, thread_id, inputs) == KILLED
    assert nursery.run("talk", family, database.url, "healthy", [EARLIER]) == 0
    graph = FAMILIES[family](saver, never_again)
    before = {name: stored_lists(family, graph, name) for name in ("continued", "told")}

    done = assert_repaired(database, ("continued", ""), ("told", ""))

    assert [item.resume for item in done] == ["park" if one_task else "continue"] * 2
    for thread_id in ("continued", "told"):
        for old, new in zip(before[thread_id], stored_lists(family, graph, thread_id), strict=True):
            # LangGraph reads the finished calls' results too; all before them was in the list.
            assert new[:6] == old[:6]
            assert [type(element) for element in new[:6]] == [type(element) for element in old[:6]]
            # What is sent to a provider as it stands gets no field that it did not have.
            assert all(element in new for element in old[6:] if isinstance(element, dict))
            mended = convert_to_messages(new)
            assert_accepted(mended)
            assert results(mended).items() >= (KEPT if not one_task else {}).items()
            # A dict stands among dicts, an object among objects.
            (placeholder,) = [
                element
                for element, message in zip(new, mended, strict=True)
                if isinstance(message, ToolMessage) and message.name == "slow"
            ]
            assert isinstance(placeholder, dict) == isinstance(old[0], dict)

    graph.invoke(None, thread("continued"), durability="sync")
    for thread_id in ("continued", "told"):
        if thread_id == "continued" and not one_task:
            state = graph.get_state(thread(thread_id)).values
            assert messages_of(family, state)[-1].text.startswith("The tools said: fast call_2_1")
        given = told(family, graph, thread_id, "Are you there?")
        state = graph.invoke(given, thread(thread_id), durability="sync")
        assert messages_of(family, state)[-1].text == "You said: Are you there?"
    assert audit(database) == []


def test_a_list_without_a_fault_is_not_written_again(
    database: Database, saver: PostgresSaver
) -> None:
    graph = FAMILIES["two_lists"](saver, never_again)
    call = {"name": "slow", "args": {"after": 0}, "id": "cut-off", "type": "tool_call"}
    for thread_id in ("continued", "told"):
        spoken = [HumanMessage("Well?"), AIMessage("", tool_calls=[call])]
        given = {"messages": spoken, "journal": [HumanMessage("Well?"), AIMessage("We shall see.")]}
        graph.update_state(thread(thread_id), given, as_node="chat")
    before = rows(database)

    done = assert_repaired(database, ("continued", ""), ("told", ""))

    assert [item.channel for item in done] == ["messages", "messages"]
    new = set(rows(database)["checkpoint_blobs"]) - set(before["checkpoint_blobs"])
    assert not any("journal" in row for (row,) in new)
    for thread_id in ("continued", "told"):
        values = graph.get_state(thread(thread_id)).values
        assert_accepted(values["messages"])
        assert [message.text for message in values["journal"]] == ["Well?", "We shall see."]
    graph.invoke(None, thread("continued"), durability="sync")
    state = graph.invoke(
        told("two_lists", graph, "told", "Are you there?"), thread("told"), durability="sync"
    )
    assert state["messages"][-1].text == "You said: Are you there?"
