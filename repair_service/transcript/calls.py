"""What an AI message says about tool calls and thinking, over the shapes of all providers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Raw

from repair_service.transcript.message import ToolCall
from repair_service.transcript.wire import (
    Additional,
    Block,
    Codec,
    Fields,
    is_empty,
    is_list,
    lenient,
)

SERVER_ID: Final = "srvtoolu_"
"""Anthropic's prefix for calls that it answers itself."""

SERVER_CALLS: Final = frozenset({"server_tool_call", "server_tool_use", "mcp_tool_use"})

CALL_BLOCKS: Final = {
    "tool_use": "id",  # Anthropic, Bedrock
    "tool_call": "id",  # LangChain's standard content
    "invalid_tool_call": "id",
    "function_call": "call_id",  # OpenAI Responses
    "custom_tool_call": "call_id",
}
"""The content blocks that are client-side calls, and the field with the id a result answers."""

OWN_KIND_BLOCKS: Final = frozenset(
    {"computer_call", "shell_call", "local_shell_call", "apply_patch_call"}
)
"""OpenAI Responses calls that never stand in `tool_calls`, and that a plain text cannot answer."""

_WORDS: Final = ("name", "args", "arguments", "input", "function")
"""The fields of a call that say what is asked for, over all its forms."""

_UNDEFINED: Final = {"lc": 2, "type": "undefined"}
"""What LangGraph.js writes for it in JSON."""


def blocks_of(codec: Codec, content: bytes) -> list[Block]:
    """The content blocks of a message; plain texts and blocks of unknown shape are left out."""
    if not is_list(content):
        return []
    found = (lenient(codec.block, block) for block in lenient(codec.elements, content) or ())
    return [block for block in found if block is not None]


def calls_of(
    codec: Codec, fields: Fields, blocks: Sequence[Block], additional: Additional | None
) -> tuple[tuple[ToolCall, ...], bool]:
    """The client-side calls of an AI message, and whether its content disagrees about them.

    `tool_calls` and `invalid_tool_calls` come first, in the order in which they were declared. Only
    where both are empty do the provider's own forms count: `additional_kwargs.tool_calls` (OpenAI
    chat completions), else content blocks.

    Sources: langchain_core/messages/ai.py, langchain_anthropic/chat_models.py
    (`_format_messages` sends the content's `tool_use` blocks, then what `tool_calls` has more).

    Returns:
        The calls, and True where content blocks name other calls than the fields do.
    """
    declared = [
        *_declared(codec, fields.tool_calls, invalid=False),
        *_declared(codec, fields.invalid_tool_calls, invalid=True),
    ]
    if not declared and additional is not None:
        declared = list(_declared(codec, additional.tool_calls, invalid=False))
    inline = list(_inline(codec, blocks))
    ids = {call.id for call in declared}
    mismatched = bool(declared and inline) and {call.id for call in inline} != ids
    own_kind = [call for call in _own_kind(codec, blocks) if call.id not in ids]
    return (*(declared or inline), *own_kind), mismatched


def words_of(codec: Codec, fields: Fields, identifier: str) -> list[Any]:
    """The tool and the arguments that an AI message names by one call id, wherever it does.

    What a store adds to a message that it reads and writes again is left out: LangGraph.js writes
    what is `undefined`, and not the next time.
    """
    calls: list[Any] = []
    for raw in (fields.tool_calls, fields.invalid_tool_calls, fields.content):
        if is_list(raw):
            calls.extend(lenient(codec.plain, raw) or ())
    additional = lenient(codec.plain, fields.additional_kwargs)
    inside = additional.get("tool_calls") if isinstance(additional, Mapping) else None
    calls.extend(inside if isinstance(inside, list) else ())
    return [
        _without_undefined({word: call[word] for word in _WORDS if call.get(word) is not None})
        for call in calls
        if isinstance(call, Mapping) and identifier in (call.get("id"), call.get("call_id"))
    ]


def _without_undefined(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {key: each for key, each in value.items() if each != _UNDEFINED}
        return {key: _without_undefined(each) for key, each in kept.items()}
    return [_without_undefined(each) for each in value] if isinstance(value, list) else value


def is_signed(codec: Codec, blocks: Iterable[Block], additional: Additional | None) -> bool:
    """Whether an AI message carries thinking that its provider signed or encrypted.

    Sources: Anthropic's extended thinking (`thinking` with a `signature`, `redacted_thinking`;
    `extras` in LangChain's standard content), Bedrock's `reasoning_content`, OpenAI's reasoning
    items with `encrypted_content`, OpenRouter's `reasoning_details`, Gemini's thought signatures.
    """
    if any(_carries_signature(codec, block) for block in blocks):
        return True
    if additional is None:
        return False
    if not is_empty(additional.gemini_signatures):
        return True
    reasoning = lenient(codec.block, additional.reasoning)
    if reasoning is not None and not is_empty(reasoning.encrypted_content):
        return True
    return any(
        not (is_empty(detail.signature) and is_empty(detail.data))
        for detail in blocks_of(codec, additional.reasoning_details)
    )


def _declared(codec: Codec, calls: Raw, *, invalid: bool) -> Iterable[ToolCall]:
    if is_empty(calls):
        return
    for raw in lenient(codec.elements, calls) or ():
        call = lenient(codec.call, raw)
        if call is None:
            # A call of no shape at all is still a call that nothing can answer.
            yield ToolCall(None, None, invalid)
            continue
        identifier = lenient(codec.text, call.id)
        if _is_server_side(lenient(codec.text, call.type), identifier):
            continue
        name = lenient(codec.text, call.name)
        if not name and (function := lenient(codec.call, call.function)) is not None:
            name = lenient(codec.text, function.name)
        yield ToolCall(identifier, name or None, invalid)


def _inline(codec: Codec, blocks: Iterable[Block]) -> Iterable[ToolCall]:
    for block in blocks:
        kind = lenient(codec.text, block.type) or ""
        field = CALL_BLOCKS.get(kind)
        # Gemini's own `function_call` blocks have no id; its calls stand in `tool_calls`.
        if field is None or (field == "call_id" and is_empty(block.call_id)):
            continue
        identifier = lenient(codec.text, block.id if field == "id" else block.call_id)
        if not _is_server_side(kind, identifier):
            name = lenient(codec.text, block.name) or None
            yield ToolCall(identifier, name, kind == "invalid_tool_call")


def _own_kind(codec: Codec, blocks: Iterable[Block]) -> Iterable[ToolCall]:
    for block in blocks:
        kind = lenient(codec.text, block.type)
        if kind in OWN_KIND_BLOCKS:
            yield ToolCall(lenient(codec.text, block.call_id), kind, own_kind=True)


def _is_server_side(kind: str | None, identifier: str | None) -> bool:
    return kind in SERVER_CALLS or (identifier or "").startswith(SERVER_ID)


def _carries_signature(codec: Codec, block: Block) -> bool:
    if not (
        is_empty(block.signature)
        and is_empty(block.thought_signature)
        and is_empty(block.encrypted_content)
    ):
        return True
    if lenient(codec.text, block.type) == "redacted_thinking":
        return True
    inner = (block.extras, block.reasoning_content, block.value)
    return any(
        found is not None
        and (
            not (is_empty(found.signature) and is_empty(found.encrypted_content))
            or lenient(codec.text, found.type) == "redacted_thinking"
        )
        for found in (lenient(codec.block, raw) for raw in inner if not is_empty(raw))
    )
