"""What is read out of a stored list of messages."""

import json
from typing import Any

import msgspec
import pytest
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Overwrite, Send

from repair_service.errors import Unreadable
from repair_service.transcript.message import Message, ToolCall
from repair_service.transcript.read import (
    REMOVE_ALL,
    looks_like_transcript,
    read_messages,
    read_transcript,
)
from tests.transcript.make import (
    ai,
    as_dict,
    as_json,
    as_msgpack,
    cancelled,
    constructor,
    human,
    read,
    result,
)

CONVERSATION = [
    SystemMessage("be good", id="s"),
    human(id="h"),
    ai("c1", "c2", id="a", response_metadata={"model_name": "m-1"}),
    result("c1", id="t1"),
    result("c2", "", id="t2"),
]


def kinds(messages: tuple[Message, ...]) -> list[str]:
    return [message.kind for message in messages]


@pytest.mark.parametrize(
    ("type_", "blob"),
    [("msgpack", as_msgpack(CONVERSATION)), ("json", as_json(CONVERSATION))],
)
def test_messages_of_both_encodings_are_read_alike(type_: str, blob: bytes) -> None:
    found = read_transcript(type_, blob)
    assert found is not None
    assert looks_like_transcript(type_, blob)
    assert found.encoding == type_
    assert kinds(found.messages) == ["system", "human", "ai", "tool", "tool"]
    assert [message.id for message in found.messages] == ["s", "h", "a", "t1", "t2"]
    assert found.messages[2].calls == (ToolCall("c1", "search"), ToolCall("c2", "search"))
    assert found.messages[2].model == "m-1"
    assert [message.answers for message in found.messages[3:]] == ["c1", "c2"]


def test_every_message_keeps_its_own_bytes() -> None:
    for blob, type_ in ((as_msgpack(CONVERSATION), "msgpack"), (as_json(CONVERSATION), "json")):
        found = read_transcript(type_, blob)
        assert found is not None
        assert all(message.raw in blob for message in found.messages)


def test_a_delta_snapshot_is_read_as_the_list_in_it() -> None:
    blob = as_msgpack(_DeltaSnapshot(CONVERSATION))
    assert looks_like_transcript("msgpack", blob)
    assert read_transcript("msgpack", blob) == read_transcript("msgpack", as_msgpack(CONVERSATION))


def test_message_dicts_with_roles_are_messages() -> None:
    blob = as_msgpack([as_dict(message) for message in CONVERSATION[1:]])
    found = read_transcript("msgpack", blob)
    assert looks_like_transcript("msgpack", blob)
    assert found is not None
    assert kinds(found.messages) == ["human", "ai", "tool", "tool"]
    assert found.messages[1].calls == (ToolCall("c1", "search"), ToolCall("c2", "search"))


def test_texts_and_pairs_among_messages_count_as_langchain_takes_them() -> None:
    blob = as_msgpack([human(), "more", ("assistant", "yes")])
    found = read_transcript("msgpack", blob)
    assert found is not None
    assert kinds(found.messages) == ["human", "human", "ai"]


@pytest.mark.parametrize("first", [("user", "hi"), ["human", "hi"], "hi"])
@pytest.mark.parametrize("type_", ["msgpack", "json"])
def test_a_list_may_start_with_a_text_or_a_pair(first: Any, type_: str) -> None:
    later = ai("a")
    blob = (
        as_msgpack([first, "more", later])
        if type_ == "msgpack"
        else json.dumps([first, "more", constructor(later)]).encode()
    )
    found = read_transcript(type_, blob)
    assert found is not None
    assert kinds(found.messages) == ["human", "human", "ai"]
    assert looks_like_transcript(type_, blob)


def test_dicts_with_types_and_chunks_and_subclasses_are_told_by_their_type() -> None:
    class Answer(AIMessage):
        """An application's own class."""

    found = read(Answer("x"), AIMessageChunk("y"))
    typed = read_transcript("msgpack", as_msgpack([human().model_dump(), ai("a").model_dump()]))
    assert kinds(found) == ["ai", "ai"]
    assert typed is not None
    assert kinds(typed.messages) == ["human", "ai"]


