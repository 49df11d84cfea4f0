"""Programs before and after a deploy that gave a class, or a key of the state, another name.

What is called `old` here is what was deployed first: LangGraph finds its classes in a module that
the tests take away again.
"""

import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, make_dataclass
from types import ModuleType
from typing import Annotated, Any

from deepagents._messages_reducer import _messages_delta_reducer as delta_reducer
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict

from repair_service.demo.programs import Graph, Saver


@dataclass(frozen=True)
class Names:
    """The names of one deploy."""

    module: str
    item: str
    said: str


OLD = Names("shop_before.models", "Item", "Said")
NEW = Names("shop_after.core.basket", "Thing", "Spoken")


@contextmanager
def deployed(names: Names) -> Iterator[tuple[Any, Any]]:
    """The deploy's two classes, to be imported while it lasts."""
    item: Any = make_dataclass(names.item, [("name", str), ("inner", Any, None)])
    said: Any = type(names.said, (HumanMessage,), {"__module__": names.module})
    item.__module__ = names.module
    parts = names.module.split(".")
    made = {".".join(parts[: n + 1]): ModuleType(parts[n]) for n in range(len(parts))}
    module = made[names.module]
    setattr(module, names.item, item)
    setattr(module, names.said, said)
    sys.modules.update(made)
    try:
        yield item, said
    finally:
        for name in made:
            del sys.modules[name]


def shop(saver: Saver, item: Any, said: Any, *, delta: bool = False) -> Graph:
    """Puts things into a basket, a task for each, and asks about one of them."""
    merged = (
        Annotated[list[Any], DeltaChannel(delta_reducer, snapshot_frequency=50)]
        if delta
        else Annotated[list[Any], add_messages]
    )
    state: Any = TypedDict(  # type: ignore[operator]
        "state", {"messages": merged, "basket": Annotated[list[Any], operator.add], "last": Any}
    )

    def plan(state: Any) -> Any:
        return {"messages": [said("planned")], "last": item("last", inner=item("deep"))}

    def fan(state: Any) -> Any:
        return [Send("put", {"thing": item(f"thing {n}")}) for n in range(2)]

    def put(state: Any) -> Any:
        thing = state["thing"]
        assert isinstance(thing, item), thing
        if thing.name == "thing 1":
            answer = interrupt({"about": thing})
            return {"basket": [item(f"{answer}")]}
        return {"basket": [thing], "messages": [said("put")]}

    def close(state: Any) -> Any:
        things = [*state["basket"], state["last"], state["last"].inner]
        assert all(isinstance(thing, item) for thing in things), things
        assert any(isinstance(message, said) for message in state["messages"])
        return {"messages": [AIMessage(", ".join(thing.name for thing in things))]}

    builder = StateGraph(state)
    builder.add_node("plan", plan)
    builder.add_node("put", put)
    builder.add_node("close", close)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", fan, ["put"])
    builder.add_edge("put", "close")
    builder.add_edge("close", END)
    return builder.compile(checkpointer=saver)


def talk(
    saver: Saver,
    key: str,
    *,
    delta: bool = False,
    ask: bool = True,
    speaker: str = "speak",
    **options: Any,
) -> Graph:
    """Counts and talks; its list of messages has a name of its own, and so has its count."""
    merged = (
        Annotated[list[Any], DeltaChannel(delta_reducer, snapshot_frequency=50)]
        if delta
        else Annotated[list[Any], add_messages]
    )
    count = f"{key}_count"
    state: Any = TypedDict("state", {key: merged, count: int})  # type: ignore[operator]

    def speak(state: Any) -> Any:
        told = interrupt("More?") if ask else "nothing"
        return {key: [AIMessage(f"told {told}, {len(state[key])} before")]}

    def add_up(state: Any) -> Any:
        return {count: state.get(count, 0) + 1, key: [AIMessage("counted")]}

    def close(state: Any) -> Any:
        return {key: [AIMessage(f"round {state[count]} of {len(state[key])}")]}

    builder = StateGraph(state)
    builder.add_node(speaker, speak)
    builder.add_node("add_up", add_up)
    builder.add_node("close", close)
    builder.add_edge(START, speaker)
    builder.add_edge(START, "add_up")
    builder.add_edge([speaker, "add_up"], "close")
    return builder.compile(checkpointer=saver, **options)
