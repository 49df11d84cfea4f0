"""Message lists as LangGraph stores them: from real messages, through the real serializer."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from repair_service.transcript.message import Message, ToolCall
from repair_service.transcript.read import read_transcript
from repair_service.transcript.write import compose_result

SERIALIZER = JsonPlusSerializer(allowed_msgpack_modules=None)


def human(text: str = "hi", **fields: Any) -> HumanMessage:
    return HumanMessage(text, **fields)


def ai(*ids: str | None, invalid: Sequence[str] = (), **fields: Any) -> AIMessage:
    """An AI message that calls a tool once for each id."""
    return AIMessage(
        fields.pop("content", ""),
        tool_calls=[{"name": "search", "args": {"q": "x"}, "id": each} for each in ids],
        invalid_tool_calls=[
            {"name": "search", "args": "{", "id": each, "error": None} for each in invalid
        ],
        **fields,
    )


def result(call_id: str, text: str = "done", **fields: Any) -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id, name="search", **fields)


def cancelled(call_id: str) -> ToolMessage:
    """What deepagents puts in for a call that was cut off."""
    return result(
        call_id,
        f"Tool call search with id {call_id} was cancelled - another message came in before it"
        " could be completed.",
    )


def as_msgpack(value: object) -> bytes:
    return SERIALIZER.dumps_typed(value)[1]


def as_json(messages: Iterable[BaseMessage]) -> bytes:
    """The list as LangGraph.js writes it."""
    return json.dumps([constructor(each) for each in messages], separators=(",", ":")).encode()


def constructor(message: BaseMessage) -> dict[str, Any]:
    fields = message.model_dump()
    kept = {key: value for key, value in fields.items() if value is not None and key != "type"}
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain_core", "messages", type(message).__name__],
        "kwargs": kept,
    }


def as_dict(message: BaseMessage) -> dict[str, Any]:
    """The message as OpenAI's chat completions know it."""
    if isinstance(message, ToolMessage):
        return {"role": "tool", "content": message.content, "tool_call_id": message.tool_call_id}
    if not isinstance(message, AIMessage):
        return {"role": "user", "content": message.content}
    made: dict[str, Any] = {"role": "assistant", "content": message.content}
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    if calls:
        made["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
            }
            for call in calls
        ]
    return made


def read(*messages: BaseMessage) -> tuple[Message, ...]:
    """The messages as they are read out of a stored list."""
    found = read_transcript("msgpack", as_msgpack(list(messages)))
    assert found is not None
    return found.messages


def placeholder(index: int, call: ToolCall) -> Message:
    return compose_result(
        "msgpack",
        call_id=call.id or "",
        tool=call.name,
        text="interrupted",
        message_id=f"made-{index}-{call.id}",
        marks={},
    )
