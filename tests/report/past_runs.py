"""Past runs and their findings, for the tests of reports."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from repair_service.ledger.records.finding import Finding
from repair_service.ledger.records.run import Run
from repair_service.ledger.values import plain
from repair_service.repair.verdict import Fault, FaultKind, Policy, Verdict
from repair_service.sweep.selection import Selection

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HEAD = "1f115641-8d00-6000-8000-00000000000a"
PATCHED = "1f115641-8d00-6001-8000-00000000000a"

HOSTILE = (
    "</title></style><script>alert(1)</script>"
    "<img src=//evil.example/x onerror=alert(1)>'\"&{{7*7}}"
)

OUTCOMES = (
    (Verdict.REPAIRED, "2 calls without a result"),
    (Verdict.MANUAL, "orphan_result is left to a person; --allow orphan_result mends it"),
    (Verdict.WAITING, "an interrupt at the node 'ask' has no answer yet"),
    (Verdict.REPAIRABLE, "1 real result taken up, 1 call without a result"),
    (Verdict.UNREADABLE, "the blob of messages is encrypted, and no key is set"),
    (Verdict.REPAIRED, "1 call without a result"),
    (Verdict.ACTIVE, "its newest checkpoint is younger than 10 min (--min-idle)"),
    (Verdict.DRIFTED, "a newer checkpoint came while its patch was written"),
    (Verdict.FAILED, "the patch did not read back as healthy"),
)

TOOLS = ("charge_card", "send_mail", "search_the_internal_knowledge_base_of_all_subsidiaries", None)
MODELS = ("gpt-5", "claude-sonnet-4-5", None)


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
    return Fault(**(facts | changes))


def finding(thread_id: str = "thread", **changes: Any) -> Finding:
    """A repaired head with one unanswered call."""
    facts: dict[str, Any] = {
        "thread_id": thread_id,
        "checkpoint_ns": "",
        "checkpoint_id": HEAD,
        "verdict": Verdict.REPAIRED,
        "reason": "1 call without a result",
        "channel": "messages",
        "faults": (fault(),),
        "resume": "continue",
        "route": ("agent",),
        "route_source": "history",
        "idle_seconds": 812.5,
        "new_checkpoint_id": PATCHED,
        "pending": ("tools",),
        "head_at": NOON,
    }
    return Finding(**(facts | changes))


def findings(count: int) -> Iterator[Finding]:
    """So many findings, of every verdict and kind, in the order of the ledger."""
    kinds = tuple(FaultKind)
    for number in range(count):
        verdict, reason = OUTCOMES[number % len(OUTCOMES)]
        several = number % 5 % 3 + 1
        faults = tuple(
            fault(
                kind=kinds[(number + place) * place % len(kinds)],
                message_index=3 + place,
                tool_call_id=f"toolu_{number:05}{place}",
                tool_name=TOOLS[(number + place) % len(TOOLS)],
                model=MODELS[number % len(MODELS)],
                mend="salvage" if place else "placeholder",
            )
            for place in range(several)
        )
        patched = verdict in (Verdict.REPAIRED, Verdict.REPAIRABLE)
        yield finding(
            f"customer-{number:05}",
            checkpoint_ns="" if number % 4 else "research:6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            verdict=verdict,
            reason=reason,
            faults=() if verdict is Verdict.ACTIVE else faults,
            resume=("continue", "park", "keep")[number % 3] if patched else None,
            route=("agent",) if patched and number % 3 == 0 else (),
            route_source="history" if patched and number % 3 == 0 else None,
            idle_seconds=None if number % 50 == 49 else 37.0 * number * number,
            interrupts=1 if verdict is Verdict.WAITING else 0,
        )


def run(**changes: Any) -> Run:
    """A sweep of the whole store that came to its end."""
    facts: dict[str, Any] = {
        "id": UUID("3f1c0a52-7a0e-4e0e-9d3a-0d6a1f0c5b11"),
        "verb": "sweep",
        "store": "chat on db-1.internal:5432, schema public",
        "store_key": "key",
        "selection": plain(Selection()),
        "policy": plain(Policy(allow=frozenset({"at_rest", "duplicate_result"}))),
        "whole_store": True,
        "actor": "ops@example.com",
        "reason": "deploy 2026-03-01",
        "version": "0.1.0",
        "host": "pod-1",
        "shard_index": 1,
        "shard_count": 1,
        "started_at": NOON,
        "finished_at": NOON + timedelta(seconds=95),
        "complete": True,
        "totals": None,
        "exit_code": 2,
        "resume_cursor": None,
    }
    return Run(**(facts | changes))


def totals(threads: int, verdicts: dict[str, int], **changes: Any) -> dict[str, Any]:
    """Totals as the ledger keeps them."""
    facts: dict[str, Any] = {
        "threads": threads,
        "heads": sum(verdicts.values()),
        "verdicts": verdicts,
        "faults": {},
        "salvaged": 0,
        "placeholders": 0,
    }
    return facts | changes
