"""A chat model that plays a script and refuses message lists as the providers do.

It keeps nothing between calls: what it says follows from the messages alone, so a thread that one
process left half done is taken up by another. It opens no connection.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import Field

Line = tuple[tuple[str, Mapping[str, Any]], ...]
"""What the model answers to one human text: tool names with their arguments, called in parallel."""


class ProviderRefusal(Exception):
    """A message list that every provider answers with a 400, and the rule that it breaks.

    The rules are OpenAI's ("an assistant message with 'tool_calls' must be followed by tool
    messages responding to each 'tool_call_id'") and Anthropic's ("each `tool_use` block must have a
    corresponding `tool_result` block in the next message"), whichever is stricter.
    """

    status_code = 400

    def __init__(self, reason: str) -> None:
        super().__init__(f"Error code: 400 - {reason}")


def check(messages: Sequence[BaseMessage]) -> None:
    """Refuse what a provider would refuse.

    Args:
        messages: The messages as the model is given them.

    Raises:
        ProviderRefusal: Where a call is not followed at once by exactly one result each, a result
            answers no call, an id is empty or used twice, a result has no text, or the list has
            nothing to answer.
    """
    index = 0
    talk = [message for message in messages if not isinstance(message, SystemMessage)]
    while index < len(talk):
        message = talk[index]
        index += 1
        if isinstance(message, ToolMessage):
            raise ProviderRefusal(
                f"messages.{index - 1}: a tool result must directly follow the message that made "
                f"its call: {message.tool_call_id!r}."
            )
        if not isinstance(message, AIMessage):
            continue
        called = _call_ids(message, index - 1)
        results = []
        while index < len(talk) and isinstance(result := talk[index], ToolMessage):
            results.append(result)
            index += 1
        _check_results(called, results, index)
    if talk and isinstance(talk[-1], AIMessage):
        raise ProviderRefusal("the conversation must end with a user message or a tool result.")


def _call_ids(message: AIMessage, index: int) -> list[str]:
    """The ids of all calls of a message, invalid ones too; refused where they cannot be paired."""
    ids = [call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)]
    if not all(ids):
        raise ProviderRefusal(f"messages.{index}: a tool call has an empty id.")
    if len(set(ids)) < len(ids):
        raise ProviderRefusal(f"messages.{index}: tool call ids must be unique.")
    return [str(call_id) for call_id in ids]


def _check_results(called: list[str], results: list[ToolMessage], index: int) -> None:
    """Refuse unless the results that follow a message answer each of its calls exactly once."""
    answered = Counter(result.tool_call_id for result in results)
    missing = [call_id for call_id in called if call_id not in answered]
    if missing:
        raise ProviderRefusal(
            "an assistant message with 'tool_calls' must be followed by tool messages responding "
            f"to each 'tool_call_id'. No result for: {', '.join(missing)}."
        )
    for call_id, count in answered.items():
        if call_id not in called:
            raise ProviderRefusal(f"messages.{index}: a tool result answers no call: {call_id!r}.")
        if count > 1:
            raise ProviderRefusal(f"messages.{index}: more than one tool result for {call_id!r}.")
    if not all(result.content for result in results):
        raise ProviderRefusal(f"messages.{index}: a tool result is empty.")


class ScriptedModel(BaseChatModel):
    """A deterministic chat model.

    To a human text that stands in its script it answers with those tool calls; to tool results with
    a sentence that quotes them; to any other text with a sentence that quotes it.

    Attributes:
        script: Tool calls by human text.
    """

    script: Mapping[str, Line] = Field(default_factory=dict)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Take the tools and do without them: the script names what it calls."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        check(messages)
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        metadata = {"model_name": "scripted-1"}
        last = messages[-1]
        if isinstance(last, ToolMessage):
            results = []
            for message in reversed(messages):
                if not isinstance(message, ToolMessage):
                    break
                results.append(message.text)
            text = "The tools said: " + " / ".join(reversed(results))
            return AIMessage(text, response_metadata=metadata)
        line = self.script.get(last.text, ())
        if not line:
            return AIMessage(f"You said: {last.text}", response_metadata=metadata)
        # The id counts the turn, as a provider's ids never come twice in one conversation.
        turn = sum(isinstance(message, HumanMessage) for message in messages)
        calls = [
            ToolCall(name=name, args=dict(arguments), id=f"call_{turn}_{number}", type="tool_call")
            for number, (name, arguments) in enumerate(line, start=1)
        ]
        return AIMessage("", tool_calls=calls, response_metadata=metadata)
