"""A thread that was carried over goes on as one that the new program alone ever ran.

Each program is stopped in one way, in the old graph and in the new one; the old thread is carried
over, and both go on in the new graph: with the same step pending, the same questions and the same
end.
"""

import contextlib
from dataclasses import replace
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from repair_service.demo.programs import Graph, Saver, thread
from repair_service.repair.verdict import Migration, Policy, Verdict
from tests.acceptance.service import audit, sweep
from tests.acceptance.stopped import (
    ANSWER,
    CASES,
    MIGRATION,
    NEW,
    OLD,
    POLICY,
    Broken,
    Fails,
    State,
    asks,
    chain,
    says,
    three,
)
from tests.conftest import Database


def seen(graph: Graph, name: str) -> list[Any]:
    """What LangGraph says of a thread, but for ids."""
    state = graph.get_state(thread(name), subgraphs=True)
    return [
        state.values,
        state.next,
        sorted(
            (each.name, [asked.value for asked in each.interrupts], str(each.error), each.result)
            for each in state.tasks
        ),
        [
            (below.state.values, below.state.next)
            for below in state.tasks
            if below.state is not None and not isinstance(below.state, dict)
        ],
    ]


def give(graph: Graph, name: str, values: tuple[Any, ...]) -> list[list[Any]]:
    """Give one input after the other; what is seen of the thread behind each."""
    found = []
    for value in values:
        with contextlib.suppress(Broken):
            graph.invoke(value, thread(name), durability="sync")
        found.append(seen(graph, name))
    return found


@pytest.mark.parametrize("name", CASES)
def test_it_goes_on_as_the_new_program_would(
    name: str, database: Database, saver: PostgresSaver
) -> None:
    case, fails = CASES[name], Fails()
    old, new = (case.make(saver, gate, fails) for gate in (OLD, NEW))
    give(old, "carried", case.inputs)
    give(new, "native", case.inputs)

    (done,) = sweep(database, case.policy)

    assert (done.thread_id, done.verdict) == ("carried", Verdict.REPAIRED), done.reason
    assert audit(database, case.policy) == []
    assert seen(new, "carried") == seen(new, "native")
    assert seen(new, "carried")[1] != ()
    fails.on = False
    assert give(new, "carried", case.goes_on) == give(new, "native", case.goes_on)
    assert seen(new, "carried")[1] == ()


@pytest.mark.parametrize("removed", [False, True])
def test_a_thread_at_rest_passes_the_static_breakpoints_of_the_new_graph(
    removed: bool, database: Database, saver: PostgresSaver
) -> None:
    old = three(saver, OLD, Fails())
    old.invoke({"text": "hello"}, thread("rests"))
    if removed:
        new = chain(("first", says("first")), ("last", says("last"))).compile(
            checkpointer=saver, interrupt_before=["last"]
        )
        migration = Migration("nodes", {}, frozenset({OLD}))
    else:
        new = three(saver, NEW, Fails(), interrupt_before=["last"])
        migration = MIGRATION
    policy = Policy(min_idle=0, migration=migration)
    assert audit(database, policy) == []

    (done,) = sweep(database, replace(policy, breakpoints=frozenset({"last"})))

    assert done.verdict is Verdict.REPAIRED, done.reason
    new.invoke({"text": "again"}, thread("rests"))
    assert new.get_state(thread("rests")).next == ("last",)
    new.invoke(None, thread("rests"))
    assert new.get_state(thread("rests")).next == ()


def test_without_the_migration_it_stops_there_for_ever(
    database: Database, saver: PostgresSaver
) -> None:
    """What LangGraph does, so that a release that mends it is seen."""
    three(saver, OLD, Fails()).invoke({"text": "hello"}, thread("rests"))
    new = three(saver, NEW, Fails(), interrupt_before=["last"])
    new.invoke({"text": "again"}, thread("rests"))
    for _ in range(3):
        new.invoke(None, thread("rests"))
        assert new.get_state(thread("rests")).next == ("last",)


@pytest.mark.parametrize("beside", ["other", "a+b"])
def test_a_barrier_that_may_wait_for_other_nodes_is_left_to_a_person(
    beside: str, database: Database, saver: PostgresSaver
) -> None:
    """`join:a+b:last` is of two nodes, or of one whose name has a plus."""

    def program(sender: str) -> Graph:
        builder = StateGraph(State)
        builder.add_node(sender, asks)
        builder.add_node("b", says("b"))
        builder.add_node(beside, says("beside"))
        builder.add_node("last", says("last"))
        for name in (sender, "b", beside):
            builder.add_edge(START, name)
        builder.add_edge([sender, "b"], "last")
        return builder.compile(checkpointer=saver)

    old = program("a")
    for each in ("first", "waits"):
        old.invoke({"text": "hello"}, thread(each))
    old.invoke(ANSWER, thread("waits"))
    old.invoke({"text": "again"}, thread("waits"))
    policy = Policy(min_idle=0, migration=Migration("nodes", {"a": "x"}, frozenset()))
    found = {each.thread_id: each for each in sweep(database, policy)}
    if beside == "a+b":
        assert found["waits"].verdict is Verdict.MANUAL
        assert "+" in found["waits"].reason
        assert old.invoke(ANSWER, thread("waits"))["log"][-1] == "last"
    else:
        assert found["waits"].verdict is Verdict.REPAIRED
        assert program("x").invoke(ANSWER, thread("waits"))["log"][-1] == "last"


def workflow(saver: Saver, name: str, *, calls: bool) -> Graph:
    """A workflow of the functional API that asks, behind a task that it calls or at once."""

    @task
    def work(text: str) -> str:
        return f"{text} worked"

    def run(text: str) -> str:
        done = work(text).result() if calls else text
        return f"{done}, told {interrupt('Well?')}"

    run.__name__ = name
    return entrypoint(checkpointer=saver)(run)


@pytest.mark.parametrize("calls", [False, True])
def test_a_workflow_that_asks_in_its_first_run_is_left_to_a_person(
    calls: bool, database: Database, saver: PostgresSaver
) -> None:
    """Only its writes name it by then, and what it called is found by where that stood."""
    old = workflow(saver, OLD, calls=calls)
    old.invoke("hello", thread("waits"))
    (done,) = sweep(database, POLICY)
    assert done.verdict is Verdict.MANUAL
    told = old.invoke(Command(resume="yes"), thread("waits"))
    assert told == f"hello{' worked' if calls else ''}, told yes"


@pytest.mark.parametrize("calls", [False, True])
def test_a_workflow_that_asks_in_a_later_run_goes_on_unless_it_called_something(
    calls: bool, database: Database, saver: PostgresSaver
) -> None:
    old, new = (workflow(saver, name, calls=calls) for name in (OLD, NEW))
    old.invoke("hello", thread("waits"))
    old.invoke(Command(resume="yes"), thread("waits"))
    old.invoke("again", thread("waits"))
    (done,) = sweep(database, POLICY)
    assert done.verdict is (Verdict.MANUAL if calls else Verdict.REPAIRED)
    on = old if calls else new
    told = on.invoke(Command(resume="yes"), thread("waits"))
    assert told == f"again{' worked' if calls else ''}, told yes"
