"""The programs that the nursery runs: those of the demo, and some that only tests need."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, Durability, interrupt

from repair_service.demo import programs as demo
from repair_service.demo.model import ScriptedModel
from repair_service.demo.programs import (
    LINES,
    SCRIPT,
    Graph,
    Saver,
    Scenario,
    Slow,
    build,
    make_tools,
    said,
    thread,
    tool_node_graph,
)
from repair_service.demo.witness import WitnessSaver

MODEL = ScriptedModel(
    script={
        **SCRIPT,
        "Ask me, and call slow.": (("approve", {"question": "May I?"}), ("slow", {"after": 1})),
        "Ask me twice.": (("approve", {"question": "This?"}), ("approve", {"question": "That?"})),
        "Ask me first, then be slow.": (("ask_then_slow", {}),),
        "Write a file, and call slow.": (
            ("write_file", {"file_path": "/kept.txt", "content": "kept"}),
            ("slow", {"after": 1}),
        ),
        "Have slow called.": (
            ("task", {"description": "Call slow.", "subagent_type": "helper"}),
            ("fast", {}),
        ),
        "Hand over.": (("hand_over", {}),),
        "Open the page.": (("browser", {}),),
    }
)
"""The demo's script and what the tests add to it."""

Family = Callable[[Saver, Slow], Graph]


def _tools(slow: Slow) -> list[BaseTool]:
    """The demo's tools, and one that asks before it is slow."""

    @tool
    def ask_then_slow() -> str:
        """Ask a person, then take long."""
        answer = interrupt("May I be slow?")
        return f"{answer}: {slow(0)}"

    return [*make_tools(slow), ask_then_slow]


def agent(saver: Saver, slow: Slow) -> Graph:
    """A create_agent with all of the tools."""
    return create_agent(MODEL, _tools(slow), checkpointer=saver)


def approved_agent(saver: Saver, slow: Slow) -> Graph:
    """A create_agent whose `slow` needs a person's leave (HumanInTheLoopMiddleware)."""
    leave = HumanInTheLoopMiddleware(interrupt_on={"slow": True})
    return create_agent(MODEL, _tools(slow), middleware=[leave], checkpointer=saver)


def deep_agent(saver: Saver, slow: Slow) -> Graph:
    """A deep agent: its messages and files are delta channels. Its helper has the same tools."""
    tools = _tools(slow)
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
    builder.add_node("assistant", create_agent(MODEL, _tools(slow)))
    builder.add_edge(START, "assistant")
    return builder.compile(checkpointer=saver)


def agent_with_memory(saver: Saver, slow: Slow) -> Graph:
    """A StateGraph with an agent for a node that remembers its own conversation."""
    builder = StateGraph(MessagesState)
    builder.add_node("assistant", create_agent(MODEL, _tools(slow), checkpointer=True))
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
    builder.add_node("second", create_agent(MODEL, _tools(slow)))
    builder.add_edge(START, "first")
    return builder.compile(checkpointer=saver)


def breakpoint_before_tools(saver: Saver, slow: Slow) -> Graph:
    """A StateGraph with ToolNode that stops before its tools."""
    return tool_node_graph(MODEL, _tools(slow), saver, interrupt_before=["tools"])


def client_side(saver: Saver, slow: Slow) -> Graph:
    """A graph that ends with its call: the browser answers it."""

    def chat(state: MessagesState) -> dict[str, list[AIMessage]]:
        return {"messages": [MODEL.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("chat", chat)
    builder.add_edge(START, "chat")
    builder.add_edge("chat", END)
    return builder.compile(checkpointer=saver)


FAMILIES: Mapping[str, Family] = {
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
    """Give a graph its inputs, one after the other; `slow` is the death of the process.

    Args:
        family: A key of `FAMILIES`.
        database_url: A database that has LangGraph's tables.
        thread_id: The thread.
        inputs: Texts are human messages; a mapping under `answer` answers an open question.
        earlier: The durability of all inputs but the last, which is always in sync.
    """
    with WitnessSaver.connect(database_url) as saver:
        # LangGraph writes an answer in the background, so it may come later than the tool runs.
        answered = not isinstance(inputs[-1], str)
        graph = FAMILIES[family](saver, lambda after: saver.die_after(after, answer=answered))
        for place, given in enumerate(inputs, start=1):
            graph.invoke(
                said(given) if isinstance(given, str) else Command(resume=given["answer"]),
                thread(thread_id),
                durability="sync" if place == len(inputs) else earlier,
            )
