"""Runs, findings and repairs to put into a ledger."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from repair_service.ledger.pattern import pattern_of
from repair_service.ledger.records.finding import Finding
from repair_service.ledger.records.repair import BlobKey, NewRepair, RepairedCall
from repair_service.ledger.records.run import NewRun, StoreIdentity
from repair_service.repair.verdict import Fault, Verdict
from repair_service.transcript.fault import FaultKind

HEAD = "1f0a8c2e-0000-6000-8000-000000000000"
PATCHED = "1f0a8c2e-0000-6001-8000-000000000000"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def fault(**changes: Any) -> Fault:
    """A call to `charge_card` that nobody answered."""
    facts: dict[str, Any] = {
        "kind": FaultKind.UNANSWERED_CALL,
        "channel": "messages",
        "message_index": 3,
        "tool_call_id": "call_1",
        "tool_name": "charge_card",
        "model": "gpt-5",
        "mend": "placeholder",
    }
    return Fault(**{**facts, **changes})


def run(store: StoreIdentity, **changes: Any) -> NewRun:
    """A sweep of the whole store."""
    facts: dict[str, Any] = {
        "verb": "sweep",
        "store": store,
        "selection": {"threads": (), "namespace": None},
        "policy": {"allow": frozenset({"at_rest"})},
        "whole_store": True,
        "actor": "ops@example.com",
        "version": "0.1.0",
        "host": "pod-1",
        "started_at": NOON,
    }
    return NewRun(**{**facts, **changes})


def finding(thread_id: str = "thread", checkpoint_ns: str = "", **changes: Any) -> Finding:
    """A head with one unanswered call."""
    facts: dict[str, Any] = {
        "thread_id": thread_id,
        "checkpoint_ns": checkpoint_ns,
        "checkpoint_id": HEAD,
        "verdict": Verdict.REPAIRABLE,
        "reason": "1 call without a result",
        "channel": "messages",
        "faults": (fault(),),
        "resume": "continue",
        "route": ("agent",),
        "route_source": "history",
        "idle_seconds": 812.5,
        "new_checkpoint_id": PATCHED,
        "pending": ("tools",),
        "interrupts": 0,
        "head_at": NOON,
    }
    return Finding(**{**facts, **changes})


def repair(
    run_id: UUID, store: StoreIdentity, thread_id: str = "thread", **changes: Any
) -> NewRepair:
    """The patch for that head."""
    facts: dict[str, Any] = {
        "run_id": run_id,
        "store_key": store.key,
        "thread_id": thread_id,
        "checkpoint_ns": "",
        "from_checkpoint_id": HEAD,
        "to_checkpoint_id": PATCHED,
        "writes_digest": "0" * 32,
        "pattern": pattern_of([fault()]),
        "blobs": (BlobKey("messages", "00000000000000000000000000000005.0123"),),
        "calls": (RepairedCall("messages", 3, "call_1", "charge_card", "placeholder"),),
        "resume": "continue",
        "route": ("agent",),
        "route_source": "history",
        "salvaged": 0,
        "placeholders": 1,
    }
    return NewRepair(**{**facts, **changes})
