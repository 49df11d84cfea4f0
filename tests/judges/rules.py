"""The pairing rules that each provider publishes, applied to the bodies that its client sends.

Each function takes the decoded JSON body of a request and raises `Refused` with the provider's own
wording where the real service answers 400. They know nothing of LangChain.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

ANTHROPIC_ID = re.compile(r"^[a-zA-Z0-9_-]+$")


class Refused(Exception):
    """The request breaks a rule: the provider answers 400.

    Attributes:
        message: What the provider says.
        place: Where in the body, in the provider's own notation; None where it does not say.
    """

    def __init__(self, message: str, place: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


def openai_chat(body: Json) -> None:
    """The rules of OpenAI's chat completions.

    Source: https://platform.openai.com/docs/guides/function-calling (append the assistant's message
    as it came, then one `tool` message with the `tool_call_id` of each call) and the API reference
    of `messages` (`tool_call_id` and `content` of a tool message and a call's `id` and
    `function.name` are required). The wording is that of the service's 400.

    Args:
        body: The body of `POST /v1/chat/completions`.

    Raises:
        Refused: A call without its result in the tool messages right behind its message; a tool
            message that answers none of those calls, or one that is answered already; an id, a
            name or a tool message's content that is missing or empty.
    """
    messages: Sequence[Json] = body["messages"]
    if not messages:
        raise Refused("[] is too short - 'messages'", "messages")
    open_calls: list[str] = []
    last_caller: str | None = None
    for index, message in enumerate(messages):
        place = f"messages.[{index}]"
        if message["role"] == "tool":
            answered = message.get("tool_call_id")
            if last_caller is None:
                raise Refused(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'.",
                    f"{place}.role",
                )
            if answered not in open_calls:
                raise Refused(
                    f"Invalid parameter: 'tool_call_id' of '{answered}' not found in 'tool_calls' "
                    "of previous message.",
                    f"{place}.tool_call_id",
                )
            _not_empty(message.get("content"), f"{place}.content")
            open_calls.remove(answered)
            continue
        _openai_all_answered(open_calls, place)
        last_caller = None
        if message["role"] == "assistant" and message.get("tool_calls"):
            open_calls = _openai_call_ids(message["tool_calls"], place)
            last_caller = place
    _openai_all_answered(open_calls, f"messages.[{len(messages)}]")


def _openai_call_ids(calls: Sequence[Json], place: str) -> list[str]:
    ids = []
    for number, call in enumerate(calls):
        _not_empty(call.get("id"), f"{place}.tool_calls[{number}].id")
        _not_empty(call["function"].get("name"), f"{place}.tool_calls[{number}].function.name")
        if call["id"] in ids:
            raise Refused(
                f"Duplicate value for 'tool_call_id' of '{call['id']}' in message.",
                f"{place}.tool_calls",
            )
        ids.append(call["id"])
    return ids


def _openai_all_answered(open_calls: Sequence[str], place: str) -> None:
    if open_calls:
        raise Refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(open_calls),
            f"{place}.role",
        )


def openai_responses(body: Json) -> None:
    """The rules of OpenAI's Responses.

    Source: https://platform.openai.com/docs/guides/function-calling ("Handling function calls":
    append the response's output, then one `function_call_output` with the same `call_id` for each
    `function_call`). Other items may stand between the two; the wording is that of the 400.

    Args:
        body: The body of `POST /v1/responses`; no `previous_response_id`, so `input` is everything.

    Raises:
        Refused: A `function_call` that no later item answers, an output without an open call of its
            `call_id`, a `call_id` that is open twice, or an id, name or output that is empty.
    """
    items: Sequence[Json] = body["input"]
    if not items:
        raise Refused("Missing required parameter: 'input'.", "input")
    open_calls: list[str] = []
    for index, item in enumerate(items):
        place = f"input[{index}]"
        if item.get("type") == "function_call":
            _not_empty(item.get("call_id"), f"{place}.call_id")
            _not_empty(item.get("name"), f"{place}.name")
            if item["call_id"] in open_calls:
                raise Refused(f"Duplicate function call with call_id {item['call_id']}.", "input")
            open_calls.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            _not_empty(item.get("call_id"), f"{place}.call_id")
            if item["call_id"] not in open_calls:
                raise Refused(
                    f"No tool call found for function call output with call_id {item['call_id']}.",
                    "input",
                )
            _not_empty(item.get("output"), f"{place}.output")
            open_calls.remove(item["call_id"])
    if open_calls:
        raise Refused(f"No tool output found for function call {open_calls[0]}.", "input")


def anthropic(body: Json) -> None:
    """The rules of Anthropic's Messages.

    Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls ("Tool
    result blocks must immediately follow their corresponding tool use blocks", in the user message
    they come first, text only behind all of them), the API reference of `messages` (consecutive
    turns of one role are combined; ids match `^[a-zA-Z0-9_-]+$`; content is not empty), and
    the wording of the service's 400, which also says that `tool_use` ids are unique in a request.

    Args:
        body: The body of `POST /v1/messages`.

    Raises:
        Refused: A `tool_use` without its result in the next message, a result without its call in
            the previous one, two results for one call, a result behind another block, or an id, a
            name or a content that is empty or not unique.
    """
    turns = _combined(body["messages"])
    if not turns:
        raise Refused("messages: at least one message is required")
    seen: set[str] = set()
    called: list[str] = []
    for index, (role, blocks) in enumerate(turns):
        if not blocks and index < len(turns) - 1:
            raise Refused(f"messages.{index}: all messages must have non-empty content")
        answered = _anthropic_results(role, blocks, index, called)
        missing = [id for id in called if id not in answered]
        if missing:
            raise _anthropic_unanswered(index - 1, missing)
        called = _anthropic_calls(role, blocks, index, seen)
    if called:
        raise _anthropic_unanswered(len(turns) - 1, called)


def _combined(messages: Sequence[Json]) -> list[tuple[str, list[Json]]]:
    """Turns of one role in a row as one, text as a block."""
    turns: list[tuple[str, list[Json]]] = []
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}] if content else []
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(content)
        else:
            turns.append((message["role"], list(content)))
    return turns


def _anthropic_results(
    role: str, blocks: Sequence[Json], index: int, called: Sequence[str]
) -> list[str]:
    """The ids that a turn's `tool_result` blocks answer."""
    answered: list[str] = []
    for number, block in enumerate(blocks):
        place = f"messages.{index}.content.{number}"
        if block["type"] == "text" and not block["text"]:
            raise Refused(f"{place}: text content blocks must be non-empty")
        if block["type"] != "tool_result":
            continue
        id = block["tool_use_id"]
        if role != "user":
            raise Refused(f"{place}: `tool_result` blocks can only be in `user` messages")
        if id not in called:
            raise Refused(
                f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous "
                "message."
            )
        if id in answered:
            raise Refused(
                f"{place}: each tool_use must have a single result. Found multiple `tool_result` "
                f"blocks with id: {id}"
            )
        if len(answered) < number:
            raise _anthropic_unanswered(index - 1, [id])
        _not_empty(block.get("content"), f"{place}.content")
        answered.append(id)
    return answered


