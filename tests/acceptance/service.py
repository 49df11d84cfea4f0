"""What the tests ask of the service and of the store, in the service's own words."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from repair_service.demo.model import ProviderRefusal
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Selection, Sweep
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
