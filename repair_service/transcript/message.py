"""The messages of a transcript, as far as tool calls and their results go."""

from dataclasses import dataclass
from typing import Literal

Encoding = Literal["msgpack", "json"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call that the application, not the provider, has to answer.

    Attributes:
        id: The call's id; None or empty where the message has none.
        name: The tool's name, where the message says it.
        invalid: True for a call from `invalid_tool_calls`, whose arguments could not be read.
        own_kind: True for a call that only a result of its own kind can answer (OpenAI's computer
            and shell calls): never given a placeholder.
    """

    id: str | None
    name: str | None
    invalid: bool = False
    own_kind: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its own bytes, and what the pairing of calls and results needs to know.

    Attributes:
        raw: The element's bytes exactly as they stand in the list (one msgpack object or one JSON
            value).
        kind: The `type` field (`human`, `ai`, `tool`, `system`, `remove`, ...), never the class.
            `AIMessageChunk` is reported as `ai`, `ToolMessageChunk` as `tool`; a role is mapped
            (`user` to `human`, `assistant` to `ai`).
        id: The message id, None where it has none.
        calls: The client-side calls of an AI message in the order in which they were declared;
            server-side tools are left out.
        answers: The `tool_call_id` of a tool message; None for other kinds.
        name: The `name` field.
        placeholder: Whether a tool message is a known placeholder: ours, or one that LangChain or
            deepagents put in for a call that was cut off.
        signed: Whether the message carries signed thinking (Anthropic `thinking` with `signature`,
            `redacted_thinking`, OpenAI reasoning items with encrypted content, Gemini thought
            signatures).
        mismatched: Whether content blocks and `tool_calls` disagree about the calls.
        model: `response_metadata.model_name` (or `model`), None where it is not said.
    """

    raw: bytes
    kind: str
    id: str | None = None
    calls: tuple[ToolCall, ...] = ()
    answers: str | None = None
    name: str | None = None
    placeholder: bool = False
    signed: bool = False
    mismatched: bool = False
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """The list of messages in one channel.

    Attributes:
        encoding: How the blob was written.
        messages: The messages in order.
        path: Where in the value the list stands: empty for the value itself, otherwise the keys
            that lead to it (a `__root__` channel whose state is a mapping).
        around: The value around the list, with the list cut out, as the writer needs it; empty
            when `path` is.
    """

    encoding: Encoding
    messages: tuple[Message, ...]
    path: tuple[str, ...] = ()
    around: bytes = b""
