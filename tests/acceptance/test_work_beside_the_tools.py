"""Work that stands beside an unanswered call, and must be neither dropped nor done twice.

The programs end with an exception: LangGraph leaves the step as a death would, and says that it
failed.
"""

from collections.abc import Callable, Sequence
from itertools import count
from threading import Event
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolCall
from langchain_core.tools import BaseTool, tool
from langgraph.channels import EphemeralValue
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.func import task
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt

from repair_service.demo.programs import Graph, said, thread
from repair_service.demo.witness import WitnessSaver
from repair_service.repair.verdict import FaultKind, Verdict
from tests.acceptance.service import audit, results, sweep
from tests.conftest import Database

HERE = thread("here")


class Died(Exception):
    """Ends a program in the middle of a step."""


class Hinted(TypedDict):
    """A state with a channel that lives for one step."""

    messages: Annotated[list[AnyMessage], add_messages]
    hint: Annotated[str, EphemeralValue]


def slow(outcome: str) -> list[BaseTool]:
    """The tool `slow`: it gives its outcome, or dies where that is empty."""

    @tool("slow")
    def run() -> str:
        """Take long."""
        if not outcome:
            raise Died
        return outcome

    return [run]


def calling(identifiers: Callable[[], str], **beside: Any) -> Any:
    """A node that calls `slow` once a turn, and writes some more with the call."""

    def agent(state: Any) -> dict[str, Any]:
        if state["messages"][-1].type == "tool":
            return {"messages": [AIMessage("done")]}
        call = {"name": "slow", "args": {}, "id": identifiers()}
        return {"messages": [AIMessage("", tool_calls=[call])], **beside}

    return agent


def numbered() -> Callable[[], str]:
    numbers = count()
    return lambda: f"call_{next(numbers)}"


def graph(
    saver: PostgresSaver,
    outcome: str,
    *,
    agent: Any,
    first: str = "tools",
    more: Sequence[str] = (),
    state: Any = MessagesState,
    build: Callable[[StateGraph[Any]], object] = lambda builder: None,
) -> Graph:
    """An agent and its tools; `first` and `more` are the nodes behind a call."""
    builder: StateGraph[Any] = StateGraph(state)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(slow(outcome), handle_tool_errors=False))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges(
        "agent",
        lambda state: [first, *more] if state["messages"][-1].tool_calls else END,
        [first, *more, END],
    )
    builder.add_edge("tools", "agent")
    build(builder)
    return builder.compile(checkpointer=saver)


def die(program: Graph, text: str) -> None:
    with pytest.raises(Died):
        program.invoke(said(text), HERE, durability="sync")


def idle(state: MessagesState) -> None:
    """A node that leaves the state as it is."""


def branching(saver: PostgresSaver, outcome: str, identifiers: Callable[[], str]) -> Graph:
    """Beside the tools `watch` runs, and `tell` behind it."""

    def build(builder: StateGraph[Any]) -> None:
        builder.add_node("watch", idle)
        builder.add_node("tell", idle)
        builder.add_edge("watch", "tell")

    return graph(saver, outcome, agent=calling(identifiers), more=["watch"], build=build)


def test_a_finished_branch_beside_the_tools_goes_on_with_them(
    database: Database, saver: PostgresSaver
) -> None:
    identifiers = numbered()
    branching(saver, "real", identifiers).invoke(said("One."), HERE)
    broken = branching(saver, "", identifiers)
    die(broken, "Two.")
    (found,) = sweep(database)
    assert (found.verdict, set(found.route)) == (Verdict.REPAIRED, {"agent", "tell"})
    assert set(broken.get_state(HERE).next) == {"agent", "tell"}
    assert broken.invoke(None, HERE)["messages"][-1].text == "done"


def test_a_finished_branch_is_not_dropped_where_the_tools_way_on_is_unknown(
    database: Database, saver: PostgresSaver
) -> None:
    die(branching(saver, "", numbered()), "One.")
    (found,) = sweep(database)
    assert found.verdict is Verdict.MANUAL
    assert "'tell'" in found.reason


