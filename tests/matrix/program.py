"""Runs under one LangGraph release: leaves threads behind, and later goes on with them.

    python program.py leave DATABASE_URL     writes the threads, prints what it left as JSON
    python program.py go_on DATABASE_URL     reads that JSON on stdin, prints how each went on

It imports LangGraph and LangChain alone, and runs from 0.2 on. Each thread is a process of its own,
forked from this one: killed means `os._exit` inside the tool, with the rows on disk and nothing
else.
"""

import inspect
import json
import os
import sys
import traceback
import warnings
from collections import defaultdict
from threading import Condition
from typing import Annotated, Any

os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"
warnings.simplefilter("ignore")

from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: E402
from langchain_core.tools import InjectedToolCallId, tool  # noqa: E402
from langgraph.checkpoint.postgres import PostgresSaver  # noqa: E402
from langgraph.graph import END, START, MessagesState, StateGraph  # noqa: E402
from langgraph.prebuilt import ToolNode, create_react_agent, tools_condition  # noqa: E402
from langgraph.types import Command, interrupt  # noqa: E402
from psycopg import Connection  # noqa: E402
from psycopg.rows import dict_row  # noqa: E402

KILLED, GAVE_UP = 9, 70
PATIENCE = 30.0
CALLER = "00000000-0000-0000-0000-000000000000"

CALLS = {
    "Call fast.": ["fast"],
    "Call slow.": ["slow"],
    "Call fast, slow and fast.": ["fast", "slow", "fast"],
    "Ask me first.": ["approve"],
}
"""The tools that the model calls, in parallel, on what it is told."""

STATES = {
    "first_call": "Call slow.",
    "one_call": "Call slow.",
    "siblings": "Call fast, slow and fast.",
    "behind_the_tools": "Call fast, slow and fast.",
    "overtaken": "Call fast, slow and fast.",
    "waiting": "Ask me first.",
    "healthy": "Call fast.",
}
"""How a thread is left, and what it is told last; all but `first_call` have had a turn before."""

KILLED_STATES = {"first_call", "one_call", "siblings", "behind_the_tools", "overtaken"}
TASK_A_CALL = {"create_react_agent v2", "create_agent"}
"""The graphs that run each call as a task of its own, so that finished siblings are on disk."""


class Refused(Exception):
    """The list of messages that every provider answers with a 400."""


def check(messages: list[Any]) -> None:
    """Refuse a list in which a call is not followed at once by exactly one result."""
    open_ids: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_ids or not message.content:
                raise Refused(f"a result that answers no open call: {message.tool_call_id}")
            open_ids.remove(message.tool_call_id)
            continue
        if open_ids:
            raise Refused(f"calls without a result: {open_ids}")
        if isinstance(message, AIMessage):
            open_ids = [call["id"] for call in message.tool_calls]
    if open_ids:
        raise Refused(f"calls without a result: {open_ids}")


