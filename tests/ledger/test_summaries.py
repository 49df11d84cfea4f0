"""Summaries: what the ledger says of a store as a whole."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.run import StoreIdentity
from repair_service.ledger.records.summary import Share
from repair_service.ledger.summaries import MOST_NAMES
from repair_service.repair.verdict import Verdict
from tests.ledger.examples import NOON, fault, finding, repair, run

LATER = NOON + timedelta(hours=1)


def ended(ledger: Ledger, store: StoreIdentity, exit_code: int = 2, **changes: Any) -> UUID:
    """A run that looked at 10 heads in 30 s."""
    totals = {
        "threads": 9,
        "heads": 10,
        "verdicts": {"healthy": 8, "repairable": 2},
        "faults": {"unanswered_call": 3},
        "throttled_seconds": 1.5,
    }
    begun = run(store, **changes)
    ledger.runs.open(begun)
    assert begun.started_at is not None
    ledger.runs.close(
        begun.id,
        totals=totals,
        exit_code=exit_code,
        complete=True,
        finished_at=begun.started_at + timedelta(seconds=30),
    )
    return begun.id


def test_of_a_store_that_was_never_looked_at_there_is_nothing(ledger: Ledger) -> None:
    summary = ledger.summaries.of("here/public")

    assert (summary.whole, summary.runs, summary.repairs) == (None, {}, 0)


def test_what_the_last_whole_run_found(ledger: Ledger, store: StoreIdentity) -> None:
    old = ended(ledger, store)
    ledger.findings.record(old, [finding("old", faults=(fault(tool_name="old"),))])
    whole = ended(ledger, store, started_at=LATER)
    ended(ledger, store, started_at=LATER + timedelta(hours=1), whole_store=False)
    ended(ledger, StoreIdentity("elsewhere", "here/other", True), started_at=LATER)
    three = (fault(), fault(model=None), fault(tool_name=None))
    ledger.findings.record(
        whole,
        [
            finding("a", faults=three, head_at=NOON - timedelta(hours=2)),
            finding("b", faults=(), head_at=NOON - timedelta(hours=1)),
            finding("c", verdict=Verdict.MANUAL, faults=(), head_at=NOON - timedelta(days=9)),
        ],
    )

    found = ledger.summaries.of(store.key).whole

    assert found is not None
    assert (found.runs, found.at) == ((whole,), LATER)
    assert (found.threads, found.heads) == (9, 10)
    assert found.verdicts == {"healthy": 8, "repairable": 2}
    assert found.kinds == {"unanswered_call": 3}
    assert found.tools == (Share("charge_card", 2), Share(None, 1))
    assert found.models == (Share("gpt-5", 2), Share(None, 1))
    assert found.oldest_repairable == NOON - timedelta(hours=2)


def test_shards_are_one_store(ledger: Ledger, store: StoreIdentity) -> None:
    ended(ledger, store)
    first = ended(ledger, store, started_at=LATER, shard_index=1, shard_count=2)
    ended(ledger, store, started_at=LATER - timedelta(minutes=9), shard_index=2, shard_count=2)
    second = ended(ledger, store, started_at=LATER, shard_index=2, shard_count=2)

    found = ledger.summaries.of(store.key).whole

    assert found is not None
    assert found.runs == (first, second)
    assert (found.heads, found.kinds) == (20, {"unanswered_call": 6})


def test_a_run_that_went_on_from_another_is_whole_with_it(
    ledger: Ledger, store: StoreIdentity
) -> None:
    cut = ended(ledger, store, whole_store=False)
    earlier = {
        "runs": [str(cut)],
        "began_at": NOON.isoformat(),
        "cursor": {"part": "walk", "after": "m"},
    }
    whole = ended(ledger, store, started_at=LATER, selection={"earlier": earlier})
    ledger.findings.record(cut, [finding("a")])
    ledger.findings.record(whole, [finding("z")])

    found = ledger.summaries.of(store.key).whole

    assert found is not None
    assert found.runs == (whole, cut)
    assert (found.heads, found.tools) == (20, (Share("charge_card", 2),))


def test_the_names_are_bounded_in_number_and_length(ledger: Ledger, store: StoreIdentity) -> None:
    whole = ended(ledger, store)
    many = tuple(fault(tool_name=f"{number:03}" + "x" * 500) for number in range(MOST_NAMES * 2))
    ledger.findings.record(whole, [finding("a", faults=many)])

    found = ledger.summaries.of(store.key).whole

    assert found is not None
    assert len(found.tools) == MOST_NAMES
    assert {len(share.name or "") for share in found.tools} == {100}


def test_runs_are_counted_by_verb_and_exit_code(ledger: Ledger, store: StoreIdentity) -> None:
    ended(ledger, store, 0)
    ended(ledger, store, 2, started_at=LATER)
    ended(ledger, store, 1, started_at=LATER + timedelta(hours=1))
    ledger.runs.open(run(store, started_at=LATER + timedelta(hours=2)))

    sweeps = ledger.summaries.of(store.key).runs["sweep"]

    assert sweeps.exit_codes == {0: 1, 1: 1, 2: 1}
    assert sweeps.last_start == LATER + timedelta(hours=1)
    assert sweeps.last_end - sweeps.last_start == timedelta(seconds=30)
    assert sweeps.last_success == LATER + timedelta(seconds=30)
    assert (sweeps.last_throttled, sweeps.throttled) == (1.5, 4.5)


def test_patches_and_quarantined_threads_are_counted(ledger: Ledger, store: StoreIdentity) -> None:
    by = ended(ledger, store)
    undone = repair(by, store, "a", salvaged=2)
    settled = ledger.repairs.record(None, undone)
    ledger.repairs.settle([settled])
    [standing] = ledger.repairs.of_run(by)
    ledger.repairs.mark_undone(None, standing, by="ops")
    ledger.repairs.settle([ledger.repairs.record(None, repair(by, store, "b"))])
    ledger.repairs.record(None, repair(by, store, "c"))
    ledger.quarantine.add(store.key, "a", "", "pattern", 3)
    ledger.quarantine.add(store.key, "a", "", "another", 3)
    ledger.quarantine.add(store.key, "b", "", "pattern", 3)
    ledger.quarantine.release(store.key, "b", by="ops")

    summary = ledger.summaries.of(store.key)

    assert (summary.repairs, summary.undone, summary.open_intents) == (2, 1, 1)
    assert (summary.salvaged, summary.placeholders) == (2, 2)
    assert summary.quarantined == 1
