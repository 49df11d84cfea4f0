"""What a ledger may say of a store, with something of everything."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from repair_service.ledger.records.summary import LastWhole, RunsOfVerb, Share, StoreSummary

NOW = datetime.now(UTC)

SUMMARY = StoreSummary(
    whole=LastWhole(
        runs=(UUID(int=7),),
        at=NOW - timedelta(minutes=5),
        threads=1000,
        heads=1200,
        verdicts={"healthy": 1180, "repairable": 15, "manual": 5},
        kinds={"unanswered_call": 30},
        tools=(Share("book_flight", 20), Share(None, 10)),
        models=(Share("gpt-5", 30),),
        oldest_repairable=NOW - timedelta(hours=2),
    ),
    runs={
        "sweep": RunsOfVerb(
            exit_codes={0: 10, 2: 3},
            last_start=NOW - timedelta(minutes=5),
            last_end=NOW - timedelta(minutes=4),
            last_throttled=2.5,
            throttled=9.5,
            last_success=NOW - timedelta(minutes=4),
        )
    },
    repairs=40,
    undone=1,
    open_intents=0,
    salvaged=12,
    placeholders=55,
    quarantined=2,
    untold=1,
)
