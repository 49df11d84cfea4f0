"""Every shape in which providers and models leave calls: LangGraph stores it, its provider judges.

What is repaired, and the neighbours that must be left as they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from tests.conftest import Database
from tests.judges.clients import as_a_turn, refusal
from tests.judges.service import NOW, audit, sweep
from tests.judges.transcripts import load

ASKED = HumanMessage("Look it up.")
TALK = [HumanMessage("Hello."), AIMessage("Good day."), ASKED]


def call(call_id: str | None, name: str = "search") -> dict[str, Any]:
    return {"name": name, "args": {}, "id": call_id, "type": "tool_call"}


def raw(message: AIMessage) -> AIMessage:
    """The same message with its calls where the provider puts them, and nowhere else."""
    message.tool_calls = []
    message.invalid_tool_calls = []
    return message


def invalid(call_id: str) -> dict[str, Any]:
    bad = {"name": "search", "args": "{", "id": call_id, "error": "cut off"}
    return {**bad, "type": "invalid_tool_call"}


def tool_use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "search", "input": {}}


def function_call(call_id: str) -> dict[str, Any]:
    name_and_arguments = {"name": "search", "arguments": "{}"}
    return {"type": "function_call", "id": "fc_1", "call_id": call_id, **name_and_arguments}


TEXT = {"type": "text", "text": "Let me look."}
SEARCHED = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {
                "type": "web_search_result",
                "url": "https://example.org/",
                "title": "x",
                "encrypted_content": "eHg=",
            }
        ],
    },
]
REPAIRED: Mapping[str, tuple[str, BaseMessage, Sequence[str]]] = {
    "malformed": ("openai-chat", AIMessage("", invalid_tool_calls=[invalid("call_1")]), ["call_1"]),
    "malformed beside a good one": (
        "openai-chat",
        AIMessage("", tool_calls=[call("call_1")], invalid_tool_calls=[invalid("call_2")]),
        ["call_1", "call_2"],
    ),
    "in additional_kwargs": (
        "openai-chat",
        raw(
            AIMessage(
                "",
                additional_kwargs={
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "search", "arguments": "{}"},
                        }
                    ]
                },
            )
        ),
        ["call_1"],
    ),
    "Anthropic's blocks": (
        "anthropic",
        AIMessage([TEXT, tool_use("toolu_1")], tool_calls=[call("toolu_1")]),
        ["toolu_1"],
    ),
    "Anthropic's blocks alone": (
        "anthropic",
        raw(AIMessage([TEXT, tool_use("toolu_1"), tool_use("toolu_2")])),
        ["toolu_1", "toolu_2"],
    ),
    "the Responses API's blocks": (
        "openai-responses",
        AIMessage([function_call("call_1")], tool_calls=[call("call_1")]),
        ["call_1"],
    ),
    "the Responses API's blocks alone": (
        "openai-responses",
        raw(AIMessage([function_call("call_1")])),
        ["call_1"],
    ),
    "beside a server's tool": (
        "anthropic",
        AIMessage([*SEARCHED, tool_use("toolu_1")], tool_calls=[call("toolu_1")]),
        ["toolu_1"],
    ),
    "behind its own signed thinking": (
        "anthropic",
        AIMessage(
            [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, tool_use("toolu_1")],
            tool_calls=[call("toolu_1")],
        ),
        ["toolu_1"],
    ),
}
"""By name: the provider, the message that is last, and the calls that get a placeholder."""

MANUAL: Mapping[str, tuple[str, BaseMessage]] = {
    "no id": ("bad_call_id", AIMessage("", tool_calls=[call(None), call("call_1")])),
    "an empty id": ("bad_call_id", AIMessage("", tool_calls=[call("")])),
    "a call that is declared twice": (
        "bad_call_id",
        AIMessage("", tool_calls=[call("call_1"), call("call_1")]),
    ),
    "blocks that name another call": (
        "call_mismatch",
        AIMessage([tool_use("toolu_2")], tool_calls=[call("toolu_1")]),
    ),
    "a call that only its own kind answers": (
        "unanswered_call",
        AIMessage(
            [{"type": "computer_call", "id": "cu_1", "call_id": "call_1", "action": {}}],
        ),
    ),
}
"""By name: the fault that is left to a person, and the message that is last."""


Store = Callable[[str, Sequence[BaseMessage]], None]


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    """Stores a list as a thread whose model has just spoken: its tools are pending."""

    def never(state: MessagesState) -> MessagesState:
        raise AssertionError("Nothing runs here.")

    builder = StateGraph(MessagesState)
    builder.add_node("chat", never)
    builder.add_node("tools", never)
    builder.add_edge(START, "chat")
    builder.add_conditional_edges("chat", _next, ["tools", END])
    builder.add_edge("tools", "chat")
    with PostgresSaver.from_conn_string(database.url) as saver:
        graph = builder.compile(checkpointer=saver)

        def put(thread_id: str, messages: Sequence[BaseMessage]) -> None:
            config = {"configurable": {"thread_id": thread_id}}
            given = {"messages": [message.model_copy() for message in messages]}
            graph.update_state(config, given, as_node="chat")

        yield put


def _next(state: MessagesState) -> str:
    """The tools, behind a message that calls one in whatever form; the end behind another."""
    last = state["messages"][-1]
    kinds = {block["type"] for block in last.content if isinstance(block, dict)}
    calls = isinstance(last, AIMessage) and (
        last.tool_calls
        or last.invalid_tool_calls
        or last.additional_kwargs.get("tool_calls")
        or kinds & {"tool_use", "function_call", "computer_call"}
    )
    return "tools" if calls else END


def answered(messages: Sequence[BaseMessage]) -> list[str]:
    """The calls that have a result, in the order of the list."""
    return [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]


def only(outcomes: Sequence[Diagnosis]) -> Diagnosis:
    (outcome,) = outcomes
    return outcome


@pytest.mark.parametrize("name", REPAIRED)
def test_a_call_of_any_shape_gets_a_result_that_its_provider_takes(
    name: str, database: Database, store: Store, clients: dict[str, BaseChatModel]
) -> None:
    provider, last, calls = REPAIRED[name]
    client = clients[provider]
    store("left", [*TALK, last])
    (left,) = load(database, audit(database)).values()
    assert refusal(client, as_a_turn(left)) is not None

    done = only(sweep(database))

    assert done.verdict is Verdict.REPAIRED, done.reason
    assert [fault.tool_call_id for fault in done.faults] == calls
    (repaired,) = load(database, [done]).values()
    assert answered(repaired) == calls
    assert refusal(client, as_a_turn(repaired)) is None
    assert refusal(client, repaired) is None
    assert audit(database) == []


@pytest.mark.parametrize("name", MANUAL)
def test_what_no_result_can_answer_for_sure_is_left_to_a_person(
    name: str, database: Database, store: Store
) -> None:
    kind, last = MANUAL[name]
    store("left", [*TALK, last])

    everything = frozenset({"duplicate_result", "orphan_result", "bound_prefix", "at_rest"})
    for policy in (NOW, Policy(min_idle=0, allow=everything)):
        done = only(sweep(database, policy))
        assert done.verdict is Verdict.MANUAL
        assert kind in done.reason
        assert done.patch is None


def test_a_server_answers_its_own_tools(database: Database, store: Store) -> None:
    store("searched", [*TALK, AIMessage([*SEARCHED, {"type": "text", "text": "Found."}])])
    store("still searching", [*TALK, AIMessage(SEARCHED[:1])])
    assert audit(database) == []


SIGNED: Mapping[str, tuple[str, AIMessage]] = {
    "Anthropic": (
        "anthropic",
        AIMessage([{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, TEXT]),
    ),
    "Anthropic, redacted": (
        "anthropic",
        AIMessage([{"type": "redacted_thinking", "data": "eHh4"}, TEXT]),
    ),
    "OpenAI": (
        "openai-responses",
        AIMessage(
            [
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eHh4"},
                TEXT,
            ],
        ),
    ),
    "Gemini": (
        "gemini",
        AIMessage(
            "Let me look.",
            additional_kwargs={"__gemini_function_call_thought_signatures__": {"call_9": "c2ln"}},
        ),
    ),
}


@pytest.mark.parametrize("name", SIGNED)
def test_what_signed_thinking_is_bound_to_changes_only_where_that_is_allowed(
    name: str, database: Database, store: Store, clients: dict[str, BaseChatModel]
) -> None:
    provider, signed = SIGNED[name]
    cut_off = AIMessage("", tool_calls=[call("call_1")])
    store("bound", [ASKED, cut_off, HumanMessage("Well?"), signed])

    done = only(sweep(database))

    assert done.verdict is Verdict.MANUAL
    assert done.reason == "bound_prefix is left to a person; --allow bound_prefix mends it"
    allowed = Policy(min_idle=0, allow=frozenset({"bound_prefix"}))
    done = only(sweep(database, allowed))
    assert done.verdict is Verdict.REPAIRED
    (repaired,) = load(database, [done]).values()
    assert answered(repaired) == ["call_1"]
    assert refusal(clients[provider], as_a_turn(repaired)) is None


def test_thinking_that_nobody_signed_binds_nothing(database: Database, store: Store) -> None:
    thought = AIMessage([{"type": "thinking", "thinking": "Hm."}, TEXT])
    cut_off = AIMessage("", tool_calls=[call("call_1")])
    store("free", [ASKED, cut_off, HumanMessage("Well?"), thought])
    assert only(sweep(database)).verdict is Verdict.REPAIRED


def test_only_the_last_messages_are_mended_where_that_is_asked_for(
    database: Database, store: Store
) -> None:
    early, late = (AIMessage("", tool_calls=[call(call_id)]) for call_id in ("call_1", "call_2"))
    store("long", [ASKED, early, *TALK, late])
    store("early", [ASKED, early, *TALK, AIMessage("Nothing found.")])

    last = Policy(min_idle=0, last=3)
    done = {item.thread_id: item for item in sweep(database, last)}

    assert done["long"].verdict is Verdict.REPAIRED, done["long"].reason
    mends = [(fault.tool_call_id, fault.mend) for fault in done["long"].faults]
    assert mends == [("call_1", "none"), ("call_2", "placeholder")]
    assert (done["early"].verdict, "--last" in done["early"].reason) == (Verdict.MANUAL, True)
    (mended,) = load(database, [done["long"]]).values()
    assert answered(mended) == ["call_2"]

    # What was left is reported again, and without the bound all of it is mended.
    assert {item.verdict for item in audit(database, last)} == {Verdict.MANUAL}
    done = {item.thread_id: item for item in sweep(database)}
    assert {item.verdict for item in done.values()} == {Verdict.REPAIRED}
    (mended,) = load(database, [done["long"]]).values()
    assert answered(mended) == ["call_1", "call_2"]
