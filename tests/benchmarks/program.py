"""A real `create_agent` conversation, with messages as large as a provider's."""

import uuid
import warnings
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

TURNS = 3
"""A turn is five checkpoints and five messages: a question, two calls, their results, an answer."""

ANSWER = (
    "Order {order} left the warehouse in Rotterdam on Tuesday and is with the carrier now. It "
    "should be with you by Friday; I have asked for a text message an hour before it arrives. "
    "Shall I send the invoice to the address that we have on file?"
)
RESULT = (
    '{{"order": "{order}", "status": "in transit", "carrier": "PostNL", "weight_g": 1240, '
    '"items": [{{"sku": "A-1179", "count": 2}}, {{"sku": "B-0042", "count": 1}}]}}'
)


class Assistant(BaseChatModel):
    """Calls two tools for each question, and answers when it has their results."""

    @property
    def _llm_type(self) -> str:
        return "benchmark"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "Assistant":
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        order = uuid.uuid4().hex[:8]
        if isinstance(messages[-1], ToolMessage):
            message = self._message(ANSWER.format(order=order), [])
        else:
            calls = [
                {"name": name, "args": {"order": order}, "id": f"call_{uuid.uuid4().hex[:24]}"}
                for name in ("look_up", "track")
            ]
            message = self._message("", calls)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _message(self, text: str, calls: list[dict[str, Any]]) -> AIMessage:
        """With what OpenAI's client puts beside a text."""
        usage = {"input_tokens": 811, "output_tokens": 94, "total_tokens": 905}
        return AIMessage(
            text,
            tool_calls=calls,
            usage_metadata=usage,
            response_metadata={
                "token_usage": {
                    "prompt_tokens": 811,
                    "completion_tokens": 94,
                    "total_tokens": 905,
                    "prompt_tokens_details": {"audio_tokens": 0, "cached_tokens": 0},
                },
                "model_provider": "openai",
                "model_name": "gpt-4.1-2025-04-14",
                "system_fingerprint": "fp_51e1070cf2",
                "id": f"chatcmpl-{uuid.uuid4().hex[:29]}",
                "finish_reason": "tool_calls" if calls else "stop",
                "logprobs": None,
            },
        )


@tool
def look_up(order: str) -> str:
    """Look an order up."""
    return RESULT.format(order=order)


@tool
def track(order: str) -> str:
    """Ask the carrier where an order is."""
    return f"Order {order}: scanned at the depot Utrecht-Zuid at 07:41, out for delivery."


def make_graph(saver: BaseCheckpointSaver[Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The agent; its tools answer at once."""
    from langchain.agents import create_agent

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return create_agent(Assistant(), [look_up, track], checkpointer=saver)


def converse(graph: CompiledStateGraph[Any, Any, Any, Any], thread_id: str) -> None:
    """One whole conversation of TURNS turns."""
    for turn in range(TURNS):
        question = HumanMessage(f"Where is my order? I placed it {turn + 2} days ago.")
        graph.invoke({"messages": [question]}, {"configurable": {"thread_id": thread_id}})
