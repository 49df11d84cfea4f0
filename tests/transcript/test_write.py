"""What is written is what LangGraph itself would have written."""

import json
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from repair_service.errors import Unreadable
from repair_service.transcript.message import Encoding, Message, Transcript
from repair_service.transcript.read import read_messages, read_transcript
from repair_service.transcript.write import (
    compose_result,
    with_id,
    write_snapshot,
    write_transcript,
)
from tests.transcript.make import SERIALIZER, ai, as_dict, as_json, as_msgpack, human, read, result

MARKS = {"cause": "interrupted", "step": 3, "ids": ["a", None], "share": 0.5}


def made(encoding: Encoding = "msgpack", **changes: Any) -> Message:
    arguments: dict[str, Any] = {
        "call_id": "c",
        "tool": "search",
        "text": "interrupted",
        "message_id": "m",
        "marks": MARKS,
    }
    return compose_result(encoding, **arguments | changes)


def transcript(type_: str, blob: bytes) -> Transcript:
    found = read_transcript(type_, blob)
    assert found is not None
    return found


@pytest.mark.parametrize("length", [0, 1, 15, 16, 70_000])
def test_a_list_is_written_as_it_was_read(length: int) -> None:
    messages = [human(f"text {index}" * 20, id=str(index)) for index in range(length)]
    blob = as_msgpack(messages)
    assert write_transcript(transcript("msgpack", blob)) == blob
    if length < 100:
        assert write_transcript(transcript("json", as_json(messages))) == as_json(messages)


def test_what_stands_around_a_list_is_written_as_it_was_read() -> None:
    blob = as_msgpack({"count": 2**40, "messages": [human()], "last": human(), "none": None})
    assert write_transcript(transcript("msgpack", blob)) == blob
    text = b'{"a":1.50,"messages":' + as_json([human()]) + b',"b":{"c":[ 1 ]}}'
    assert write_transcript(transcript("json", text)) == text


@pytest.mark.parametrize("length", [0, 1, 3, 20, 3000])
def test_a_snapshot_is_what_langgraph_writes(length: int) -> None:
    messages = [human("x" * 7) for _ in range(length)]
    assert write_snapshot(as_msgpack(messages)) == as_msgpack(_DeltaSnapshot(messages))


@pytest.mark.parametrize("text", ["interrupted", "x" * 300, "x" * 70_000, "unterbrochen: ärger"])
def test_a_result_is_what_langgraph_writes_for_a_tool_message(text: str) -> None:
    expected = ToolMessage(
        text,
        name="search",
        id="m",
        tool_call_id="c",
        status="error",
        additional_kwargs={"repair_service": MARKS},
    )
    message = made(text=text)
    assert b"\x91" + message.raw == as_msgpack([expected])
    assert SERIALIZER.loads_typed(("msgpack", message.raw)) == expected


def test_a_result_reads_back_as_what_it_was_made_to_be() -> None:
    for encoding, message in (("msgpack", made()), ("json", made("json"))):
        assert read_messages(encoding, message.raw) == (message,)
        assert message == Message(
            message.raw, "tool", "m", answers="c", name="search", placeholder=True
        )


def test_a_result_without_a_tool_name_gets_one() -> None:
    assert made(tool=None).name == "unknown"


def test_a_javascript_result_has_the_form_of_the_rows() -> None:
    stored = json.loads(made("json").raw)
    assert stored == {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain_core", "messages", "ToolMessage"],
        "kwargs": {
            "status": "error",
            "content": "interrupted",
            "tool_call_id": "c",
            "name": "search",
            "additional_kwargs": {"repair_service": MARKS},
            "response_metadata": {},
            "id": "m",
        },
    }


def like(value: dict[str, Any]) -> Message:
    return transcript("msgpack", as_msgpack([value])).messages[0]


def decoded(message: Message) -> Any:
    return SERIALIZER.loads_typed(("msgpack", message.raw))


def test_in_a_list_of_dicts_a_result_is_a_dict() -> None:
    message = made(like=like(as_dict(ai("c"))))
    assert decoded(message) == {
        "role": "tool",
        "content": "interrupted",
        "tool_call_id": "c",
        "name": "search",
    }


def test_a_dict_has_an_id_and_marks_where_its_neighbour_has_such_fields() -> None:
    neighbour = like(as_dict(ai("c")) | {"id": "a", "additional_kwargs": {}})
    assert decoded(made(like=neighbour)) == {
        "role": "tool",
        "content": "interrupted",
        "tool_call_id": "c",
        "name": "search",
        "id": "m",
        "additional_kwargs": {"repair_service": MARKS},
        "status": "error",
    }


def test_in_a_list_of_dumped_messages_a_result_is_a_dumped_message() -> None:
    message = made(like=like(ai("c").model_dump()))
    assert decoded(message) == decoded(made()).model_dump()


def test_among_objects_a_result_is_an_object() -> None:
    assert made(like=read(ai("c"))[0]) == made()


def test_a_providers_own_dicts_cannot_be_given_a_result() -> None:
    block = {"type": "tool_use", "id": "c", "name": "search", "input": {}}
    with pytest.raises(Unreadable):
        made(like=like({"role": "assistant", "content": [block]}))


@pytest.mark.parametrize("text", ["done", "x" * 190, "x" * 70_000])
def test_an_id_is_all_that_with_id_changes(text: str) -> None:
    message = read(result("c", text))[0]
    named = with_id("msgpack", message, "m-1")
    assert named.id == "m-1"
    assert b"\x91" + named.raw == as_msgpack([result("c", text, id="m-1")])
    assert read_messages("msgpack", named.raw) == (named,)


def test_a_javascript_message_gets_its_id_last() -> None:
    raw = (
        b'{"lc":1,"type":"constructor","id":["langchain_core","messages","ToolMessage"],'
        b'"kwargs":{"status":"success","content":"fast 0","artifact":{"lc":2,"type":"undefined"},'
        b'"tool_call_id":"a0","name":"fast","additional_kwargs":{},"response_metadata":{}}}'
    )
    named = with_id("json", read_messages("json", raw)[0], "m")
    assert named.raw == raw.replace(b'"response_metadata":{}', b'"response_metadata":{},"id":"m"')


def test_a_dict_gets_its_id_too() -> None:
    named = with_id("msgpack", like(as_dict(result("c"))), "m")
    assert decoded(named) == as_dict(result("c")) | {"id": "m"}
