"""Threads with several leaves: the newest one is the thread, the others are left as they are."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.programs import EARLIER, LINES, Graph, said, thread
from repair_service.demo.witness import KILLED
from repair_service.repair.verdict import Verdict
from tests.acceptance.nursery import Nursery
from tests.acceptance.programs import FAMILIES
from tests.acceptance.service import (
    assert_accepted,
    assert_repaired,
    audit,
    never_again,
    results,
    rows,
    sweep,
    verdicts,
)
from tests.conftest import Database

KEPT = {"call_2_1": "fast call_2_1", "call_2_3": "fast call_2_3"}
BEFORE, BEHIND = -1.0, 1.0


def head_id(graph: Graph, thread_id: str) -> str:
    """The checkpoint that LangGraph takes for the thread's newest."""
    return str(graph.get_state(thread(thread_id)).config["configurable"]["checkpoint_id"])


def at(thread_id: str, checkpoint_id: str) -> RunnableConfig:
    """The configuration that names one checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_id": checkpoint_id}}


def start(nursery: Nursery, database: Database, graph: Graph, thread_id: str) -> tuple[str, str]:
    """A thread that has had a turn, and died in the next: the last ids of both."""
    assert nursery.run("talk", "agent", database.url, thread_id, [EARLIER]) == 0
    end_of_turn = head_id(graph, thread_id)
    assert nursery.run("talk", "agent", database.url, thread_id, [LINES["three-calls"]]) == KILLED
    return end_of_turn, head_id(graph, thread_id)


@pytest.fixture
def graph(saver: PostgresSaver) -> Graph:
    return FAMILIES["agent"](saver, never_again)


def assert_goes_on(graph: Graph, *, spoke: str = "The tools said: ") -> None:
    """`continued` goes on by itself, and both threads take a new message."""
    state: Any = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text.startswith(spoke)
    for thread_id in ("continued", "told"):
        state = graph.invoke(said("Are you there?"), thread(thread_id), durability="sync")
        assert state["messages"][-1].text == "You said: Are you there?"
        assert_accepted(state["messages"])


def test_a_leaf_that_was_left_for_a_newer_one_stays_as_it_is(
    database: Database, nursery: Nursery, graph: Graph
) -> None:
    end_of_turn, left = start(nursery, database, graph, "forked")
    graph.invoke(said("Are you there?"), at("forked", end_of_turn), durability="sync")
    assert head_id(graph, "forked") > left

    before = rows(database)
    assert sweep(database) == []
    assert rows(database) == before
    # Whoever goes back to it finds it as it was.
    assert graph.get_state(at("forked", left)).next == ("tools", "tools", "tools")


def test_the_newest_leaf_is_repaired_beside_the_older_ones(
    database: Database, nursery: Nursery, graph: Graph
) -> None:
    older = {}
    for thread_id in ("continued", "told"):
        end_of_turn, older[thread_id] = start(nursery, database, graph, thread_id)
        text = LINES["three-calls"]
        code = nursery.run("fork", "agent", database.url, thread_id, end_of_turn, text)
        assert code == KILLED
        assert head_id(graph, thread_id) > older[thread_id]

    assert_repaired(database, ("continued", ""), ("told", ""))

    for thread_id, left in older.items():
        messages = graph.get_state(thread(thread_id)).values["messages"]
        assert_accepted(messages)
        assert results(messages).items() >= KEPT.items()
        assert graph.get_state(at(thread_id, left)).next == ("tools", "tools", "tools")
    assert_goes_on(graph)
    assert audit(database) == []


def test_results_of_another_leaf_are_not_taken(
    database: Database, nursery: Nursery, graph: Graph
) -> None:
    end_of_turn, older = start(nursery, database, graph, "forked")
    text = LINES["three-calls"]
    assert nursery.run("fork", "agent", database.url, "forked", end_of_turn, text) == KILLED
    newer = head_id(graph, "forked")
    # Both leaves call by the same ids. On the newer one the siblings had not finished either.
    with database.connect() as connection:
        connection.execute("DELETE FROM checkpoint_writes WHERE checkpoint_id = %s", [newer])
        kept = connection.execute(
            "SELECT count(*) FROM checkpoint_writes WHERE checkpoint_id = %s", [older]
        ).fetchone()
    assert kept is not None
    assert kept[0] > 0

    (done,) = assert_repaired(database, ("forked", ""))

    assert [fault.mend for fault in done.faults] == ["placeholder"] * 3
    messages = graph.get_state(thread("forked")).values["messages"]
    assert_accepted(messages)
    assert not any(text.startswith("fast call_2") for text in results(messages).values())


@pytest.mark.parametrize("as_node", ["model", "__copy__"])
def test_a_head_that_is_an_update_or_a_copy_is_repaired(
    as_node: str, database: Database, nursery: Nursery, graph: Graph
) -> None:
    for thread_id in ("continued", "told"):
        end_of_turn, died = start(nursery, database, graph, thread_id)
        if as_node == "model":
            call = {"name": "slow", "args": {"after": 0}, "id": "made", "type": "tool_call"}
            spoken = {"messages": [AIMessage("", tool_calls=[call])]}
            graph.update_state(at(thread_id, end_of_turn), spoken, as_node=as_node)
        else:
            graph.update_state(at(thread_id, died), None, as_node=as_node)
        state = graph.get_state(thread(thread_id))
        assert state.metadata is not None
        assert state.metadata["source"] == ("update" if as_node == "model" else "fork")
        assert "tools" in state.next

    assert_repaired(database, ("continued", ""), ("told", ""))

    for thread_id in ("continued", "told"):
        assert_accepted(graph.get_state(thread(thread_id)).values["messages"])
    assert_goes_on(graph)
    assert audit(database) == []


def test_an_update_that_answered_the_calls_leaves_nothing_to_repair(
    database: Database, nursery: Nursery, graph: Graph
) -> None:
    _, died = start(nursery, database, graph, "updated")
    answers = [
        {"role": "tool", "content": "by hand", "tool_call_id": f"call_2_{number}", "name": "slow"}
        for number in (1, 2, 3)
    ]
    graph.update_state(at("updated", died), {"messages": answers}, as_node="tools")

    assert sweep(database) == []


def test_the_head_is_the_newest_id_and_not_the_row_written_last(
    database: Database, nursery: Nursery, graph: Graph
) -> None:
    died = {}
    for thread_id in ("continued", "told"):
        _, died[thread_id] = start(nursery, database, graph, thread_id)
        # A process whose clock is behind takes a message, and the provider refuses the list; all
        # that it writes stands before the head.
        written = len(rows(database)["checkpoints"])
        behind = [BEFORE, "talk", "agent", database.url, thread_id, ["Are you there?"]]
        assert nursery.run("with_clock", *behind) == 1
        assert len(rows(database)["checkpoints"]) > written
        assert head_id(graph, thread_id) == died[thread_id]

    assert_repaired(database, ("continued", ""), ("told", ""))

    for thread_id in ("continued", "told"):
        messages = graph.get_state(thread(thread_id)).values["messages"]
        assert_accepted(messages)
        assert results(messages).items() >= KEPT.items()
    assert_goes_on(graph)
    assert audit(database) == []


def test_a_head_from_a_clock_that_is_ahead_is_looked_at_later(
    database: Database, nursery: Nursery
) -> None:
    inputs = [EARLIER, LINES["one-call"]]
    code = nursery.run("with_clock", BEHIND, "talk", "agent", database.url, "ahead", inputs)
    assert code == KILLED

    before = rows(database)
    assert verdicts(sweep(database)) == {("ahead", ""): Verdict.ACTIVE}
    assert rows(database) == before
