"""Programs before and after a deploy that renamed a node, for every way to be stopped at it."""

import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from repair_service.demo.programs import Graph, Saver


class State(TypedDict, total=False):
    """What the programs keep."""

    text: str
    log: Annotated[list[str], operator.add]
    answer: str


Program = Callable[..., Graph]


def approval(saver: Saver, gate: str, **options: Any) -> Graph:
    """Drafts, asks for leave at `gate`, and sends or starts anew."""

    def draft(state: State) -> State:
        return {"log": ["drafted"]}

    def ask(state: State) -> State:
        return {"answer": interrupt({"question": "May I?"}), "log": ["asked"]}

    def send(state: State) -> State:
        return {"log": [f"sent: {state['answer']}"]}

    builder = StateGraph(State)
    builder.add_node("draft", draft)
    builder.add_node(gate, ask)
    builder.add_node("send", send)
    builder.add_edge(START, "draft")
    builder.add_edge("draft", gate)
    builder.add_edge(gate, "send")
    builder.add_edge("send", END)
    return builder.compile(checkpointer=saver, **options)


def twice(saver: Saver, gate: str) -> Graph:
    """Asks two questions in a row."""

    def ask(state: State) -> State:
        first, second = interrupt("First?"), interrupt("Second?")
        return {"log": [f"{first} {second}"]}

    builder = StateGraph(State)
    builder.add_node(gate, ask)
    builder.add_edge(START, gate)
    return builder.compile(checkpointer=saver)


def siblings(saver: Saver, gate: str, fast: str = "fast") -> Graph:
    """One branch asks, the other has finished; a barrier waits for both."""

    def ask(state: State) -> State:
        return {"log": [f"told {interrupt('Well?')}"]}

    def work(state: State) -> State:
        return {"log": ["worked"]}

    def join(state: State) -> State:
        return {"log": ["joined"]}

    builder = StateGraph(State)
    builder.add_node(gate, ask)
    builder.add_node(fast, work)
    builder.add_node("join", join)
    builder.add_edge(START, gate)
    builder.add_edge(START, fast)
    builder.add_edge([gate, fast], "join")
    return builder.compile(checkpointer=saver)


def uneven(saver: Saver, gate: str, fast: str = "fast") -> Graph:
    """A barrier at which the short branch has arrived while the long one asks."""

    def ask(state: State) -> State:
        return {"log": [f"told {interrupt('Well?')}"]}

    def work(state: State) -> State:
        return {"log": ["worked"]}

    def join(state: State) -> State:
        return {"log": ["joined"]}

    builder = StateGraph(State)
    builder.add_node("first", work)
    builder.add_node(gate, ask)
    builder.add_node(fast, work)
    builder.add_node("join", join)
    builder.add_edge(START, "first")
    builder.add_edge(START, fast)
    builder.add_edge("first", gate)
    builder.add_edge([gate, fast], "join")
    return builder.compile(checkpointer=saver)


def fan_out(saver: Saver, worker: str) -> Graph:
    """A task for each item by `Send`; one of them asks, and one has finished."""

    def plan(state: State) -> State:
        return {"log": ["planned"]}

    def each(state: Any) -> State:
        if state["item"] == 1:
            return {"log": [f"1 {interrupt('One?')}"]}
        return {"log": [f"{state['item']} done"]}

    def fan(state: State) -> list[Send]:
        return [Send(worker, {"item": number}) for number in range(3)]

    builder = StateGraph(State)
    builder.add_node("plan", plan)
    builder.add_node(worker, each)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", fan, [worker])
    return builder.compile(checkpointer=saver)


def nested(saver: Saver, team: str, gate: str) -> Graph:
    """A graph in a graph in a graph; the innermost asks."""

    def before(state: State) -> State:
        return {"log": ["inner began"]}

    def ask(state: State) -> State:
        return {"log": [f"inner told {interrupt('Deep?')}"]}

    inner = StateGraph(State)
    inner.add_node("before", before)
    inner.add_node(gate, ask)
    inner.add_edge(START, "before")
    inner.add_edge("before", gate)
    middle = StateGraph(State)
    middle.add_node("wait", before)
    middle.add_node("deep", inner.compile())
    middle.add_edge(START, "wait")
    middle.add_edge("wait", "deep")
    outer = StateGraph(State)
    outer.add_node(team, middle.compile())
    outer.add_edge(START, team)
    return outer.compile(checkpointer=saver)


def remembering(saver: Saver, team: str, gate: str = "ask") -> Graph:
    """A sub-graph with a memory of its own, which asks where the text says so."""

    def ask(state: State) -> State:
        return {"log": [f"told {interrupt('Well?')}" if state["text"] == "ask" else "noted"]}

    inner = StateGraph(State)
    inner.add_node(gate, ask)
    inner.add_edge(START, gate)
    outer = StateGraph(State)
    outer.add_node(team, inner.compile(checkpointer=True))
    outer.add_edge(START, team)
    return outer.compile(checkpointer=saver)


def loop(saver: Saver, gate: str) -> Graph:
    """Comes back to the same node until it is told to stop."""

    def ask(state: State) -> Command[Any]:
        said = interrupt(f"Round {len(state.get('log', []))}?")
        return Command(update={"log": [said]}, goto=END if said == "stop" else gate)

    builder = StateGraph(State)
    builder.add_node(gate, ask, destinations=(gate, END))
    builder.add_edge(START, gate)
    return builder.compile(checkpointer=saver)


def config(name: str) -> Mapping[str, Any]:
    """A thread's config."""
    return {"configurable": {"thread_id": name}}
