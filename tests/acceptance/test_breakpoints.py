"""A node before which the store's runs stop and are resumed, again and again, is a breakpoint."""

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.programs import (
    EARLIER,
    GRAPHS,
    LINES,
    Builder,
    Graph,
    said,
    thread,
)
from repair_service.demo.witness import KILLED
from repair_service.repair.verdict import Policy, Verdict
from tests.acceptance.nursery import Nursery
from tests.acceptance.programs import FAMILIES
from tests.acceptance.script import MODEL, all_tools
from tests.acceptance.service import (
    assert_accepted,
    assert_repaired,
    assert_waiting,
    audit,
    never_again,
    results,
    sweep,
    verdicts,
)
from tests.conftest import Database

STOPPING = ("create_agent", "react_v1", "tool_node")
"""Graphs that run their tools in a task for each call, in one task, and in a node by hand."""


def quick(after: int) -> str:
    """A tool `slow` that lives."""
    return "slow finished"


def stopping(name: str, saver: PostgresSaver) -> Graph:
    """A graph that stops before its tools."""
    build: Builder = GRAPHS[name]
    return build(MODEL, all_tools(quick), saver, interrupt_before=["tools"])


def take_turns(graph: Graph, thread_id: str, turns: int) -> None:
    """So many turns in which the run stops before the tools and somebody lets it go on."""
    for _ in range(turns):
        graph.invoke(said(EARLIER), thread(thread_id), durability="sync")
        state = graph.invoke(None, thread(thread_id), durability="sync")
        assert state["messages"][-1].text.startswith("The tools said: fast ")


@pytest.mark.parametrize("name", STOPPING)
def test_a_thread_that_stopped_there_before_waits(
    name: str, database: Database, saver: PostgresSaver
) -> None:
    graph = stopping(name, saver)
    take_turns(graph, "stops", 2)
    graph.invoke(said(LINES["one-call"]), thread("stops"), durability="sync")
    before = graph.get_state(thread("stops"))
    assert set(before.next) == {"tools"}

    assert_waiting(database, "stops")

    (item,) = audit(database)
    assert "'tools'" in item.reason
    assert "breakpoint" in item.reason
    assert "--no-infer-breakpoints" in item.reason
    assert graph.get_state(thread("stops")) == before
    state = graph.invoke(None, thread("stops"), durability="sync")
    assert results(state["messages"])["call_3_1"] == "slow finished"


def test_a_thread_that_stops_for_the_first_time_waits_where_others_stopped(
    database: Database, saver: PostgresSaver
) -> None:
    graph = stopping("tool_node", saver)
    take_turns(graph, "another", 2)
    graph.invoke(said(LINES["one-call"]), thread("first"), durability="sync")

    assert_waiting(database, "first")


def test_the_operator_may_say_that_there_is_none(database: Database, saver: PostgresSaver) -> None:
    graph = stopping("create_agent", saver)
    take_turns(graph, "stops", 2)
    graph.invoke(said(LINES["one-call"]), thread("stops"), durability="sync")

    done = sweep(database, Policy(min_idle=0, infer_breakpoints=False))

    assert verdicts(done) == {("stops", ""): Verdict.REPAIRED}
    assert_accepted(graph.get_state(thread("stops")).values["messages"])
    state = graph.invoke(said("Are you there?"), thread("stops"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"


def die_and_go_on(nursery: Nursery, database: Database, saver: PostgresSaver, name: str) -> None:
    """A run that died in its tool, and that somebody let go on with `invoke(None)`."""
    inputs = [LINES["one-call"]]
    assert nursery.run("talk", "agent", database.url, name, inputs) == KILLED
    graph = FAMILIES["agent"](saver, quick)
    state = graph.invoke(None, thread(name), durability="sync")
    assert state["messages"][-1].text == "The tools said: slow finished"


def test_deaths_that_somebody_let_go_on_are_no_breakpoint(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    # One thread ran without a stop; two have died before, and were let go on each time.
    assert nursery.run("talk", "agent", database.url, "healthy", [EARLIER, EARLIER]) == 0
    for thread_id in ("continued", "told"):
        die_and_go_on(nursery, database, saver, thread_id)
        assert nursery.run("talk", "agent", database.url, thread_id, [LINES["one-call"]]) == KILLED

    done = assert_repaired(database, ("continued", ""), ("told", ""))

    assert [item.resume for item in done] == ["continue", "continue"]
    graph = FAMILIES["agent"](saver, never_again)
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text.startswith("The tools said: ")
    for thread_id in ("continued", "told"):
        state = graph.invoke(said("Are you there?"), thread(thread_id), durability="sync")
        assert state["messages"][-1].text == "You said: Are you there?"
        assert_accepted(state["messages"])


def test_a_run_that_went_through_since_says_that_it_is_none(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    for _ in range(2):
        die_and_go_on(nursery, database, saver, "died")
    inputs = [EARLIER, LINES["one-call"]]
    assert nursery.run("talk", "agent", database.url, "died", inputs) == KILLED

    assert_repaired(database, ("died", ""))
