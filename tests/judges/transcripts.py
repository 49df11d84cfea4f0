"""The lists of messages in a store, as LangGraph itself loads them."""

from collections.abc import Iterable
from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.repair.diagnosis import Diagnosis
from tests.conftest import Database

Key = tuple[str, str]
"""A thread and a namespace."""

Lists = dict[Key, list[BaseMessage]]


class _Model(FakeListChatModel):
    """Stands where an agent wants a model; nobody asks it anything."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def load(database: Database, heads: Iterable[Diagnosis]) -> Lists:
    """Load the transcript of each head that was diagnosed.

    Args:
        database: The store.
        heads: Diagnoses, for the thread, namespace and channel they name.

    Returns:
        The messages, by thread and namespace.
    """
    lists: Lists = {}
    with PostgresSaver.from_conn_string(database.url) as saver:
        deep_agent = None
        for head in heads:
            assert head.channel is not None
            place = {"thread_id": head.thread_id, "checkpoint_ns": head.checkpoint_ns}
            stored = saver.get_tuple({"configurable": place})
            assert stored is not None
            value = stored.checkpoint["channel_values"].get(head.channel)
            if not isinstance(value, list):
                # A delta channel: its value is spread over the history, or wrapped in a snapshot.
                # Only a graph that knows the channel has it.
                deep_agent = deep_agent or _deep_agent(saver)
                value = deep_agent.get_state({"configurable": place}).values[head.channel]
            lists[head.thread_id, head.checkpoint_ns] = value
    return lists


def _deep_agent(saver: PostgresSaver) -> Any:
    from deepagents import create_deep_agent

    return create_deep_agent(model=_Model(responses=[]), checkpointer=saver)
