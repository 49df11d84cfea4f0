"""A process died in the middle of a tool: after the sweep, LangGraph itself goes on."""

import itertools
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.programs import GRAPHS, TASK_A_CALL, Graph, Scenario, build, said, thread
from repair_service.demo.witness import KILLED
from repair_service.repair.verdict import Verdict
from tests.acceptance.nursery import Nursery
from tests.acceptance.service import (
    REFUSED,
    assert_accepted,
    assert_repaired,
    audit,
    never_again,
    results,
    sweep,
    verdicts,
)
from tests.conftest import Database

SCENARIOS = [
    pytest.param(Scenario(graph, line, history), id=str(Scenario(graph, line, history)))
    for graph, line, history in itertools.product(
        GRAPHS, ("one-call", "three-calls"), (False, True)
    )
]
KILLED_ONCE = [Scenario(graph, "one-call", True) for graph in GRAPHS]


def messages_of(graph: Graph, thread_id: str) -> list[Any]:
    """The transcript as LangGraph reads it."""
    return list(graph.get_state(thread(thread_id)).values["messages"])


def finished_siblings(scenario: Scenario) -> dict[str, str]:
    """The results that were on disk when the process died, by the id of their call."""
    if scenario.line == "one-call" or scenario.graph not in TASK_A_CALL:
        return {}
    turn = 2 if scenario.history else 1
    return {f"call_{turn}_{number}": f"fast call_{turn}_{number}" for number in (1, 3)}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_goes_on_both_ways(
    scenario: Scenario, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    for thread_id in ("continued", "told"):
        assert nursery.run("scenario", str(scenario), database.url, thread_id) == KILLED

    done = assert_repaired(database, ("continued", ""), ("told", ""))

    graph = build(scenario.graph, saver, never_again)
    for thread_id in ("continued", "told"):
        messages = messages_of(graph, thread_id)
        assert_accepted(messages)
        kept = finished_siblings(scenario)
        assert results(messages).items() >= kept.items()
        # Only what had finished counts as done: `slow` never did.
        (placeholder,) = [m for m in messages if isinstance(m, ToolMessage) and m.name == "slow"]
        assert placeholder.status == "error"

    patched = messages_of(graph, "continued")
    answer = graph.invoke(None, thread("continued"), durability="sync")
    routed = scenario.history or bool(finished_siblings(scenario))
    assert [item.resume for item in done] == ["continue" if routed else "park"] * 2
    if routed:
        assert answer["messages"][:-1] == patched
        assert answer["messages"][-1].text.startswith("The tools said: ")
    else:
        # Nothing tells where a first call goes on, so the thread rests and waits for its user.
        assert messages_of(graph, "continued") == patched
        assert graph.get_state(thread("continued")).next == ()

    for thread_id in ("continued", "told"):
        answer = graph.invoke(said("Are you there?"), thread(thread_id), durability="sync")
        assert answer["messages"][-1].text == "You said: Are you there?"
    assert audit(database) == []


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_goes_on_after_a_message_overtook_it(
    scenario: Scenario, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = build(scenario.graph, saver, never_again)
    for thread_id in ("continued", "told"):
        assert nursery.run("scenario", str(scenario), database.url, thread_id) == KILLED
        with pytest.raises(REFUSED):
            graph.invoke(said("Are you there?"), thread(thread_id), durability="sync")

    done = assert_repaired(database, ("continued", ""), ("told", ""))

    assert [item.resume for item in done] == ["keep", "keep"]
    for thread_id in ("continued", "told"):
        messages = messages_of(graph, thread_id)
        assert_accepted(messages)
        assert isinstance(messages[-1], HumanMessage)
        assert results(messages).items() >= finished_siblings(scenario).items()

    answer = graph.invoke(None, thread("continued"), durability="sync")
    assert answer["messages"][-1].text == "You said: Are you there?"
    answer = graph.invoke(said("Hello?"), thread("told"), durability="sync")
    assert answer["messages"][-1].text == "You said: Hello?"


@pytest.mark.parametrize("scenario", KILLED_ONCE, ids=str)
def test_a_new_message_is_refused_without_a_sweep(
    scenario: Scenario, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    assert nursery.run("scenario", str(scenario), database.url, "left") == KILLED
    graph = build(scenario.graph, saver, never_again)
    for _ in range(2):
        with pytest.raises(REFUSED):
            graph.invoke(said("Are you there?"), thread("left"))


@pytest.mark.parametrize("scenario", KILLED_ONCE, ids=str)
def test_a_single_call_comes_out_as_update_state_leaves_it(
    scenario: Scenario, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    for thread_id in ("swept", "updated"):
        assert nursery.run("scenario", str(scenario), database.url, thread_id) == KILLED
    graph = build(scenario.graph, saver, never_again)
    call = messages_of(graph, "updated")[-1].tool_calls[0]
    graph.update_state(
        thread("updated"),
        {"messages": [ToolMessage("cut off", tool_call_id=call["id"], name=call["name"])]},
        as_node="tools",
    )

    assert verdicts(sweep(database)) == {("swept", ""): Verdict.REPAIRED}

    swept, updated = (graph.get_state(thread(name)) for name in ("swept", "updated"))
    assert swept.next == updated.next != ()
    assert swept.values.keys() == updated.values.keys()
    assert [_without_wording(message) for message in swept.values["messages"]] == [
        _without_wording(message) for message in updated.values["messages"]
    ]
    assert [task.name for task in swept.tasks] == [task.name for task in updated.tasks]
    assert swept.interrupts == updated.interrupts == ()


def _without_wording(message: AIMessage | HumanMessage | ToolMessage) -> dict[str, Any]:
    """A message without its id and, for the placeholder, without what it says of itself."""
    fields = message.model_dump(exclude={"id"})
    if isinstance(message, ToolMessage) and message.name == "slow":
        for own in ("content", "status", "additional_kwargs"):
            del fields[own]
    return fields


@pytest.mark.parametrize("name", GRAPHS)
def test_killed_behind_the_tools_keeps_every_result(
    name: str, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    scenario = Scenario(name, "three-calls")
    for thread_id in ("continued", "told"):
        code = nursery.run("die_behind_the_tools", str(scenario), database.url, thread_id)
        assert code == KILLED

    assert_repaired(database, ("continued", ""), ("told", ""))

    graph = build(name, saver, never_again)
    for thread_id in ("continued", "told"):
        messages = messages_of(graph, thread_id)
        assert_accepted(messages)
        assert results(messages) == {
            "call_1_1": "fast call_1_1",
            "call_1_2": "slow finished",
            "call_1_3": "fast call_1_3",
        }
    answer = graph.invoke(None, thread("continued"), durability="sync")
    assert answer["messages"][-1].text == (
        "The tools said: fast call_1_1 / slow finished / fast call_1_3"
    )
    answer = graph.invoke(said("Are you there?"), thread("told"), durability="sync")
    assert answer["messages"][-1].text == "You said: Are you there?"
