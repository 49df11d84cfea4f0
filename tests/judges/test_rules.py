"""The judge is judged: each provider refuses what it is known to refuse, and takes what it takes.

The lists go through the real clients. Where a client puts a list in order, or leaves a part of it
out, so that the rule is never broken on the wire, the table says so: that list proves nothing about
that provider.
"""

import re
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from tests.judges import rules
from tests.judges.clients import PROVIDERS, refusal
from tests.judges.provider import ANSWERED
from tests.judges.rules import Refused

ACCEPTED = None
HIDDEN = None
"""The provider would refuse it, and never sees it: the client does not send it like that."""


def asks(text: str = "Are you there?") -> HumanMessage:
    return HumanMessage(text)


def calls(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": f"tool_{id}", "args": {}, "id": id} for id in ids])


def calls_badly(id: str) -> AIMessage:
    return AIMessage(
        "",
        invalid_tool_calls=[
            {"name": f"tool_{id}", "args": "{", "id": id, "error": "", "type": "invalid_tool_call"}
        ],
    )


def result(id: str, text: str = "done") -> ToolMessage:
    return ToolMessage(text, tool_call_id=id, name=f"tool_{id}")


CHAT_OPEN = "must be followed by tool messages responding to each 'tool_call_id'"
RESPONSES_OPEN = "No tool output found for function call"
ANTHROPIC_OPEN = "`tool_use` ids were found without `tool_result` blocks immediately after"
GEMINI_OPEN = "number of function response parts is equal to the number of function call parts"
OPEN = (CHAT_OPEN, RESPONSES_OPEN, ANTHROPIC_OPEN, GEMINI_OPEN)

LISTS: dict[str, tuple[list[BaseMessage], tuple[str | None, ...]]] = {
    "paired": ([asks(), calls("1", "2"), result("1"), result("2"), asks()], (ACCEPTED,) * 4),
    "paired and to be answered": ([asks(), calls("1"), result("1")], (ACCEPTED,) * 4),
    "an invalid call with its result": (
        [asks(), calls_badly("1"), result("1"), asks()],
        (None,) * 4,
    ),
    "a call last": ([asks(), calls("1")], OPEN),
    "no result": ([asks(), calls("1", "2"), asks()], OPEN),
    "one result missing": ([asks(), calls("1", "2"), result("1"), asks()], OPEN),
    # Gemini's client sends no invalid calls.
    "an invalid call without a result": (
        [asks(), calls_badly("1"), asks()],
        (CHAT_OPEN, RESPONSES_OPEN, ANTHROPIC_OPEN, HIDDEN),
    ),
    # Responses pairs over any distance; Gemini's client gathers the results behind their call.
    "a result too late": (
        [asks(), calls("1", "2"), result("1"), asks(), result("2")],
        (CHAT_OPEN, ACCEPTED, ANTHROPIC_OPEN, HIDDEN),
    ),
    # Gemini's client takes the first result of a call and leaves out the rest.
    "two results": (
        [asks(), calls("1"), result("1"), result("1"), asks()],
        (
            "not found in 'tool_calls' of previous message",
            "No tool call found for function call output",
            "each tool_use must have a single result",
            HIDDEN,
        ),
    ),
    # Gemini's client leaves out results without a call.
    "a result without a call": (
        [asks(), result("9"), asks()],
        (
            "must be a response to a preceeding message with 'tool_calls'",
            "No tool call found for function call output",
            "unexpected `tool_use_id` found in `tool_result` blocks",
            HIDDEN,
        ),
    ),
    "a result of another call": (
        [asks(), calls("1"), result("1"), result("9"), asks()],
        (
            "not found in 'tool_calls' of previous message",
            "No tool call found for function call output",
            "unexpected `tool_use_id` found in `tool_result` blocks",
            HIDDEN,
        ),
    ),
    "results out of order": (
        [asks(), calls("1", "2"), result("2"), result("1"), asks()],
        (ACCEPTED, ACCEPTED, ACCEPTED, "does not match the function call's name"),
    ),
    # Gemini's client wraps the text in an object.
    "an empty result": (
        [asks(), calls("1"), result("1", ""), asks()],
        ("empty or missing", "empty or missing", "empty or missing", HIDDEN),
    ),
    # The client of Responses sends a call whose id came before no second time, so the second result
    # has none. Anthropic refuses such an id wherever it comes again: no repair can change that.
    "an id used again": (
        [asks(), calls("1"), result("1"), asks(), calls("1"), result("1"), asks()],
        (
            ACCEPTED,
            "No tool call found for function call output",
            "`tool_use` ids must be unique",
            ACCEPTED,
        ),
    ),
}


@pytest.mark.parametrize("provider_name", PROVIDERS)
@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_taken_or_refused_in_the_providers_words(
    name: str, provider_name: str, clients: dict[str, BaseChatModel]
) -> None:
    messages, answers = LISTS[name]
    expected = answers[PROVIDERS.index(provider_name)]
    said = refusal(clients[provider_name], messages)
    if expected is None:
        assert said is None
    else:
        assert said is not None
        assert expected in said


@pytest.mark.parametrize("provider_name", PROVIDERS)
def test_an_accepted_list_is_answered(
    provider_name: str, clients: dict[str, BaseChatModel]
) -> None:
    assert clients[provider_name].invoke([asks()]).text == ANSWERED


CALL = {"type": "tool_use", "id": "1", "name": "tool", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "1", "content": "done"}
TEXT = {"type": "text", "text": "And now?"}


def anthropic_body(*blocks: dict[str, Any], call: dict[str, Any] = CALL) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": list(blocks)},
        ]
    }


def gemini_body(*turns: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"contents": [{"role": role, "parts": [part]} for role, part in turns]}


ASKED = ("user", {"text": "Hello."})
CALLED = ("model", {"functionCall": {"name": "tool", "args": {}}})


@pytest.mark.parametrize(
    ("rule", "body", "reason"),
    [
        (rules.anthropic, anthropic_body(TEXT, RESULT), "without `tool_result` blocks immediately"),
        (rules.anthropic, anthropic_body(RESULT, {**TEXT, "text": ""}), "must be non-empty"),
        (rules.anthropic, anthropic_body(RESULT, call={**CALL, "id": "a b"}), "match pattern"),
        (rules.anthropic, anthropic_body(RESULT, call={**CALL, "name": ""}), "empty or missing"),
        (
            rules.gemini,
            gemini_body(ASKED, CALLED, ("user", {"functionResponse": {"response": {"a": 1}}})),
            "Name cannot be empty",
        ),
        (
            rules.gemini,
            gemini_body(ASKED, CALLED, ("user", {"functionResponse": {"name": "tool"}})),
            "required field is not set",
        ),
        (rules.gemini, gemini_body(ASKED, CALLED), "number of function response parts"),
        (
            rules.gemini,
            gemini_body(ASKED, ("user", {"functionResponse": {"name": "tool"}})),
            "comes immediately after a function call turn",
        ),
        (
            rules.openai_chat,
            {
                "messages": [
                    {"role": "assistant", "tool_calls": [{"id": "", "function": {"name": "tool"}}]}
                ]
            },
            "tool_calls[0].id",
        ),
        (
            rules.openai_responses,
            {"input": [{"type": "function_call", "call_id": "1", "name": ""}]},
            "input[0].name",
        ),
    ],
)
def test_what_no_client_sends_is_refused_too(rule: Any, body: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused, match=re.escape(reason)):
        rule(body)


def test_text_behind_all_results_is_taken() -> None:
    rules.anthropic(anthropic_body(RESULT, TEXT))
