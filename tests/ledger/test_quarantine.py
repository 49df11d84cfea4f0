"""The quarantine: a thread that breaks again and again is left to a person."""

from uuid import UUID, uuid4

import pytest

from repair_service.ledger import quarantine as quarantine_module
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.pattern import pattern_of
from repair_service.ledger.records.run import StoreIdentity
from repair_service.transcript.fault import FaultKind
from tests.ledger.examples import fault, repair, run

PATTERN = pattern_of([fault()])


def repaired(
    ledger: Ledger, store: StoreIdentity, thread_id: str = "thread", **changes: object
) -> UUID:
    """One run that repairs a thread."""
    run_id = ledger.runs.open(run(store))
    changes = {"to_checkpoint_id": str(uuid4()), **changes}
    made = ledger.repairs.record(None, repair(run_id, store, thread_id, **changes))
    ledger.repairs.settle([made])
    return run_id


def test_the_same_trouble_has_the_same_pattern() -> None:
    again = fault(tool_call_id="call_9", message_index=11, model="other")

    assert pattern_of([again, fault()]) == PATTERN
    assert pattern_of([fault(tool_name="send_mail")]) != PATTERN
    assert pattern_of([fault(kind=FaultKind.UNCOMMITTED_RESULT)]) != PATTERN
    both = [fault(), fault(tool_name="send_mail")]
    assert pattern_of(both) == pattern_of(both[::-1]) != PATTERN


def test_the_runs_that_repaired_a_thread_are_counted(ledger: Ledger, store: StoreIdentity) -> None:
    assert ledger.quarantine.count_repairs(store.key, "thread", PATTERN) == 0

    repaired(ledger, store)
    run_id = repaired(ledger, store)
    ledger.repairs.settle([ledger.repairs.record(None, repair(run_id, store, checkpoint_ns="sub"))])
    repaired(ledger, store, "another thread")
    repaired(ledger, store, pattern="another pattern")
    repaired(ledger, StoreIdentity("another", "here/other", True))
    ledger.repairs.record(None, repair(ledger.runs.open(run(store)), store))

    assert ledger.quarantine.count_repairs(store.key, "thread", PATTERN) == 2


def test_a_repair_that_was_taken_back_does_not_count(ledger: Ledger, store: StoreIdentity) -> None:
    repaired(ledger, store)
    (standing,) = ledger.repairs.what_to_undo(store.key, thread_id="thread")
    ledger.repairs.mark_undone(None, standing, by="ops")

    assert ledger.quarantine.count_repairs(store.key, "thread", PATTERN) == 0


def test_a_thread_goes_in_and_stays_in(ledger: Ledger, store: StoreIdentity) -> None:
    ledger.quarantine.add(store.key, "thread", "", PATTERN, 3)
    (first,) = ledger.quarantine.all(store.key)
    ledger.quarantine.add(store.key, "thread", "sub:1", PATTERN, 4)

    assert ledger.quarantine.among(store.key, ["thread", "another"]) == {"thread"}
    assert ledger.quarantine.among("here/other", ["thread"]) == frozenset()
    assert ledger.quarantine.among(store.key, []) == frozenset()
    (kept,) = ledger.quarantine.all(store.key)
    assert (kept.count, kept.checkpoint_ns, kept.since) == (4, "sub:1", first.since)


def test_a_released_thread_is_counted_anew(ledger: Ledger, store: StoreIdentity) -> None:
    for _ in range(3):
        repaired(ledger, store)
    assert ledger.quarantine.count_repairs(store.key, "thread", PATTERN) == 3
    ledger.quarantine.add(store.key, "thread", "", PATTERN, 3)
    (before,) = ledger.quarantine.all(store.key)

    assert ledger.quarantine.release(store.key, "thread", by="ops")

    assert not ledger.quarantine.release(store.key, "thread", by="ops")
    assert ledger.quarantine.among(store.key, ["thread"]) == frozenset()
    assert list(ledger.quarantine.all(store.key)) == []
    assert ledger.quarantine.count_repairs(store.key, "thread", PATTERN) == 0
    repaired(ledger, store)
    assert ledger.quarantine.count_repairs(store.key, "thread", PATTERN) == 1
    ledger.quarantine.add(store.key, "thread", "", PATTERN, 3)
    (anew,) = ledger.quarantine.all(store.key)
    assert anew.since > before.since
    assert (anew.released_at, anew.released_by) == (None, None)


def test_a_long_quarantine_is_read_a_page_at_a_time(
    ledger: Ledger, store: StoreIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{number:02}" for number in range(10)]
    for name in names:
        ledger.quarantine.add(store.key, name, "", PATTERN, 3)
    monkeypatch.setattr(quarantine_module, "PAGE", 3)

    assert [each.thread_id for each in ledger.quarantine.all(store.key)] == names


def test_a_plan_is_used_once(ledger: Ledger, store: StoreIdentity) -> None:
    first, second = ledger.runs.open(run(store)), ledger.runs.open(run(store))
    assert ledger.plans.used("plan") is None

    assert ledger.plans.use("plan", first)
    assert not ledger.plans.use("plan", second)

    use = ledger.plans.used("plan")
    assert use is not None
    assert use.run_id == first
