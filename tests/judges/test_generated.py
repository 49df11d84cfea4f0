"""Lists that nobody wrote by hand: LangGraph stores them, a sweep mends them, all take them."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    ToolCall,
    ToolMessage,
)
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition

from repair_service.repair.verdict import FaultKind, Policy, Verdict
from tests.conftest import Database, Server
from tests.judges.clients import as_a_turn, refusal
from tests.judges.service import sweep
from tests.judges.test_request_time import patched_by_deepagents
from tests.judges.transcripts import load

POLICY = Policy(min_idle=0, allow=frozenset({"at_rest"}))
"""A list whose last message calls a tool may stand in a thread at rest."""

Fate = str
FATES = ("answered", "answered", "unanswered", "late", "twice")
"""What becomes of a call: `late` results stand behind the next human message, `twice` are equal."""


@st.composite
def lists(draw: st.DrawFn) -> list[BaseMessage]:
    """A conversation of a few turns in which at least one call is not answered as it should be.

    Call ids are unique over the whole list, as providers make them.
    """
    messages: list[BaseMessage] = []
    late: list[ToolMessage] = []
    fates: list[Fate] = []
    turns = draw(st.integers(1, 4))
    for _ in range(turns):
        messages.append(HumanMessage(draw(st.sampled_from(["Hello.", "Go on.", "Ünïcode 🙂"]))))
        messages += late
        late = []
        for _ in range(draw(st.integers(0, 2))):
            count = draw(st.integers(1, 3))
            own = draw(st.lists(st.sampled_from(FATES), min_size=count, max_size=count))
            step = len(fates)
            names = [draw(st.sampled_from(["search", "book", "pay"])) for _ in own]
            messages.append(_caller(draw, names, step, invalid=draw(st.booleans())))
            behind: list[ToolMessage] = []
            for number, (name, fate) in enumerate(zip(names, own, strict=True), start=step):
                result = ToolMessage(f"result {number}", name=name, tool_call_id=f"call_{number}")
                if fate in ("answered", "twice"):
                    behind.append(result)
                if fate == "twice":
                    behind.append(result.model_copy())
                if fate == "late":
                    late.append(result)
            fates += own
            messages += draw(st.permutations(behind))
        if draw(st.booleans()):
            messages.append(AIMessage("So it is."))
    messages += [HumanMessage("And now?"), *late] if late else []
    if not {"unanswered", "late", "twice"} & set(fates):
        messages += [HumanMessage("Last."), _caller(draw, ["search"], len(fates))]
    return messages


def _caller(draw: st.DrawFn, names: list[str], first: int, *, invalid: bool = False) -> AIMessage:
    """An AI message with these calls, the last of them malformed where `invalid`."""
    calls: list[ToolCall] = [
        {"name": name, "args": {"number": number}, "id": f"call_{number}", "type": "tool_call"}
        for number, name in enumerate(names, start=first)
    ]
    malformed: list[InvalidToolCall] = []
    if invalid:
        call = calls.pop()
        malformed = [
            {**call, "args": "{", "error": "cut off", "type": "invalid_tool_call"}  # type: ignore[typeddict-item]
        ]
    text = draw(st.sampled_from(["", "Let me look."]))
    return AIMessage(text, tool_calls=calls, invalid_tool_calls=malformed)


@pytest.fixture(scope="module")
def store(server: Server) -> Iterator[Database]:
    """One database for all lists; each is a thread of its own."""
    with ExitStack() as names:
        yield server.fresh("langgraph", lambda connection: PostgresSaver(connection).setup(), names)


@pytest.fixture(scope="module")
def graph(store: Database) -> Iterator[Any]:
    """A graph with a node `tools` that is never reached."""

    def never(state: MessagesState) -> MessagesState:
        raise AssertionError("Nothing runs here.")

    builder = StateGraph(MessagesState)
    builder.add_node("chat", never)
    builder.add_node("tools", never)
    builder.add_edge(START, "chat")
    builder.add_conditional_edges("chat", tools_condition, ["tools", END])
    builder.add_edge("tools", "chat")
    with PostgresSaver.from_conn_string(store.url) as saver:
        yield builder.compile(checkpointer=saver)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(messages=lists())
def test_every_provider_takes_what_it_refused(
    messages: list[BaseMessage], store: Database, graph: Any, clients: dict[str, BaseChatModel]
) -> None:
    thread_id = uuid4().hex
    # As if the model had just spoken: a call in the last message leaves the tools pending.
    graph.update_state(
        {"configurable": {"thread_id": thread_id}}, {"messages": messages}, as_node="chat"
    )

    (done,) = sweep(store, POLICY, thread_id)

    assert done.verdict is Verdict.REPAIRED, done.reason
    if FaultKind.UNANSWERED_CALL in {fault.kind for fault in done.faults}:
        for client in clients.values():
            assert refusal(client, as_a_turn(messages)) is not None
    (repaired,) = load(store, [done]).values()
    assert {name: refusal(client, as_a_turn(repaired)) for name, client in clients.items()} == (
        dict.fromkeys(clients)
    )
    assert not patched_by_deepagents(repaired)
    # Whatever was said stays, in its order: only results were moved, added or freed of a copy.
    spoken = [message.content for message in messages if not isinstance(message, ToolMessage)]
    assert [m.content for m in repaired if not isinstance(m, ToolMessage)] == spoken
    assert {m.content for m in messages if isinstance(m, ToolMessage)} <= {
        m.content for m in repaired
    }
