"""Two writings of one message: whether a call asks for the same in both."""

import json
from typing import Any

import pytest

from repair_service.transcript.element import asks_the_same
from repair_service.transcript.message import Message
from repair_service.transcript.read import read_messages
from tests.transcript.make import ai, as_msgpack, constructor

UNDEFINED = {"lc": 2, "type": "undefined"}
"""LangGraph.js writes it in a pending write, and leaves the field out of the list behind it."""


def stored(**fields: Any) -> Message:
    """One AI message as LangGraph.js writes it, with further fields."""
    written = constructor(ai("c"))
    written["kwargs"] |= fields
    (message,) = read_messages("json", json.dumps(written).encode())
    return message


def called(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "search", "args": {"q": "x"}, "id": "c", **fields}]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": UNDEFINED},
        {"content": "Let me see."},
        {"tool_calls": called(type="tool_call", args={"q": "x", "limit": UNDEFINED})},
        {"tool_calls": [*called(), *called(id="another")]},
    ],
)
def test_what_is_not_asked_for_may_differ(fields: dict[str, Any]) -> None:
    assert asks_the_same(stored(), stored(**fields), "c")


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_calls": called(args={"q": "y"})},
        {"tool_calls": called(args={"q": "x", "limit": None})},
        {"tool_calls": called(name="delete")},
        {"tool_calls": called(id="another")},
        {"tool_calls": []},
    ],
)
def test_another_tool_or_other_arguments_are_another_call(fields: dict[str, Any]) -> None:
    assert not asks_the_same(stored(), stored(**fields), "c")


def test_a_call_is_found_in_content_and_in_additional_kwargs() -> None:
    block = {"type": "tool_use", "id": "c", "name": "search", "input": {"q": "x"}}
    raw = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    for fields, edited in (
        ({"content": [block]}, {"content": [{**block, "input": {"q": "y"}}]}),
        (
            {"additional_kwargs": {"tool_calls": [raw]}},
            {"additional_kwargs": {"tool_calls": [{**raw, "function": {"name": "delete"}}]}},
        ),
    ):
        bare = {"tool_calls": []}
        same = stored(**bare, **fields, name="agent")
        assert asks_the_same(stored(**bare, **fields), same, "c")
        assert not asks_the_same(stored(**bare, **fields), stored(**bare, **edited), "c")


def test_messages_of_different_encodings_are_compared_by_what_they_say() -> None:
    (python,) = read_messages("msgpack", as_msgpack(ai("c")))
    assert asks_the_same(python, stored(), "c")