@pytest.mark.parametrize(
    "value",
    [
        [],
        [1, 2],
        ["a", "b"],
        [("user", "hi"), ("assistant", "hello")],
        [("robot", "hi"), human()],
        ["a", Document("text")],
        [{"a": 1}],
        [{"type": "tool", "name": "event"}],
        [{"role": "robot", "content": "x"}],
        [Document("text")],
        [Send("tools", {"messages": CONVERSATION})],
        [human(), {"event": 1}],
        [human(), 5],
        human(),
        "text",
        {"messages": 1},
        {1: [human()]},
        None,
    ],
)
def test_other_values_are_no_transcript(value: Any) -> None:
    found = read_transcript("msgpack", as_msgpack(value) or b"\xc0")
    assert found is None or found.messages == ()


@pytest.mark.parametrize("type_", ["null", "empty", "bytes", "bytearray"])
def test_types_without_a_structure_are_no_transcript(type_: str) -> None:
    assert read_transcript(type_, b"") is None
    assert not looks_like_transcript(type_, b"")
    assert read_messages(type_, b"") == ()


@pytest.mark.parametrize("type_", ["pickle", "msgpack+aes", "yaml"])
def test_pickles_and_unknown_types_are_unreadable(type_: str) -> None:
    with pytest.raises(Unreadable):
        read_transcript(type_, b"\x90")


@pytest.mark.parametrize(
    ("type_", "blob"),
    [
        ("msgpack", b""),
        ("msgpack", as_msgpack(CONVERSATION)[:-9]),
        ("msgpack", as_msgpack(CONVERSATION) + b"\xc0"),
        ("msgpack", b"\xdd\xff\xff\xff\xff\xc0"),
        ("msgpack", b"\xc9\xff\xff\xff\xff\x07\xc0"),
        ("msgpack", b"\x91" * 200_000),
        ("msgpack", b"\x81\xa1a" * 200_000),
        ("msgpack", b"\x91\xc7\x04\x05\x93\xa1m\xa1"),
        ("json", b""),
        ("json", as_json(CONVERSATION)[:-9]),
        ("json", b"[" * 200_000 + b"]" * 200_000),
        ("json", b'[{"role":"user","content":"\xff"}]x'),
    ],
)
def test_corrupt_bytes_are_unreadable(type_: str, blob: bytes) -> None:
    with pytest.raises(Unreadable):
        read_transcript(type_, blob)


def test_a_mapping_around_the_list_is_kept_with_its_other_values() -> None:
    blob = as_msgpack({"count": 3, "messages": CONVERSATION, "last": human()})
    found = read_transcript("msgpack", blob)
    assert found is not None
    assert found.path == ("messages",)
    assert len(found.messages) == len(CONVERSATION)


def test_a_mapping_with_two_lists_and_no_key_messages_is_left_alone() -> None:
    assert read_transcript("msgpack", as_msgpack({"a": [human()], "b": [human()]})) is None
    assert read_transcript("msgpack", as_msgpack({"a": [human()], "b": [1]})) is not None


def content_block(**fields: Any) -> dict[str, Any]:
    return fields


def test_invalid_calls_come_behind_the_valid_ones() -> None:
    assert read(ai("c1", invalid=["c2"]))[0].calls == (
        ToolCall("c1", "search"),
        ToolCall("c2", "search", invalid=True),
    )


def test_the_providers_own_form_of_the_calls_counts_only_where_there_is_no_other() -> None:
    own = [
        {"id": each, "type": "function", "function": {"name": "f", "arguments": "{"}}
        for each in ("c1", "c2")
    ]
    message = ai("c1", invalid=["c2"], additional_kwargs={"tool_calls": own})
    assert read(message)[0].calls == (
        ToolCall("c1", "search"),
        ToolCall("c2", "search", invalid=True),
    )


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        (
            AIMessage(
                "",
                additional_kwargs={
                    "tool_calls": [
                        {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
                    ]
                },
            ).model_copy(update={"tool_calls": [], "invalid_tool_calls": []}),
            [("c", "f")],
        ),
        (
            AIMessage([content_block(type="tool_use", id="c", name="f", input={})]),
            [("c", "f")],
        ),
        (
            AIMessage(
                [
                    content_block(
                        type="function_call", id="fc_1", call_id="c", name="f", arguments=""
                    )
                ]
            ),
            [("c", "f")],
        ),
        (
            AIMessage([content_block(type="tool_call", id="c", name="f", args={})]),
            [("c", "f")],
        ),
        (
            AIMessage([content_block(type="computer_call", id="x", call_id="c")]),
            [("c", "computer_call")],
        ),
    ],
)
def test_calls_stand_where_the_provider_puts_them(
    message: AIMessage, calls: list[tuple[str, str]]
) -> None:
    found = read(message)[0]
    assert [(call.id, call.name) for call in found.calls] == calls
    assert not found.mismatched


