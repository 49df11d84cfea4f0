"""The programs that the nursery runs: those of the demo, and some that only tests need."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.base import Checkpoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, Durability

from repair_service.demo import programs as demo
from repair_service.demo.programs import (
    LINES,
    SCRIPT,
    Graph,
    Saver,
    Scenario,
    Slow,
    build,
    said,
    thread,
    tool_node_graph,
)
from repair_service.demo.witness import GAVE_UP, KILLED, PATIENCE, WitnessSaver
from tests.acceptance import states, teams
from tests.acceptance.script import MODEL, Family, all_tools


def agent(saver: Saver, slow: Slow) -> Graph:
    """A create_agent with all of the tools."""
    return create_agent(MODEL, all_tools(slow), checkpointer=saver)


def approved_agent(saver: Saver, slow: Slow) -> Graph:
    """A create_agent whose `slow` needs a person's leave (HumanInTheLoopMiddleware)."""
    leave = HumanInTheLoopMiddleware(interrupt_on={"slow": True})
    return create_agent(MODEL, all_tools(slow), middleware=[leave], checkpointer=saver)


def deep_agent(saver: Saver, slow: Slow) -> Graph:
    """A deep agent: its messages and files are delta channels. Its helper has the same tools."""
    tools = all_tools(slow)
    helper = {
        "name": "helper",
        "description": "Helps.",
        "system_prompt": "Help.",
        "tools": tools,
        "model": MODEL,
    }
    return create_deep_agent(MODEL, tools, subagents=[helper], checkpointer=saver)


def agent_as_node(saver: Saver, slow: Slow) -> Graph:
    """A StateGraph with an agent for a node."""
    builder = StateGraph(MessagesState)
    builder.add_node("assistant", create_agent(MODEL, all_tools(slow)))
    builder.add_edge(START, "assistant")
    return builder.compile(checkpointer=saver)


def agent_with_memory(saver: Saver, slow: Slow) -> Graph:
    """A StateGraph with an agent for a node that remembers its own conversation."""
    builder = StateGraph(MessagesState)
    builder.add_node("assistant", create_agent(MODEL, all_tools(slow), checkpointer=True))
    builder.add_edge(START, "assistant")
    return builder.compile(checkpointer=saver)


def two_levels_deep(saver: Saver, slow: Slow) -> Graph:
    """A StateGraph with a StateGraph for a node, which has an agent for a node."""
    builder = StateGraph(MessagesState)
    builder.add_node("team", agent_as_node(None, slow))
    builder.add_edge(START, "team")
    return builder.compile(checkpointer=saver)


def handoff(saver: Saver, slow: Slow) -> Graph:
    """Two agents as nodes; the first hands over to the second and is left in the middle."""

    @tool
    def hand_over(
        state: Annotated[dict[str, Any], InjectedState],
        tool_call_id: Annotated[str, InjectedToolCallId],
    ) -> Command[Any]:
        """Hand over to the second agent."""
        handed = ToolMessage("handed over", name="hand_over", tool_call_id=tool_call_id)
        call_slow = {"role": "user", "content": LINES["one-call"]}
        return Command(
            goto="second",
            graph=Command.PARENT,
            update={"messages": [*state["messages"], handed, call_slow]},
        )

    builder = StateGraph(MessagesState)
    builder.add_node("first", create_agent(MODEL, [hand_over]))
    builder.add_node("second", create_agent(MODEL, all_tools(slow)))
    builder.add_edge(START, "first")
    return builder.compile(checkpointer=saver)


def breakpoint_before_tools(saver: Saver, slow: Slow) -> Graph:
    """A StateGraph with ToolNode that stops before its tools."""
    return tool_node_graph(MODEL, all_tools(slow), saver, interrupt_before=["tools"])


def client_side(saver: Saver, slow: Slow) -> Graph:
    """A graph that ends with its call: the browser answers it."""

    def chat(state: MessagesState) -> dict[str, list[AIMessage]]:
        return {"messages": [MODEL.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("chat", chat)
    builder.add_edge(START, "chat")
    builder.add_edge("chat", END)
    return builder.compile(checkpointer=saver)


_ALONE: Mapping[str, Family] = {
    family.__name__: family
    for family in (
        agent,
        approved_agent,
        deep_agent,
        agent_as_node,
        agent_with_memory,
        two_levels_deep,
        handoff,
        breakpoint_before_tools,
        client_side,
    )
}

FAMILIES: Mapping[str, Family] = {**_ALONE, **teams.FAMILIES, **states.FAMILIES}
"""Every graph that a program can run, by name."""


def told(family: str, graph: Graph, thread_id: str, text: str) -> Any:
    """The input that a new human message is, in the form of that family's state."""
    form = states.FORMS.get(family)
    if form is None:
        return said(text)
    return form.said(text, graph.get_state(thread(thread_id)).values)


class RootWitness(WitnessSaver):
    """A witness that also knows the newest checkpoint of the root, below which others run."""

    _root = ""

    def put(self, config: RunnableConfig, checkpoint: Checkpoint, *rest: Any) -> RunnableConfig:
        saved = super().put(config, checkpoint, *rest)
        if not config["configurable"]["checkpoint_ns"]:
            self._root = checkpoint["id"]
        return saved

    def die_beside(self, tasks: int) -> NoReturn:
        """End the process once so many tasks of the root's newest checkpoint have written."""
        with self._changed:
            on_disk = self._changed.wait_for(
                lambda: len(self._settled[self._root]) >= tasks, timeout=PATIENCE
            )
        os._exit(KILLED if on_disk else GAVE_UP)


def scenario(name: str, database_url: str, thread_id: str) -> None:
    """A scenario of the demo."""
    demo.run(Scenario.parse(name), database_url, thread_id)


def die_behind_the_tools(name: str, database_url: str, thread_id: str) -> None:
    """All tools of the line finish, and the process dies before it writes the next checkpoint."""
    chosen = Scenario.parse(name)
    calls = len(SCRIPT[LINES[chosen.line]])
    tasks = calls if chosen.graph in demo.TASK_A_CALL else 1
    with WitnessSaver.connect(database_url) as saver:

        def slow(after: int) -> str:
            saver.die_before_next(tasks)
            return "slow finished"

        build(chosen.graph, saver, slow).invoke(
            said(LINES[chosen.line]), thread(thread_id), durability="sync"
        )


def talk(
    family: str,
    database_url: str,
    thread_id: str,
    inputs: Sequence[Any],
    earlier: Durability = "sync",
) -> None:
    """Give a graph its inputs, one after the other; at the last one, `slow` is its death.

    Args:
        family: A key of `FAMILIES`.
        database_url: A database that has LangGraph's tables.
        thread_id: The thread.
        inputs: Texts are human messages; a mapping under `answer` answers an open question.
        earlier: The durability of all inputs but the last, which is always in sync.
    """
    with RootWitness.connect(database_url) as saver:
        assert isinstance(saver, RootWitness)

        last = False

        def slow(after: int) -> str:
            if not last:
                return "slow finished"
            if after < 0:
                return saver.die_beside(-after)
            return saver.die_after(after, answer=answered)

        # LangGraph writes an answer in the background, so it may come later than the tool runs.
        answered = not isinstance(inputs[-1], str)
        graph = FAMILIES[family](saver, slow)
        for place, given in enumerate(inputs, start=1):
            last = place == len(inputs)
            graph.invoke(
                told(family, graph, thread_id, given)
                if isinstance(given, str)
                else Command(resume=given["answer"]),
                thread(thread_id),
                durability="sync" if last else earlier,
            )
