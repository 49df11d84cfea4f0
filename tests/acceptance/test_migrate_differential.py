"""A thread that was carried over goes on as one that the new program alone ever ran.

Each program is stopped in one way, in the old graph and in the new one; the old thread is carried
over, and both go on in the new graph: with the same step pending, the same questions and the same
end.
"""

import contextlib
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from repair_service.demo.programs import Graph, Saver, thread
from repair_service.repair.verdict import Migration, Policy, Verdict
from tests.acceptance.service import audit, sweep
from tests.conftest import Database

OLD, NEW = "approve", "review"
MIGRATION = Migration("nodes", {OLD: NEW, f"{OLD}|{OLD}": NEW}, frozenset())
POLICY = Policy(min_idle=0, migration=MIGRATION)
WITH_BREAKPOINTS = Policy(min_idle=0, migration=MIGRATION, breakpoints=frozenset({"last"}))


class State(TypedDict, total=False):
    text: str
    log: Annotated[list[str], operator.add]


class Broken(Exception):
    """A node fails, as a killed process leaves it: what was written by then is on disk."""


@dataclass
class Fails:
    """Whether the programs still fail; told once a stop is reached."""

    on: bool = True

    def here(self) -> None:
        if self.on:
            raise Broken


Making = Callable[[Saver, str, Fails], Graph]


@dataclass(frozen=True)
class Case:
    """A program, and how it is driven.

    Attributes:
        make: Makes the graph, with the name of the node that was renamed.
        inputs: What is given before the stop.
        goes_on: What is given behind it.
        policy: What the operator says of it.
    """

    make: Making
    inputs: tuple[Any, ...] = ({"text": "hello"},)
    goes_on: tuple[Any, ...] = (None,)
    policy: Policy = POLICY


def says(line: str) -> Callable[[State], State]:
    def node(state: State) -> State:
        return {"log": [line]}

    return node


def chain(*nodes: tuple[str, Callable[..., Any]]) -> "StateGraph[Any, Any, Any, Any]":
    """A graph of nodes one behind the other."""
    builder = StateGraph(State)
    before = START
    for name, node in nodes:
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    builder.add_edge(before, END)
    return builder


def asks(state: State) -> State:
    return {"log": [f"told {interrupt('Well?')}"]}


def three(saver: Saver, gate: str, fails: Fails, **options: Any) -> Graph:
    return chain(("first", says("first")), (gate, says("gate")), ("last", says("last"))).compile(
        checkpointer=saver, **options
    )


def before(saver: Saver, gate: str, fails: Fails) -> Graph:
    return three(saver, gate, fails, interrupt_before=[gate])


def after(saver: Saver, gate: str, fails: Fails) -> Graph:
    return three(saver, gate, fails, interrupt_after=["first"])


def before_and_after(saver: Saver, gate: str, fails: Fails) -> Graph:
    return three(saver, gate, fails, interrupt_before=[gate, "last"], interrupt_after=[gate])


def before_the_next(saver: Saver, gate: str, fails: Fails) -> Graph:
    """It has not come to the breakpoint yet: it fails in the node before."""

    def first(state: State) -> State:
        fails.here()
        return {"log": ["first"]}

    return chain((gate, first), ("last", says("last"))).compile(
        checkpointer=saver, interrupt_before=["last"]
    )


def asks_at_a_breakpoint(saver: Saver, gate: str, fails: Fails) -> Graph:
    return chain(("first", says("first")), (gate, asks), ("last", says("last"))).compile(
        checkpointer=saver, interrupt_before=[gate]
    )


def fails_beside_one_that_finished(saver: Saver, gate: str, fails: Fails) -> Graph:
    def gate_fails(state: State) -> State:
        fails.here()
        return {"log": ["gate"]}

    builder = StateGraph(State)
    builder.add_node(gate, gate_fails)
    builder.add_node("beside", says("beside"))
    builder.add_node("join", says("join"))
    builder.add_edge(START, "beside")
    builder.add_edge(START, gate)
    builder.add_edge([gate, "beside"], "join")
    return builder.compile(checkpointer=saver)


def deferred(saver: Saver, gate: str, fails: Fails) -> Graph:
    """A node that waits for the rest of the graph, and another path to it."""
    builder = StateGraph(State)
    builder.add_node(gate, asks)
    builder.add_node("quick", says("quick"))
    builder.add_node("last", says("last"), defer=True)
    builder.add_edge(START, gate)
    builder.add_edge(START, "quick")
    builder.add_edge(gate, "last")
    builder.add_edge("quick", "last")
    return builder.compile(checkpointer=saver)


def itself_deferred(saver: Saver, gate: str, fails: Fails) -> Graph:
    builder = StateGraph(State)
    builder.add_node("quick", says("quick"))
    builder.add_node("slow", asks)
    builder.add_node(gate, says("gate"), defer=True)
    for name in ("quick", "slow"):
        builder.add_edge(START, name)
        builder.add_edge(name, gate)
    return builder.compile(checkpointer=saver)


