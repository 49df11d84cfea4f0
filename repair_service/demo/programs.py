"""The programs that leave damaged threads behind: real LangGraph agents, killed inside a tool.

`python -m repair_service.demo.programs SCENARIO DATABASE_URL THREAD_ID` runs one of them to its
death. A scenario is `GRAPH:LINE`, or `GRAPH:LINE:history` for a thread that has had a turn before:
GRAPH is a key of `GRAPHS`, LINE a key of `LINES`.
"""

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, create_react_agent, tools_condition
from langgraph.types import interrupt

from repair_service.demo.model import Line, ScriptedModel
from repair_service.demo.witness import WitnessSaver

Graph = CompiledStateGraph[Any, Any, Any, Any]
Saver = BaseCheckpointSaver[Any] | bool | None
Slow = Callable[[int], str]

EARLIER = "Call fast."
"""The human text of the turn before, which ends well."""

LINES: Mapping[str, str] = {
    "one-call": "Call slow.",
    "three-calls": "Call fast, slow and fast.",
    "waiting": "Ask me first.",
}
"""What the person says, by the name of the line."""

SCRIPT: Mapping[str, Line] = {
    EARLIER: (("fast", {}),),
    LINES["one-call"]: (("slow", {"after": 0}),),
    LINES["three-calls"]: (("fast", {}), ("slow", {"after": 2}), ("fast", {})),
    LINES["waiting"]: (("approve", {"question": "May I book the flight?"}),),
}
"""What the model calls then. `slow` is told how many siblings to let finish before it dies."""


def quiet_tracing() -> None:
    """Keep LangSmith from sending anything, whatever the environment says."""
    for name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2"):
        os.environ[name] = "false"


def make_tools(slow: Slow) -> list[BaseTool]:
    """The tools of all programs.

    Args:
        slow: What the tool `slow` does; it is given its argument `after`.

    Returns:
        `fast`, which says "fast" and its call's id; `slow`; `approve`, which asks a person.
    """

    @tool
    def fast(tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Answer at once."""
        return f"fast {tool_call_id}"

    @tool("slow")
    def slow_tool(after: int = 0) -> str:
        """Take long."""
        return slow(after)

    @tool
    def approve(question: str) -> str:
        """Ask a person."""
        return f"approved: {interrupt(question)}"

    return [fast, slow_tool, approve]


def agent_graph(model: BaseChatModel, tools: list[BaseTool], saver: Saver, **options: Any) -> Graph:
    """LangChain's `create_agent`: one task for each call."""
    from langchain.agents import create_agent

    return create_agent(model, tools, checkpointer=saver, **options)


def react_graph(model: BaseChatModel, tools: list[BaseTool], saver: Saver, **options: Any) -> Graph:
    """LangGraph's `create_react_agent`, which is deprecated and is in many stores."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return create_react_agent(model, tools, checkpointer=saver, **options)


def react_v1_graph(
    model: BaseChatModel, tools: list[BaseTool], saver: Saver, **options: Any
) -> Graph:
    """`create_react_agent` version 1: one task for all calls."""
    return react_graph(model, tools, saver, version="v1", **options)


def react_v2_graph(
    model: BaseChatModel, tools: list[BaseTool], saver: Saver, **options: Any
) -> Graph:
    """`create_react_agent` version 2: one task for each call."""
    return react_graph(model, tools, saver, version="v2", **options)


def tool_node_graph(
    model: BaseChatModel, tools: list[BaseTool], saver: Saver, **options: Any
) -> Graph:
    """A StateGraph by hand with LangGraph's ToolNode: one task for all calls."""

    def chat(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("chat", chat)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "chat")
    builder.add_conditional_edges("chat", tools_condition, ["tools", END])
    builder.add_edge("tools", "chat")
    return builder.compile(checkpointer=saver, **options)


Builder = Callable[..., Graph]

GRAPHS: Mapping[str, Builder] = {
    "create_agent": agent_graph,
    "react_v1": react_v1_graph,
    "react_v2": react_v2_graph,
    "tool_node": tool_node_graph,
}
"""The ways to build an agent, by name."""

TASK_A_CALL = frozenset({"create_agent", "react_v2"})
"""The graphs that run each call as a task of its own, so that finished siblings are on disk."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a program does.

    Attributes:
        graph: Which graph, a key of `GRAPHS`.
        line: What the person says, a key of `LINES`.
        history: Whether the thread has had a turn before.
    """

    graph: str
    line: str
    history: bool = False

    @classmethod
    def parse(cls, text: str) -> "Scenario":
        """Read `GRAPH:LINE` or `GRAPH:LINE:history`.

        Raises:
            ValueError: Where it is neither.
        """
        graph, _, rest = text.partition(":")
        line, _, history = rest.partition(":")
        if graph not in GRAPHS or line not in LINES or history not in ("", "history"):
            raise ValueError(f"No such scenario: {text!r}.")
        return cls(graph, line, bool(history))

    def __str__(self) -> str:
        return f"{self.graph}:{self.line}" + (":history" if self.history else "")


def thread(thread_id: str) -> RunnableConfig:
    """The configuration that names a thread."""
    return {"configurable": {"thread_id": thread_id}}


def said(text: str) -> dict[str, Any]:
    """The input that a new human message is."""
    return {"messages": [{"role": "user", "content": text}]}


def build(graph: str, saver: Saver, slow: Slow) -> Graph:
    """Build a graph on the scripted model.

    Args:
        graph: A key of `GRAPHS`.
        saver: The checkpoint saver.
        slow: What the tool `slow` does.
    """
    return GRAPHS[graph](ScriptedModel(script=SCRIPT), make_tools(slow), saver)


def run(scenario: Scenario, database_url: str, thread_id: str) -> None:
    """Run a program: it ends the process, except for a line that waits for a person.

    Args:
        scenario: What to do.
        database_url: A database that has LangGraph's tables.
        thread_id: The thread to leave behind.
    """
    with WitnessSaver.connect(database_url) as saver:
        # A graph with one task for all calls writes nothing before the last of them is done.
        one_task = scenario.graph not in TASK_A_CALL
        graph = build(
            scenario.graph, saver, lambda after: saver.die_after(0 if one_task else after)
        )
        # "sync" puts the checkpoint on disk before its tasks start: a death leaves the same rows
        # each time.
        if scenario.history:
            graph.invoke(said(EARLIER), thread(thread_id), durability="sync")
        graph.invoke(said(LINES[scenario.line]), thread(thread_id), durability="sync")


def main(arguments: list[str]) -> int:
    """Run the scenario named on the command line."""
    quiet_tracing()
    if len(arguments) != 3:
        print(
            "Usage: python -m repair_service.demo.programs SCENARIO DATABASE_URL THREAD_ID",
            file=sys.stderr,
        )
        return 64
    scenario, database_url, thread_id = arguments
    try:
        chosen = Scenario.parse(scenario)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 64
    run(chosen, database_url, thread_id)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