@pytest.mark.parametrize(
    "block",
    [
        content_block(type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        content_block(type="tool_use", id="srvtoolu_1", name="web_search", input={}),
        content_block(type="mcp_tool_use", id="mcptoolu_1", name="x", input={}),
        content_block(type="server_tool_call", id="s", name="web_search", args={}),
        content_block(type="web_search_call", id="ws_1", status="completed"),
        content_block(type="code_interpreter_call", id="ci_1"),
        content_block(type="web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
        content_block(type="function_call", name="gemini"),
    ],
)
def test_calls_that_the_provider_answers_are_none(block: dict[str, Any]) -> None:
    found = read(AIMessage([{"type": "text", "text": "hm"}, block]))[0]
    assert found.calls == ()
    assert not found.mismatched


def test_a_server_call_in_tool_calls_is_left_out() -> None:
    assert [call.id for call in read(ai("srvtoolu_1", "c"))[0].calls] == ["c"]


def test_content_that_names_the_same_calls_agrees_with_tool_calls() -> None:
    blocks = [content_block(type="tool_use", id=each, name="f", input={}) for each in ("a", "b")]
    assert not read(ai("a", "b", content=blocks))[0].mismatched
    assert not read(ai("a", invalid=["b"], content=blocks))[0].mismatched
    assert read(ai("a", content=blocks))[0].mismatched
    assert not read(ai("a", content="text"))[0].mismatched


def test_calls_that_the_users_turn_answers_in_its_content_are_none() -> None:
    blocks = [content_block(type="tool_use", id=each, name="f", input={}) for each in ("a", "b")]
    answer = HumanMessage([content_block(type="tool_result", tool_use_id="a", content="r")])
    assert [call.id for call in read(AIMessage(blocks), answer)[0].calls] == ["b"]
    for between in (human(), SystemMessage("x")):
        found = read(AIMessage(blocks), between, answer)
        assert [call.id for call in found[0].calls] == ["a", "b"]


@pytest.mark.parametrize(
    "message",
    [
        AIMessage([content_block(type="thinking", thinking="x", signature="sig")]),
        AIMessage([content_block(type="redacted_thinking", data="x")]),
        AIMessage([content_block(type="reasoning", id="rs_1", encrypted_content="x")]),
        AIMessage([content_block(type="reasoning", reasoning="x", extras={"signature": "s"})]),
        AIMessage([content_block(type="reasoning_content", reasoning_content={"signature": "s"})]),
        AIMessage([content_block(type="non_standard", value={"type": "redacted_thinking"})]),
        AIMessage([content_block(type="text", text="x", extras={"signature": "s"})]),
        AIMessage("", additional_kwargs={"reasoning": {"encrypted_content": "x"}}),
        AIMessage("", additional_kwargs={"reasoning_details": [{"data": "x"}]}),
        AIMessage(
            "", additional_kwargs={"__gemini_function_call_thought_signatures__": {"c": "s"}}
        ),
    ],
)
def test_signed_thinking_is_seen(message: AIMessage) -> None:
    assert read(message)[0].signed


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("thinking with signature"),
        AIMessage([content_block(type="thinking", thinking="x", signature="")]),
        AIMessage([content_block(type="reasoning", id="rs_1", summary=[])]),
        AIMessage("", additional_kwargs={"reasoning": {"summary": []}}),
    ],
)
def test_unsigned_thinking_binds_nothing(message: AIMessage) -> None:
    assert not read(message)[0].signed


