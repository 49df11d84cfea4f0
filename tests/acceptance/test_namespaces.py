"""The death was inside a sub-graph: the namespace that holds the call is repaired, no other."""

from collections.abc import Mapping
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.programs import Graph, said, thread
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

EARLIER = "Call fast."
KEPT = {"call_2_1": "fast call_2_1", "call_2_3": "fast call_2_3"}
NODES = {
    "agent_as_node": ("assistant",),
    "agent_with_memory": ("assistant",),
    "two_levels_deep": ("team", "assistant"),
}


def innermost(graph: Graph, thread_id: str) -> tuple[str, Mapping[str, Any]]:
    """The namespace and the values of the sub-graph that is pending, as LangGraph finds it."""
    state = graph.get_state(thread(thread_id), subgraphs=True)
    while state.tasks and hasattr(state.tasks[0].state, "values"):
        state = state.tasks[0].state
    return state.config["configurable"]["checkpoint_ns"], state.values


@pytest.mark.parametrize("family", NODES)
def test_an_agent_below_a_graph_goes_on_both_ways(
    family: str, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES[family](saver, never_again)
    heads = []
    for thread_id in ("continued", "told"):
        inputs = [EARLIER, "Call fast, slow and fast."]
        assert nursery.run("talk", family, database.url, thread_id, inputs) == KILLED
        namespace, _ = innermost(graph, thread_id)
        assert [part.split(":")[0] for part in namespace.split("|")] == list(NODES[family])
        heads.append((thread_id, namespace))

    done = assert_repaired(database, *heads)

    assert [item.resume for item in done] == ["continue", "continue"]
    for thread_id, namespace in heads:
        found, values = innermost(graph, thread_id)
        assert found == namespace
        assert_accepted(values["messages"])
        assert results(values["messages"]).items() >= KEPT.items()

    answer = graph.invoke(None, thread("continued"), durability="sync")
    assert answer["messages"][-1].text.startswith("The tools said: fast call_2_1 / ")
    answer = graph.invoke(said("Are you there?"), thread("told"), durability="sync")
    assert answer["messages"][-1].text == "You said: Are you there?"
    assert audit(database) == []


def test_the_agent_that_handed_over_is_dead_and_left_alone(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["handoff"](saver, never_again)
    heads = []
    for thread_id in ("continued", "told"):
        inputs = ["Hand over."]
        assert nursery.run("talk", "handoff", database.url, thread_id, inputs) == KILLED
        namespace, values = innermost(graph, thread_id)
        assert namespace.startswith("second:")
        assert values["messages"][-1].tool_calls[0]["name"] == "slow"
        heads.append((thread_id, namespace))

    assert_repaired(database, *heads)

    for thread_id in ("continued", "told"):
        assert_accepted(innermost(graph, thread_id)[1]["messages"])
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert_accepted(state["messages"])
    state = graph.invoke(said("Are you there?"), thread("told"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"
    assert audit(database) == []


def test_a_finished_turn_leaves_nothing_to_repair_below(
    database: Database, nursery: Nursery
) -> None:
    for family in NODES:
        assert nursery.run("talk", family, database.url, family, [EARLIER, EARLIER]) == 0
    assert audit(database) == []