class ScriptedModel(BaseChatModel):
    """Says what follows from the messages alone, and refuses lists as the providers do."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any):
        check(messages)
        last = messages[-1]
        if isinstance(last, AIMessage):
            raise Refused("nothing to answer")
        if isinstance(last, ToolMessage):
            answer = AIMessage("The tools are done.")
        elif last.content in CALLS:
            turn = sum(isinstance(message, HumanMessage) for message in messages)
            answer = AIMessage(
                "",
                tool_calls=[
                    {"name": name, "args": {}, "id": f"call_{turn}_{number}", "type": "tool_call"}
                    for number, name in enumerate(CALLS[last.content], start=1)
                ],
            )
        else:
            answer = AIMessage(f"You said: {last.content}")
        return ChatResult(generations=[ChatGeneration(message=answer)])


class WitnessSaver(PostgresSaver):
    """LangGraph's own saver, which knows what has reached the database.

    Older releases write in the background while a tool already runs. A tool that dies waits here
    until its checkpoint, the writes that led to it, and its finished siblings are on disk.
    """

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.changed = Condition()
        self.parents: dict[str, str] = {}
        self.settled: dict[str, set[str]] = defaultdict(set)
        self.last: tuple[str, int] | None = None

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        parent = config["configurable"].get("checkpoint_id") or ""
        if self.last and self.last[0] == parent:
            self.die_behind(*self.last)
        saved = super().put(config, checkpoint, metadata, new_versions)
        with self.changed:
            self.parents[checkpoint["id"]] = parent
            self.changed.notify_all()
        return saved

    def put_writes(self, config: Any, writes: Any, task_id: str, *path: Any, **named: Any) -> None:
        super().put_writes(config, writes, task_id, *path, **named)
        if task_id != CALLER:
            with self.changed:
                self.settled[config["configurable"]["checkpoint_id"]].add(task_id)
                self.changed.notify_all()

    def die_behind(self, checkpoint_id: str, tasks: int) -> None:
        """End the process once that checkpoint and the writes of so many of its tasks are there."""
        with self.changed:
            on_disk = self.changed.wait_for(
                lambda: (
                    self.settled[self.parents.get(checkpoint_id, "")]
                    and len(self.settled[checkpoint_id]) >= tasks
                ),
                timeout=PATIENCE,
            )
        os._exit(KILLED if on_disk else GAVE_UP)


def tools_of(die: Any) -> list[Any]:
    """`fast`, which answers; `slow`, in which the process dies; `approve`, which asks a person."""
    from langchain_core.runnables import RunnableConfig

    @tool
    def fast(tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Answer at once."""
        return f"fast {tool_call_id}"

    @tool
    def slow(config: RunnableConfig) -> str:
        """Take long."""
        return die(config["configurable"]["checkpoint_map"][""])

    @tool
    def approve() -> str:
        """Ask a person."""
        return f"approved: {interrupt('May I?')}"

    return [fast, slow, approve]


def tool_node_graph(model: Any, tools: Any, saver: Any) -> Any:
    def chat(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("chat", chat)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "chat")
    builder.add_conditional_edges("chat", tools_condition, ["tools", END])
    builder.add_edge("tools", "chat")
    return builder.compile(checkpointer=saver)


def graphs() -> dict[str, Any]:
    """The ways to build an agent that this release knows, by name."""
    found = {"ToolNode": tool_node_graph}
    for version in ("v1", "v2"):
        if "version" in inspect.signature(create_react_agent).parameters or version == "v1":
            found[f"create_react_agent {version}"] = _react(version)
    try:
        from langchain.agents import create_agent
    except ImportError:
        return found
    found["create_agent"] = lambda model, tools, saver: create_agent(
        model, tools, checkpointer=saver
    )
    return found


def _react(version: str) -> Any:
    return lambda model, tools, saver: create_react_agent(
        model, tools, checkpointer=saver, version=version
    )


def thread(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id}}