def test_a_branch_that_starts_a_deferred_node_is_left_to_a_person(
    database: Database, saver: PostgresSaver
) -> None:
    def build(builder: StateGraph[Any]) -> None:
        builder.add_node("watch", idle)
        builder.add_node("collect", idle, defer=True)
        builder.add_edge("watch", "collect")

    agent = calling(numbered())
    graph(saver, "real", agent=agent, more=["watch"], build=build).invoke(said("One."), HERE)
    broken = graph(saver, "", agent=agent, more=["watch"], build=build)
    die(broken, "Two.")
    (found,) = sweep(database)
    assert found.verdict is Verdict.MANUAL
    assert "deferred" in found.reason
    assert "tools" in broken.get_state(HERE).next


def test_a_deferred_node_behind_the_tools_is_started_in_the_form_that_it_can_read(
    database: Database, saver: PostgresSaver
) -> None:
    @tool
    def fast() -> str:
        """Be quick."""
        return "fast"

    @tool("slow")
    def late() -> str:
        """Die when the result of the other call is on disk."""
        assert witness.wait_for(1)
        raise Died

    def agent(state: MessagesState) -> dict[str, Any]:
        if state["messages"][-1].type == "tool":
            return {"messages": [AIMessage("done")]}
        calls: list[ToolCall] = [
            {"name": name, "args": {}, "id": name} for name in ("fast", "slow")
        ]
        return {"messages": [AIMessage("", tool_calls=calls)]}

    def program(saver: PostgresSaver, *slow: BaseTool) -> Graph:
        builder = StateGraph(MessagesState)
        builder.add_node("agent", agent)
        builder.add_node("tools", ToolNode([fast, *slow], handle_tool_errors=False))
        builder.add_node("collect", idle, defer=True)
        builder.add_edge(START, "agent")
        builder.add_conditional_edges(
            "agent",
            lambda state: [
                Send("tools", [call]) for call in getattr(state["messages"][-1], "tool_calls", [])
            ],
            ["tools"],
        )
        builder.add_edge("tools", "collect")
        builder.add_edge("collect", "agent")
        return builder.compile(checkpointer=saver)

    with WitnessSaver.connect(database.url) as witness:
        die(program(witness, late), "One.")
    (found,) = sweep(database)
    assert (found.verdict, found.route) == (Verdict.REPAIRED, ("collect",))
    going_on = program(saver, *slow("real"))
    assert going_on.get_state(HERE).next == ("collect",)
    assert going_on.invoke(None, HERE)["messages"][-1].text == "done"


def test_a_barrier_that_only_a_branch_beside_reached_goes_on_waiting(
    database: Database, saver: PostgresSaver
) -> None:
    def build(builder: StateGraph[Any]) -> None:
        for name in ("watch", "check", "merge"):
            builder.add_node(name, idle)
        builder.add_edge("tools", "check")
        builder.add_edge(["check", "watch"], "merge")

    agent = calling(numbered())
    graph(saver, "real", agent=agent, more=["watch"], build=build).invoke(said("One."), HERE)
    broken = graph(saver, "", agent=agent, more=["watch"], build=build)
    die(broken, "Two.")
    (found,) = sweep(database)
    assert found.verdict is Verdict.REPAIRED
    assert set(broken.get_state(HERE).next) == {"agent", "check"}
    ran = [name for update in broken.stream(None, HERE, stream_mode="updates") for name in update]
    assert sorted(ran) == ["agent", "check", "merge"]


def reviewed(saver: PostgresSaver, dies: bool, identifiers: Callable[[], str]) -> Graph:
    """A node `review` stands between the agent and its tools."""

    def review(state: MessagesState) -> None:
        if dies:
            raise Died

    def build(builder: StateGraph[Any]) -> None:
        builder.add_node("review", review)
        builder.add_edge("review", "tools")

    return graph(saver, "real", agent=calling(identifiers), first="review", build=build)


def test_a_node_that_ran_before_and_answered_no_call_is_not_given_up(
    database: Database, saver: PostgresSaver
) -> None:
    identifiers = numbered()
    reviewed(saver, False, identifiers).invoke(said("One."), HERE)
    die(reviewed(saver, True, identifiers), "Two.")
    (found,) = sweep(database)
    assert found.verdict is Verdict.MANUAL
    assert "'review'" in found.reason
    answered = reviewed(saver, False, identifiers).invoke(None, HERE)
    assert results(answered["messages"]) == {"call_0": "real", "call_1": "real"}


def test_a_finished_node_before_the_tools_is_not_taken_for_them(
    database: Database, saver: PostgresSaver
) -> None:
    reviewed(saver, False, numbered()).invoke(said("One."), HERE, interrupt_before=["tools"])
    with database.connect() as connection:
        connection.execute(
            "DELETE FROM checkpoints"
            " WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)"
        )
    (found,) = sweep(database)
    assert found.verdict is Verdict.MANUAL
    assert "'review'" in found.reason


