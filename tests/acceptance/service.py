"""What the tests ask of the service and of the store, in the service's own words."""

from collections.abc import Sequence
from typing import Any

from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.prebuilt.chat_agent_executor import _validate_chat_history
from langgraph.runtime import Runtime

from repair_service.demo.model import ProviderRefusal, check
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from tests.conftest import Database

NOW = Policy(min_idle=0)
"""The programs of the tests died a moment ago."""

Rows = dict[str, list[tuple[Any, ...]]]


def audit(database: Database, policy: Policy = NOW) -> list[Diagnosis]:
    """Judge every head that is not healthy."""
    with Store.connect(database.url, schema=database.schema) as store:
        return list(Sweep(store, policy, Selection()).audit())


def sweep(database: Database, policy: Policy = NOW) -> list[Diagnosis]:
    """Repair every head that can be."""
    with Store.connect(database.url, schema=database.schema) as store:
        return list(Sweep(store, policy, Selection()).repair())


def verdicts(diagnoses: Sequence[Diagnosis]) -> dict[tuple[str, str], Verdict]:
    """The verdict by thread and namespace."""
    return {(item.thread_id, item.checkpoint_ns): item.verdict for item in diagnoses}


def rows(database: Database) -> Rows:
    """Every row of LangGraph's tables."""
    with database.connect() as connection:
        return {
            table: connection.execute(f"SELECT t::text FROM {table} AS t ORDER BY 1").fetchall()
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        }


def assert_only_added(before: Rows, after: Rows) -> None:
    """Every row from before is there, unchanged, and no pending write was made."""
    for table, there in before.items():
        assert set(there) <= set(after[table])
    assert before["checkpoint_writes"] == after["checkpoint_writes"]


def assert_in_call_order(messages: Sequence[BaseMessage]) -> None:
    """Every call's result stands right behind its message, in the order of the calls."""
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            called = [call["id"] for call in message.tool_calls]
            behind = messages[index + 1 : index + 1 + len(called)]
            assert [getattr(result, "tool_call_id", None) for result in behind] == called


def results(messages: Sequence[BaseMessage]) -> dict[str, str]:
    """The text of each tool result, by its call's id."""
    return {
        message.tool_call_id: message.text
        for message in messages
        if isinstance(message, ToolMessage)
    }


REFUSED = (ProviderRefusal, ValueError)
"""How a faulty list fails: the provider's 400, or create_react_agent's own look at the history."""


def never_again(after: int) -> str:
    """A tool `slow` that must not run: repairing runs no tool, and going on starts behind them."""
    raise AssertionError("The tool `slow` ran again.")


def assert_repaired(database: Database, *heads: tuple[str, str]) -> list[Diagnosis]:
    """Sweep: these heads, threads with namespaces, are repaired; nothing else is touched or left.

    Returns:
        What the sweep says of those heads, by thread.
    """
    before = rows(database)
    done = sweep(database)
    assert verdicts(done) == dict.fromkeys(heads, Verdict.REPAIRED), [i.reason for i in done]
    after = rows(database)
    assert_only_added(before, after)
    assert len(after["checkpoints"]) == len(before["checkpoints"]) + len(heads)
    assert audit(database) == []
    return sorted(done, key=lambda item: item.thread_id)


def assert_waiting(database: Database, *thread_ids: str, policy: Policy = NOW) -> None:
    """Sweep: these threads wait, and no row is written."""
    before = rows(database)
    expected = {(thread_id, ""): Verdict.WAITING for thread_id in thread_ids}
    assert verdicts(sweep(database, policy)) == expected
    assert rows(database) == before


def assert_accepted(messages: Sequence[BaseMessage]) -> None:
    """Every provider takes the list, and what others mend at request time finds nothing to do."""
    assert_in_call_order(messages)
    check([*messages, HumanMessage("And now?")])
    _validate_chat_history(list(messages))
    assert PatchToolCallsMiddleware().before_agent({"messages": list(messages)}, Runtime()) is None