def said(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def connect(url: str) -> WitnessSaver:
    return WitnessSaver(
        Connection.connect(url, autocommit=True, prepare_threshold=0, row_factory=dict_row)
    )


def in_a_process(work: Any) -> int:
    """Run it in a forked process; its exit code."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        finally:
            # Here only with an exception: a child must never come back.
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def write_thread(url: str, graph_name: str, state: str, thread_id: str) -> None:
    """The life of one thread up to its death, or to its rest."""
    saver = connect(url)
    siblings = graph_name in TASK_A_CALL

    def die(checkpoint_id: str) -> str:
        if state == "behind_the_tools":
            # In `put` of the next checkpoint, when all of this one's tasks have written.
            saver.last = (checkpoint_id, 3 if siblings else 1)
            return "slow finished"
        finished = 2 if siblings and state in ("siblings", "overtaken") else 0
        return saver.die_behind(checkpoint_id, finished)

    graph = graphs()[graph_name](ScriptedModel(), tools_of(die), saver)
    if state != "first_call":
        graph.invoke(said("Call fast."), thread(thread_id))
    graph.invoke(said(STATES[state]), thread(thread_id))


def overtake(url: str, graph_name: str, thread_id: str) -> None:
    """The user types on, and is refused."""
    graph = graphs()[graph_name](ScriptedModel(), tools_of(None), connect(url))
    try:
        graph.invoke(said("Are you there?"), thread(thread_id))
    except (Refused, ValueError):
        return
    raise AssertionError("A list with unanswered calls was not refused.")


def kept(graph_name: str, state: str) -> dict[str, str]:
    """The results that were on disk when the process died, by call id."""
    fast = {f"call_2_{number}": f"fast call_2_{number}" for number in (1, 3)}
    if state == "behind_the_tools":
        return {**fast, "call_2_2": "slow finished"}
    return fast if graph_name in TASK_A_CALL and state in ("siblings", "overtaken") else {}


def leave(url: str) -> list[dict[str, Any]]:
    """Write every thread, two of each state that is repaired: one for each way of going on."""
    saver = connect(url)
    saver.setup()
    saver.conn.close()
    left = []
    for graph_name in graphs():
        for state in STATES:
            for way in ("continue", "message") if state in KILLED_STATES else ("answer",):
                thread_id = f"{graph_name} / {state} / {way}"
                code = in_a_process(lambda: write_thread(url, graph_name, state, thread_id))  # noqa: B023
                expected = KILLED if state in KILLED_STATES else 0
                if code == expected and state == "overtaken":
                    code = in_a_process(lambda: overtake(url, graph_name, thread_id))  # noqa: B023
                    expected = 0
                if code != expected:
                    raise SystemExit(f"{thread_id}: the program ended with {code}.")
                left.append(
                    {
                        "thread_id": thread_id,
                        "graph": graph_name,
                        "state": state,
                        "way": way,
                        "kept": kept(graph_name, state),
                    }
                )
    return left


def go_on_with(url: str, item: dict[str, Any]) -> str:
    """Go on with one thread; says `parked` where nothing was pending, else nothing.

    Raises:
        AssertionError, Refused: What did not hold.
    """
    saver = connect(url)

    def never(checkpoint_id: str) -> str:
        raise AssertionError("The tool ran again.")

    graph = graphs()[item["graph"]](ScriptedModel(), tools_of(never), saver)
    config = thread(item["thread_id"])
    before = graph.get_state(config)
    messages = before.values["messages"]
    try:
        if item["state"] == "waiting":
            answer = graph.invoke(Command(resume="yes"), config)["messages"]
            assert answer[-2].content == "approved: yes", "the answer did not reach the tool"
            assert answer[-1].content == "The tools are done.", "the model did not go on"
            return ""
        check(messages)
        results = {m.tool_call_id: m.content for m in messages if isinstance(m, ToolMessage)}
        assert item["kept"].items() <= results.items(), "a finished result was lost"
        parked = ""
        if item["way"] == "continue":
            answer = graph.invoke(None, config)
            if before.next:
                answer = answer["messages"]
                spoke = "You said: Are" if item["state"] == "overtaken" else "The tools are done."
                assert answer[:-1] == messages, "the history changed"
                assert answer[-1].content.startswith(spoke), "the model did not go on"
            else:
                assert graph.get_state(config).values["messages"] == messages
                parked = "parked"
        answer = graph.invoke(said("Hello?"), config)["messages"]
        assert answer[-1].content == "You said: Hello?", "the new message was not answered"
        answer = graph.invoke(said("Call fast."), config)["messages"]
        assert answer[-1].content == "The tools are done.", "the next tool call failed"
        return parked
    finally:
        saver.conn.close()


def go_on(url: str, left: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Go on with every thread; each item with `held` and, where it did not, `why`."""
    done = []
    for item in left:
        try:
            outcome = {"held": True, "why": go_on_with(url, item)}
        except Exception as error:  # noqa: BLE001 - whatever it is, it did not hold
            outcome = {"held": False, "why": f"{type(error).__name__}: {error}"[:300]}
        done.append({**item, **outcome})
    return done


def main(arguments: list[str]) -> int:
    # Whatever a library prints must not stand in the answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    verb, url = arguments
    answered = leave(url) if verb == "leave" else go_on(url, json.load(sys.stdin))
    json.dump(answered, answers)
    answers.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
