"""The real clients, pointed at the local server: a list of messages becomes a real request."""

from collections.abc import Sequence

import anthropic
import openai
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_google_genai.chat_models import ChatGoogleGenerativeAIError
from langchain_openai import ChatOpenAI

PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "gemini")

REFUSALS = (openai.BadRequestError, anthropic.BadRequestError, ChatGoogleGenerativeAIError)
"""What the clients raise for a 400."""


def make_clients(url: str) -> dict[str, BaseChatModel]:
    """A client for each provider, by its name in `PROVIDERS`.

    Args:
        url: Address of the local server, without a path.
    """
    key = "not-a-key"
    return {
        "openai-chat": ChatOpenAI(model="gpt-4o", api_key=key, base_url=f"{url}/v1", max_retries=0),
        "openai-responses": ChatOpenAI(
            model="gpt-4o",
            api_key=key,
            base_url=f"{url}/v1",
            max_retries=0,
            use_responses_api=True,
        ),
        "anthropic": ChatAnthropic(
            model="claude", api_key=key, base_url=url, max_retries=0, max_tokens=64
        ),
        "gemini": ChatGoogleGenerativeAI(
            model="gemini-2.5-flash", api_key=key, base_url=url, max_retries=1
        ),
    }


def refusal(client: BaseChatModel, messages: Sequence[BaseMessage]) -> str | None:
    """Send a list to its provider.

    Args:
        client: One of `make_clients`.
        messages: The list, as it was loaded.

    Returns:
        What the provider's 400 says, or None where the list was accepted.
    """
    try:
        client.invoke(list(messages))
    except REFUSALS as error:
        return str(error)
    return None


def as_a_turn(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The list as an agent sends it once the user has typed on."""
    return [*messages, HumanMessage("Are you there?")]