def conditional(saver: Saver, gate: str, fails: Fails) -> Graph:
    builder = StateGraph(State)
    builder.add_node("first", says("first"))
    builder.add_node(gate, asks)
    builder.add_node("last", says("last"))
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", lambda state: "on", {"on": gate, "off": END})
    builder.add_conditional_edges(gate, lambda state: "last", ["last", END])
    return builder.compile(checkpointer=saver)


def goes_to(saver: Saver, gate: str, fails: Fails) -> Graph:
    """By `Command(goto=...)`, and back once."""

    def first(state: State) -> Command[Any]:
        return Command(update={"log": ["first"]}, goto=gate)

    def ask(state: State) -> Command[Any]:
        said = interrupt("Well?")
        return Command(update={"log": [said]}, goto="first" if said == "back" else END)

    builder = StateGraph(State)
    builder.add_node("first", first, destinations=(gate,))
    builder.add_node(gate, ask, destinations=("first", END))
    builder.add_edge(START, "first")
    return builder.compile(checkpointer=saver)


def sends(saver: Saver, gate: str, fails: Fails) -> Graph:
    """Of three Sends one has finished, one asks and one fails."""

    def each(state: Any) -> State:
        if state["item"] == 1:
            return {"log": [f"1 {interrupt('One?')}"]}
        if state["item"] == 2:
            fails.here()
        return {"log": [f"{state['item']} done"]}

    builder = StateGraph(State)
    builder.add_node("plan", says("plan"))
    builder.add_node(gate, each)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan", lambda state: [Send(gate, {"item": number}) for number in range(3)], [gate]
    )
    return builder.compile(checkpointer=saver)


def in_a_sub_graph(saver: Saver, gate: str, fails: Fails) -> Graph:
    """A sub-graph that failed behind its first node, in a node that was renamed."""

    def gate_fails(state: State) -> State:
        fails.here()
        return {"log": ["inner gate"]}

    inner = chain(("inner first", says("inner first")), (gate, gate_fails)).compile()
    return chain(("first", says("first")), (gate, inner), ("last", says("last"))).compile(
        checkpointer=saver
    )


def at_a_breakpoint_of_a_sub_graph(saver: Saver, gate: str, fails: Fails) -> Graph:
    inner = chain(("inner first", says("inner first")), (gate, says("inner gate"))).compile(
        interrupt_before=[gate]
    )
    return chain((gate, inner), ("last", says("last"))).compile(checkpointer=saver)


def asks_twice(saver: Saver, gate: str, fails: Fails) -> Graph:
    def ask(state: State) -> State:
        first, second = interrupt("First?"), interrupt("Second?")
        return {"log": [f"{first} {second}"]}

    return chain((gate, ask), ("last", says("last"))).compile(checkpointer=saver)


def two_ask(saver: Saver, gate: str, fails: Fails) -> Graph:
    builder = StateGraph(State)
    builder.add_node(gate, asks)
    builder.add_node("other", asks)
    builder.add_edge(START, gate)
    builder.add_edge(START, "other")
    return builder.compile(checkpointer=saver)


ANSWER = Command(resume="yes")

CASES = {
    "before": Case(before),
    "after": Case(after, goes_on=(None,)),
    "before and after": Case(before_and_after, goes_on=(None, None, None)),
    "before, passed": Case(
        before_and_after, inputs=({"text": "a"}, None), goes_on=(None,), policy=WITH_BREAKPOINTS
    ),
    "before the next": Case(before_the_next, goes_on=(None, None)),
    "asks at a breakpoint": Case(
        asks_at_a_breakpoint, inputs=({"text": "a"}, None), goes_on=(ANSWER,)
    ),
    "fails beside one that finished": Case(fails_beside_one_that_finished),
    "deferred": Case(deferred, goes_on=(ANSWER,)),
    "itself deferred": Case(itself_deferred, goes_on=(ANSWER,)),
    "conditional": Case(conditional, goes_on=(ANSWER,)),
    "goes to": Case(goes_to, goes_on=(Command(resume="back"), ANSWER)),
    "goes to, second round": Case(
        goes_to, inputs=({"text": "a"}, Command(resume="back")), goes_on=(ANSWER,)
    ),
    "sends": Case(sends, goes_on=(None, ANSWER)),
    "in a sub-graph": Case(in_a_sub_graph),
    "at a breakpoint of a sub-graph": Case(at_a_breakpoint_of_a_sub_graph),
    "asks twice": Case(
        asks_twice, inputs=({"text": "a"}, Command(resume="1")), goes_on=(Command(resume="2"),)
    ),
    "a new message instead": Case(conditional, goes_on=({"text": "instead"}, ANSWER)),
}


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