def _anthropic_calls(role: str, blocks: Sequence[Json], index: int, seen: set[str]) -> list[str]:
    """The ids of a turn's `tool_use` blocks; `seen` grows by them."""
    called = []
    for number, block in enumerate(blocks):
        if block["type"] != "tool_use":
            continue
        place, id = f"messages.{index}.content.{number}", block["id"]
        if role != "assistant":
            raise Refused(f"{place}: `tool_use` blocks can only be in `assistant` messages")
        if not isinstance(id, str) or not ANTHROPIC_ID.match(id):
            raise Refused(
                f"{place}.tool_use.id: String should match pattern '{ANTHROPIC_ID.pattern}'"
            )
        _not_empty(block.get("name"), f"{place}.tool_use.name")
        if id in seen:
            raise Refused(f"{place}: `tool_use` ids must be unique")
        seen.add(id)
        called.append(id)
    return called


def _anthropic_unanswered(index: int, ids: Sequence[str]) -> Refused:
    return Refused(
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` "
        "block in the next message."
    )


def gemini(body: Json) -> None:
    """The rules of Gemini's generateContent.

    Source: https://ai.google.dev/gemini-api/docs/function-calling (the function's response is sent
    back in the turn behind the call, one part for each parallel call), the API reference of
    `FunctionResponse` (`name` is required and is the call's; `id` is the call's where it has one),
    and the wording of the service's 400. Without ids, which this client does not send, parts pair
    by their order. Two more of its rules no result can keep or break, so they are not looked at:
    what stands before a function call turn (a user's or a response turn), and thought signatures.

    Args:
        body: The body of `POST .../models/MODEL:generateContent`.

    Raises:
        Refused: A function call turn that is not followed by a turn with as many responses, a
            response turn without a call turn before it, names that differ, or empty parts.
    """
    contents: Sequence[Json] = body["contents"]
    if not contents:
        raise Refused("* GenerateContentRequest.contents: contents is not specified")
    called: list[Json] = []
    for index, content in enumerate(contents):
        parts: Sequence[Json] = content.get("parts") or ()
        if not parts:
            raise Refused(
                f"* GenerateContentRequest.contents[{index}].parts: contents.parts must not be "
                "empty."
            )
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if len(answers) != len(called):
            raise Refused(
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
                if called
                else "Please ensure that function response turn comes immediately after a function "
                "call turn."
            )
        _gemini_names(index, called, answers)
        called = calls
    if called:
        raise Refused(
            "Please ensure that the number of function response parts is equal to the number of "
            "function call parts of the function call turn."
        )


def _gemini_names(index: int, called: Sequence[Json], answers: Sequence[Json]) -> None:
    """Names are there, and each response has that of its call."""
    for number, (call, answer) in enumerate(zip(called, answers, strict=True)):
        place = f"GenerateContentRequest.contents[{index}].parts[{number}].function_response"
        if not call.get("name") or not answer.get("name"):
            raise Refused(f"* {place}.name: Name cannot be empty.")
        if not answer.get("response"):
            raise Refused(f"* {place}.response: required field is not set.")
        if "id" not in answer and call["name"] != answer["name"]:
            raise Refused(f"* {place}.name: does not match the function call's name.")
    if [answer["id"] for answer in answers if "id" in answer] and sorted(
        (str(call.get("id")), call["name"]) for call in called
    ) != sorted((str(answer.get("id")), answer["name"]) for answer in answers):
        raise Refused("* function_response.id: does not match the function call's id.")


def _not_empty(value: Any, place: str) -> None:
    """Refuse a text, or a list of text parts, that holds nothing."""
    if isinstance(value, list):
        value = "".join(part.get("text", "x") for part in value)
    if not value:
        raise Refused(f"Invalid '{place}': empty or missing.", place)
