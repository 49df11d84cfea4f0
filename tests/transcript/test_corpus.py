"""Rows of real programs are read as LangChain reads them, and written back byte for byte."""

import json
import logging
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from repair_service.errors import Unreadable
from repair_service.transcript.message import Message
from repair_service.transcript.read import looks_like_transcript, read_messages, read_transcript
from repair_service.transcript.write import write_snapshot, write_transcript
from tests.corpus.loader import VERSIONS
from tests.transcript.make import SERIALIZER
from tests.transcript.stored import stored

CLASSES = {"HumanMessage": "human", "AIMessage": "ai", "ToolMessage": "tool"}


def loaded(type_: str, blob: bytes) -> Any:
    """The value as LangGraph loads it; a JavaScript store's as the JSON it is."""
    if type_ == "json":
        return json.loads(blob)
    value = SERIALIZER.loads_typed((type_, blob))
    return value.value if isinstance(value, _DeltaSnapshot) else value


def is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(each, BaseMessage) or (isinstance(each, dict) and "kwargs" in each)
            for each in value
        )
    )


def known(message: Any) -> tuple[Any, ...]:
    """What LangChain knows of a message."""
    if isinstance(message, BaseMessage):
        kind, fields = message.type, message.model_dump()
    else:
        kind, fields = CLASSES[message["id"][-1]], message["kwargs"]
    calls = [(call["id"], call["name"]) for call in fields.get("tool_calls", ())]
    return kind, fields.get("id"), fields.get("name"), calls, fields.get("tool_call_id")


def found(message: Message) -> tuple[Any, ...]:
    """What was read of it."""
    calls = [(call.id, call.name) for call in message.calls]
    return message.kind, message.id, message.name, calls, message.answers


@pytest.mark.parametrize("version", VERSIONS)
def test_every_stored_list_is_read_as_langchain_reads_it(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    lists = 0
    for channel, type_, blob in stored(version):
        try:
            transcript = read_transcript(type_, blob)
        except Unreadable:
            with pytest.raises(ValueError, match=r"unpack|eof|EOF|truncated|expected"):
                loaded(type_, blob)
            continue
        value = loaded(type_, blob) if type_ in ("msgpack", "json") else None
        if transcript is None or not transcript.messages:
            assert not is_messages(value)
            continue
        for key in transcript.path:
            value = value[key]
        lists += 1
        assert is_messages(value)
        assert [found(message) for message in transcript.messages] == list(map(known, value))
        written = write_transcript(transcript)
        assert blob in (written, write_snapshot(written))
        if not transcript.path:
            assert looks_like_transcript(type_, blob)
            assert channel == "__start__" or read_messages(type_, written) == transcript.messages
    assert lists > 20


@pytest.mark.parametrize("version", VERSIONS)
def test_the_sniff_is_right_about_every_stored_value(version: str) -> None:
    for _, type_, blob in stored(version):
        try:
            transcript = read_transcript(type_, blob)
        except Unreadable:
            continue
        is_list = transcript is not None and bool(transcript.messages) and not transcript.path
        assert looks_like_transcript(type_, blob) is is_list
