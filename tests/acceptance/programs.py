"""The programs that the nursery runs: those of the demo, and some that only tests need."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, NotRequired

from deepagents import create_deep_agent
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
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
from tests.acceptance.script import MODEL, Family, Forgetful, all_tools


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


class Noted(AgentState[Any]):
    """The state of an agent that takes notes."""

    note: NotRequired[str]


def note_taker(saver: Saver, slow: Slow) -> Graph:
    """A create_agent with a tool that writes a channel of its own beside its result."""

    @tool
    def take_note(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Take a note."""
        noted = ToolMessage("noted", name="take_note", tool_call_id=tool_call_id)
        return Command(update={"note": "milk", "messages": [noted]})

    tools = [*all_tools(slow), take_note]
    return create_agent(MODEL, tools, state_schema=Noted, checkpointer=saver)


def forgetful(saver: Saver, slow: Slow) -> Graph:
    """A create_agent whose model uses the same call ids in every turn."""
    return create_agent(Forgetful(script=MODEL.script), all_tools(slow), checkpointer=saver)


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
        note_taker,
        forgetful,
        agent_as_node,
        agent_with_memory,
        two_levels_deep,
        handoff,
        breakpoint_before_tools,
        client_side,
    )
}

KEY = "LANGGRAPH_AES_KEY"
"""Where LangGraph looks for the key of an encrypted store."""

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


@dataclass(slots=True)
class Death:
    """How the tool `slow` dies.

    Attributes:
        now: Whether it does at all; else it finishes.
        answered: Whether a person's answer must be on disk first: LangGraph writes it in the
            background, so it may come later than the tool runs.
    """

    now: bool = True
    answered: bool = False


@contextmanager
def dying(family: str, database_url: str) -> Iterator[tuple[Graph, Death]]:
    """A graph whose tool `slow` is the death of the process."""
    with RootWitness.connect(database_url) as saver:
        assert isinstance(saver, RootWitness)
        if KEY in os.environ:
            saver.serde = EncryptedSerializer.from_pycryptodome_aes()
        death = Death()

        def slow(after: int) -> str:
            if not death.now:
                return "slow finished"
            if after < 0:
                return saver.die_beside(-after)
            return saver.die_after(after, answer=death.answered)

        yield FAMILIES[family](saver, slow), death


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
    with dying(family, database_url) as (graph, death):
        for place, given in enumerate(inputs, start=1):
            last = place == len(inputs)
            death.now, death.answered = last, not isinstance(given, str)
            graph.invoke(
                told(family, graph, thread_id, given)
                if isinstance(given, str)
                else Command(resume=given["answer"]),
                thread(thread_id),
                durability="sync" if last else earlier,
            )


def fork(family: str, database_url: str, thread_id: str, checkpoint_id: str, text: str) -> None:
    """Go on from an older checkpoint with a new message, to the death in `slow`."""
    config = {"configurable": {"thread_id": thread_id, "checkpoint_id": checkpoint_id}}
    with dying(family, database_url) as (graph, _):
        graph.invoke(said(text), config, durability="sync")


def with_clock(hours: float, program: str, *arguments: Any) -> None:
    """Run another program on a machine whose clock is so many hours ahead."""
    right = time.time_ns
    time.time_ns = lambda: right() + int(hours * 3600) * 1_000_000_000
    globals()[program](*arguments)


def with_key(key: str, program: str, *arguments: Any) -> None:
    """Run another program in an environment that has the key of an encrypted store."""
    os.environ[KEY] = key
    globals()[program](*arguments)