@pytest.mark.parametrize(
    ("message", "known"),
    [
        (cancelled("c"), True),
        (
            result(
                "c",
                "Tool call search with id c did not complete - no result was recorded. "
                "It may have been cancelled or interrupted.",
            ),
            True,
        ),
        (
            result(
                "c",
                "Tool call search with id c could not be executed - arguments were malformed or"
                " truncated.",
            ),
            True,
        ),
        (result("c", "[Tool call was interrupted and did not return a result.]"), True),
        (result("c", "any text", additional_kwargs={"repair_service": {"cause": "x"}}), True),
        (result("c", "Tool call search with id other was cancelled."), False),
        (result("c", cancelled("other").text), False),
        (result("c", cancelled("c").text + " Really."), False),
        (result("c", "the tool failed", status="error"), False),
        (result("c", ""), False),
    ],
)
def test_only_the_known_texts_are_placeholders(message: ToolMessage, known: bool) -> None:
    assert read(message)[0].placeholder is known


ODD = [None, 5, "x", "", [], [None], [5, "x"], {}, {"a": 1}, {"type": 5, "id": [1]}, True, 1.5]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", ["ai", "tool", "human"])
def test_a_field_of_an_odd_shape_spoils_only_itself(kind: str, odd: Any) -> None:
    usual = {
        "type": kind,
        "content": "text",
        "id": "m",
        "tool_call_id": "c",
        "additional_kwargs": {},
        "tool_calls": [{"id": "c", "name": "f", "args": {}}],
    }
    for field in (*usual, "name", "invalid_tool_calls", "response_metadata", "status", "artifact"):
        message = usual | {field: odd}
        for type_, encode in (("msgpack", msgspec.msgpack.encode), ("json", msgspec.json.encode)):
            found = read_transcript(type_, encode([message]))
            if found is None:
                assert field in ("type", "content")
                continue
            assert found.messages[0].id == ("m" if field != "id" else found.messages[0].id)
            assert found.messages[0].kind == kind


def test_a_call_of_no_shape_is_still_a_call() -> None:
    blob = msgspec.msgpack.encode([{"role": "assistant", "content": "", "tool_calls": [7, {}]}])
    found = read_transcript("msgpack", blob)
    assert found is not None
    assert found.messages[0].calls == (ToolCall(None, None), ToolCall(None, None))


def test_a_javascript_message_without_an_id_has_none() -> None:
    blob = json.dumps(
        [{"lc": 1, "type": "constructor", "id": ["AIMessage"], "kwargs": {"content": "x"}}]
    ).encode()
    found = read_transcript("json", blob)
    assert found is not None
    assert found.messages == (Message(found.messages[0].raw, "ai"),)


def test_a_write_may_be_one_message_or_a_list() -> None:
    assert kinds(read_messages("msgpack", as_msgpack(result("c")))) == ["tool"]
    assert kinds(read_messages("msgpack", as_msgpack([result("c"), human()]))) == ["tool", "human"]
    assert kinds(read_messages("msgpack", as_msgpack(as_dict(human())))) == ["human"]
    assert kinds(read_messages("json", as_json([result("c")]))) == ["tool"]
    assert read_messages("msgpack", as_msgpack([])) == ()


def test_a_removal_says_what_it_removes() -> None:
    removed = read_messages("msgpack", as_msgpack([RemoveMessage("m"), RemoveMessage(REMOVE_ALL)]))
    assert [(message.kind, message.id) for message in removed] == [
        ("remove", "m"),
        ("remove", REMOVE_ALL),
    ]


@pytest.mark.parametrize(
    "value",
    [
        Overwrite([human()]),
        {"__overwrite__": [human()]},
        {"type": "__overwrite__", "value": [human()]},
    ],
)
def test_a_write_that_replaces_the_list_says_so(value: Any) -> None:
    found = read_messages("msgpack", as_msgpack(value))
    assert kinds(found) == ["overwrite", "human"]


@pytest.mark.parametrize("value", [5, [human(), 5], {"a": 1}, [Document("x")]])
def test_a_write_of_something_else_is_unreadable(value: Any) -> None:
    with pytest.raises(Unreadable):
        read_messages("msgpack", as_msgpack(value))


def test_what_an_error_says_holds_no_content() -> None:
    messages: list[BaseMessage] = [human("a secret")]
    with pytest.raises(Unreadable) as caught:
        read_transcript("msgpack", as_msgpack(messages)[:-3])
    assert "secret" not in str(caught.value)