def test_what_a_pending_node_had_done_is_not_done_again(
    database: Database, saver: PostgresSaver
) -> None:
    done: list[str] = []

    def program(dies: bool) -> Graph:
        @task
        def pay() -> None:
            done.append("paid")

        @task
        def send() -> None:
            if dies:
                raise Died

        def work(state: MessagesState) -> None:
            pay().result()
            send().result()

        builder = StateGraph(MessagesState)
        builder.add_node("work", work)
        builder.add_edge(START, "work")
        return builder.compile(checkpointer=saver)

    call = AIMessage("", tool_calls=[{"name": "slow", "args": {}, "id": "call_0"}])
    with pytest.raises(Died):
        program(True).invoke({"messages": [call, HumanMessage("Two.")]}, HERE, durability="sync")
    (found,) = sweep(database)
    assert found.verdict is Verdict.MANUAL
    assert "run again" in found.reason
    program(False).invoke(None, HERE)
    assert done == ["paid"]


def test_a_question_of_a_called_task_protects_the_step(
    database: Database, saver: PostgresSaver
) -> None:
    asked = Event()

    class Witness(PostgresSaver):
        """Knows when the question has reached the database."""

        def put_writes(self, config: Any, writes: Any, *task: str) -> None:
            super().put_writes(config, writes, *task)
            if any(channel == "__interrupt__" for channel, _ in writes):
                asked.set()

    @task
    def ask() -> str:
        return str(interrupt("May I?"))

    @task
    def send() -> None:
        assert asked.wait(10)
        raise Died

    def work(state: MessagesState) -> None:
        asking, sending = ask(), send()
        sending.result()
        asking.result()

    builder = StateGraph(MessagesState)
    builder.add_node("tools", work)
    builder.add_edge(START, "tools")
    call = AIMessage("", tool_calls=[{"name": "slow", "args": {}, "id": "call_0"}])
    with pytest.raises(Died):
        builder.compile(checkpointer=Witness(saver.conn)).invoke(
            {"messages": [call]}, HERE, durability="sync"
        )
    (found,) = sweep(database)
    assert found.verdict is Verdict.WAITING


def test_a_result_of_a_trimmed_turn_is_no_result_of_a_call_with_the_same_id(
    database: Database, saver: PostgresSaver
) -> None:
    again = calling(lambda: "call_0")

    def forgetful(state: MessagesState) -> dict[str, Any]:
        old = [RemoveMessage(id=message.id or "") for message in state["messages"][:-1]]
        new = again(state)
        return (
            {"messages": [*old, *new["messages"]]} if state["messages"][-1].type == "human" else new
        )

    graph(saver, "of the first turn", agent=forgetful).invoke(said("One."), HERE)
    broken = graph(saver, "", agent=forgetful)
    die(broken, "Two.")
    (found,) = sweep(database)
    assert found.verdict is Verdict.REPAIRED
    assert [fault.kind for fault in found.faults] == [FaultKind.UNANSWERED_CALL]
    assert "of the first turn" not in results(broken.get_state(HERE).values["messages"]).values()


def test_a_value_for_one_step_is_cleared_with_the_step(
    database: Database, saver: PostgresSaver
) -> None:
    identifiers = numbered()
    agent = calling(identifiers, hint="once")
    graph(saver, "real", agent=agent, state=Hinted).invoke(said("One."), HERE)
    broken = graph(saver, "", agent=agent, state=Hinted)
    die(broken, "Two.")
    assert broken.get_state(HERE).values["hint"] == "once"
    (found,) = sweep(database)
    assert found.verdict is Verdict.REPAIRED
    assert "hint" not in broken.get_state(HERE).values
    assert audit(database) == []


def test_a_value_that_stays_is_not_cleared_with_the_step(
    database: Database, saver: PostgresSaver
) -> None:
    class Named(MessagesState):
        name: str

    identifiers = numbered()
    agent = calling(identifiers, name="kept")
    graph(saver, "real", agent=agent, state=Named).invoke(said("One."), HERE)
    broken = graph(saver, "", agent=agent, state=Named)
    die(broken, "Two.")
    (found,) = sweep(database)
    assert found.verdict is Verdict.REPAIRED
    assert broken.get_state(HERE).values["name"] == "kept"
