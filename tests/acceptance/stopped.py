"""Programs that are stopped at one of their nodes, each in one way, and how they go on."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from repair_service.demo.programs import Graph, Saver
from repair_service.repair.verdict import Migration, Policy

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
