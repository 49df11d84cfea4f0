"""Runs: recorded from their start, and found again in their order."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from repair_service.errors import LedgerUnreachable
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.run import StoreIdentity
from repair_service.repair.verdict import Policy
from repair_service.sweep.selection import Selection
from repair_service.sweep.totals import Totals
from repair_service.transcript.fault import FaultKind
from tests.conftest import Database
from tests.ledger.examples import NOON, run


def test_a_run_is_there_from_its_start(ledger: Ledger, store: StoreIdentity) -> None:
    begun = run(store, reason="deploy 41", shard_index=2, shard_count=4)

    assert ledger.runs.open(begun) == begun.id

    kept = ledger.runs.get(begun.id)
    assert kept is not None
    assert (kept.verb, kept.actor, kept.reason) == ("sweep", "ops@example.com", "deploy 41")
    assert (kept.store, kept.store_key) == (store.address, store.key)
    assert (kept.shard_index, kept.shard_count) == (2, 4)
    assert kept.started_at == NOON
    assert (kept.finished_at, kept.complete, kept.totals, kept.exit_code) == (
        None,
        False,
        None,
        None,
    )


def test_a_run_that_died_keeps_how_far_it_came(ledger: Ledger, store: StoreIdentity) -> None:
    run_id = ledger.runs.open(run(store))

    ledger.runs.save_progress(run_id, totals={"heads": 500}, resume_cursor=["thread", ""])

    kept = ledger.runs.get(run_id)
    assert kept is not None
    assert kept.finished_at is None
    assert kept.totals == {"heads": 500}
    assert kept.resume_cursor == ["thread", ""]


def test_the_end_of_a_run_is_recorded(ledger: Ledger, store: StoreIdentity) -> None:
    run_id = ledger.runs.open(run(store))
    ledger.runs.save_progress(run_id, totals={"heads": 1}, resume_cursor=["thread", ""])
    totals = Totals(threads=3, heads=4)
    totals.faults[FaultKind.UNANSWERED_CALL] += 2

    ledger.runs.close(
        run_id, totals=totals, exit_code=2, complete=True, finished_at=NOON + timedelta(minutes=1)
    )

    kept = ledger.runs.get(run_id)
    assert kept is not None
    assert kept.complete
    assert kept.exit_code == 2
    assert kept.finished_at == NOON + timedelta(minutes=1)
    assert kept.resume_cursor is None
    assert kept.totals is not None
    assert (kept.totals["heads"], kept.totals["faults"]) == (4, {"unanswered_call": 2})


def test_progress_that_comes_late_does_not_reopen_a_run(
    ledger: Ledger, store: StoreIdentity
) -> None:
    run_id = ledger.runs.open(run(store))
    ledger.runs.close(run_id, totals={"heads": 9}, exit_code=0, complete=True)

    ledger.runs.save_progress(run_id, totals={"heads": 5}, resume_cursor=["thread", ""])

    kept = ledger.runs.get(run_id)
    assert kept is not None
    assert (kept.totals, kept.resume_cursor) == ({"heads": 9}, None)


def test_what_is_not_there_is_null_and_no_json(
    ledger: Ledger, store: StoreIdentity, bare: Database
) -> None:
    run_id = ledger.runs.open(run(store))
    ledger.runs.save_progress(run_id, totals=None, resume_cursor=None)

    with bare.connect() as connection:
        found = connection.execute(
            "SELECT count(*) FROM repair_service.runs"
            " WHERE totals IS NULL AND resume_cursor IS NULL"
        )
        assert found.fetchone() == (1,)


def test_a_connection_that_was_cut_between_two_questions_is_made_anew(
    ledger: Ledger, store: StoreIdentity, bare: Database
) -> None:
    ledger.runs.open(run(store))
    with bare.connect() as connection:
        cut = connection.execute(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
            " WHERE application_name = 'repair-service ledger' AND datname = current_database()"
        )
        assert cut.fetchone() == (1,)

    assert len(ledger.runs.newest()) == 1


def test_a_connection_that_is_cut_within_one_is_named(ledger: Ledger) -> None:
    cut = select(func.pg_terminate_backend(func.pg_backend_pid()))

    with pytest.raises(LedgerUnreachable, match="was lost"):
        ledger._database.rows(cut)

    assert ledger.runs.newest() == []


def test_selection_and_policy_are_kept_as_they_were_said(
    ledger: Ledger, store: StoreIdentity
) -> None:
    selection = Selection(threads=("a", "b\x00c"), since=1700000000.5)
    policy = Policy(allow=frozenset({"orphan_result", "at_rest"}), min_idle=float("inf"))

    run_id = ledger.runs.open(run(store, selection=selection, policy=policy))

    kept = ledger.runs.get(run_id)
    assert kept is not None
    assert kept.selection["threads"] == ["a", "b\ufffdc"]
    assert kept.selection["since"] == 1700000000.5
    assert kept.policy["allow"] == ["at_rest", "orphan_result"]
    assert kept.policy["min_idle"] is None
    assert "{tool}" in kept.policy["placeholders"]["interrupted"]


def test_a_value_that_has_no_json_is_refused(ledger: Ledger, store: StoreIdentity) -> None:
    with pytest.raises(TypeError, match="a bytes cannot be kept"):
        ledger.runs.open(run(store, selection={"threads": [b"x"]}))


def test_a_run_that_is_not_there(ledger: Ledger) -> None:
    assert ledger.runs.get(uuid4()) is None


def test_runs_are_listed_newest_first_a_page_at_a_time(
    ledger: Ledger, store: StoreIdentity
) -> None:
    ids = [
        ledger.runs.open(run(store, started_at=NOON + timedelta(minutes=minute // 2)))
        for minute in range(7)
    ]

    first = ledger.runs.newest(3)
    second = ledger.runs.newest(3, before=first[-1])
    third = ledger.runs.newest(3, before=second[-1])

    listed = [each.id for each in (*first, *second, *third)]
    assert sorted(listed) == sorted(ids)
    times = [each.started_at for each in (*first, *second, *third)]
    assert times == sorted(times, reverse=True)


def test_the_last_sweep_is_the_last_that_saw_everything(
    ledger: Ledger, store: StoreIdentity
) -> None:
    def ended(
        minute: int, *, of: StoreIdentity = store, complete: bool = True, **changes: Any
    ) -> UUID:
        begun = run(of, started_at=NOON + timedelta(minutes=minute), **changes)
        ledger.runs.open(begun)
        ledger.runs.close(begun.id, totals={}, exit_code=0, complete=complete)
        return begun.id

    assert ledger.runs.last_completed_sweep(store.key) is None
    whole = ended(1)
    ended(2, complete=False)
    ended(3, whole_store=False)
    ended(4, shard_index=1, shard_count=2)
    ended(5, of=StoreIdentity("elsewhere", "here/other", True))
    ledger.runs.open(run(store, started_at=NOON + timedelta(minutes=6)))

    last = ledger.runs.last_completed_sweep(store.key)

    assert last is not None
    assert last.id == whole
    shard = ledger.runs.last_completed_sweep(store.key, shard_index=1, shard_count=2)
    assert shard is not None
    assert shard.started_at == NOON + timedelta(minutes=4)
    other = ledger.runs.last_completed_sweep(store.key, shard_index=2, shard_count=2)
    assert other is not None
    assert other.id == whole, "a run over the whole store saw this part too"
    ended(7, of=StoreIdentity("parts", "here/parts", True), shard_index=1, shard_count=2)
    assert ledger.runs.last_completed_sweep("here/parts") is None
