"""The outbox: an event for each patch that stands, claimed in order by thread, and by one only."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from repair_service.ledger.gateway import Ledger
from repair_service.ledger.migrate import upgrade
from repair_service.ledger.records.event import Event
from repair_service.ledger.records.repair import NewRepair
from repair_service.ledger.records.run import StoreIdentity
from tests.conftest import Database
from tests.ledger.examples import HEAD, PATCHED, repair, run

MINUTE = timedelta(minutes=1)


@pytest.fixture
def ledger(bare: Database) -> Iterator[Ledger]:
    """A ledger whose repairs are told."""
    upgrade(bare.url)
    with Ledger(bare.url, tells=True) as opened:
        yield opened


@pytest.fixture
def run_id(ledger: Ledger, store: StoreIdentity) -> UUID:
    return ledger.runs.open(run(store))


@pytest.fixture
def repaired(bare: Database, ledger: Ledger, store: StoreIdentity, run_id: UUID) -> "Repaired":
    return Repaired(bare, ledger, store, run_id)


class Repaired:
    """Records patches as a sweep does whose ledger is in the store's database."""

    def __init__(
        self, database: Database, ledger: Ledger, store: StoreIdentity, run_id: UUID
    ) -> None:
        self._database, self._ledger, self._store, self._run_id = database, ledger, store, run_id

    def __call__(self, *thread_ids: str) -> list[NewRepair]:
        made = []
        for thread_id in thread_ids:
            patch = repair(self._run_id, self._store, thread_id)
            with psycopg.connect(self._database.url) as connection:
                self._ledger.repairs.record(connection, patch)
            made.append(patch)
        return made


def claimed(ledger: Ledger, limit: int = 10) -> list[Event]:
    return list(ledger.outbox.claim(limit, MINUTE).events)


def later(database: Database, seconds: int) -> None:
    """As if so much time had passed."""
    with database.connect() as connection:
        connection.execute(
            "UPDATE repair_service.outbox SET due_at = due_at - %(past)s,"
            " claimed_until = claimed_until - %(past)s, ended_at = ended_at - %(past)s",
            {"past": timedelta(seconds=seconds)},
        )


def test_an_event_says_what_became_of_which_thread(
    ledger: Ledger, repaired: Repaired, store: StoreIdentity, run_id: UUID
) -> None:
    (patch,) = repaired("thread")

    (event,) = claimed(ledger)

    assert (event.type, event.attempts) == ("thread.repaired", 1)
    assert (event.thread_id, event.checkpoint_ns, event.checkpoint_id) == ("thread", "", PATCHED)
    assert (event.store, event.store_key) == (store.address, store.key)
    assert (event.run_id, event.repair_id) == (run_id, patch.id)
    assert (event.resume, event.salvaged, event.placeholders) == ("continue", 0, 1)


def test_it_is_there_if_and_only_if_the_patch_is(
    bare: Database, ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    with psycopg.connect(bare.url) as connection:
        ledger.repairs.record(connection, repair(run_id, store))
        connection.rollback()
    assert claimed(ledger) == []

    intent = ledger.repairs.record(None, repair(run_id, store, "settled"))
    left = ledger.repairs.record(None, repair(run_id, store, "abandoned"))
    assert claimed(ledger) == []
    ledger.repairs.settle([intent])
    ledger.repairs.abandon([left])
    ledger.repairs.settle([intent, left])
    assert [event.thread_id for event in claimed(ledger)] == ["settled"]


@pytest.mark.parametrize("shared", [True, False])
def test_an_undo_is_told_once_with_the_head_that_the_thread_has_again(
    bare: Database, ledger: Ledger, store: StoreIdentity, repaired: Repaired, shared: bool
) -> None:
    repaired("thread")
    first = ledger.outbox.claim(10, MINUTE)
    ledger.outbox.sent(first.events[0], first.id)
    undo = ledger.runs.open(run(store, verb="undo"))
    (patch,) = ledger.repairs.of_thread(store.key, "thread")

    with psycopg.connect(bare.url) as connection:
        for done in (True, False):
            given = connection if shared else None
            assert ledger.repairs.mark_undone(given, patch, by="ops", run_id=undo) is done

    (event,) = claimed(ledger)
    assert (event.type, event.checkpoint_id) == ("thread.repair_undone", HEAD)
    assert event.run_id == undo


def test_a_ledger_that_is_not_to_tell_keeps_no_events(
    bare: Database, ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    with Ledger(bare.url) as quiet:
        with psycopg.connect(bare.url) as connection:
            quiet.repairs.record(connection, repair(run_id, store))
        quiet.repairs.settle([quiet.repairs.record(None, repair(run_id, store, "other"))])
        for each in list(quiet.repairs.of_run(run_id)):
            quiet.repairs.mark_undone(None, each, by="ops")
    assert ledger.outbox.counts().due == 0


def test_of_a_thread_only_the_first_that_is_not_sent_can_be_claimed(
    bare: Database, ledger: Ledger, repaired: Repaired
) -> None:
    first, second, other = repaired("a", "a", "b")

    claim = ledger.outbox.claim(10, MINUTE)
    assert [event.repair_id for event in claim.events] == [first.id, other.id]
    assert claimed(ledger) == []
    ledger.outbox.failed(claim.events[0], claim.id, "it answered 500", MINUTE)
    ledger.outbox.sent(claim.events[1], claim.id)
    assert claimed(ledger) == []

    later(bare, 61)
    claim = ledger.outbox.claim(10, MINUTE)
    assert [(e.repair_id, e.attempts) for e in claim.events] == [(first.id, 2)]
    ledger.outbox.sent(claim.events[0], claim.id)

    assert [(e.repair_id, e.attempts) for e in claimed(ledger)] == [(second.id, 1)]


def test_what_a_sender_that_died_had_claimed_comes_again_under_the_same_id(
    bare: Database, ledger: Ledger, repaired: Repaired
) -> None:
    repaired("thread")
    died = ledger.outbox.claim(10, MINUTE)

    later(bare, 61)
    taken_over = ledger.outbox.claim(10, MINUTE)

    assert [event.id for event in taken_over.events] == [event.id for event in died.events]
    # It was not dead after all, and has nothing to say of the event any more.
    ledger.outbox.failed(died.events[0], died.id, "no answer in time", None)
    ledger.outbox.sent(died.events[0], died.id)
    assert ledger.outbox.counts().due == 1
    ledger.outbox.sent(taken_over.events[0], taken_over.id)
    assert ledger.outbox.counts().sent == 1


def test_many_senders_at_once_claim_each_event_once(bare: Database, repaired: Repaired) -> None:
    threads = [f"thread {number % 20}" for number in range(40)]
    repaired(*threads)
    ready = threading.Barrier(4)

    def send_all(_: int) -> list[UUID]:
        found = []
        with Ledger(bare.url) as ours:
            ready.wait()
            while events := ours.outbox.claim(3, MINUTE).events:
                found.extend(event.id for event in events)
        return found

    with ThreadPoolExecutor(4) as pool:
        found = [event for each in pool.map(send_all, range(4)) for event in each]
    assert len(found) == len(set(found)) == 20


def test_an_event_that_others_hold_is_passed_over(
    bare: Database, ledger: Ledger, repaired: Repaired
) -> None:
    repaired("held", "free")
    with psycopg.connect(bare.url) as other:
        other.execute(
            "SELECT FROM repair_service.outbox WHERE thread_id = 'held' FOR UPDATE"
        ).fetchall()
        assert [event.thread_id for event in claimed(ledger)] == ["free"]
    assert [event.thread_id for event in claimed(ledger)] == ["held"]


def test_what_was_given_up_is_seen_holds_nothing_up_and_can_be_sent_after_all(
    ledger: Ledger, repaired: Repaired
) -> None:
    first, second = repaired("thread", "thread")
    claim = ledger.outbox.claim(10, MINUTE)
    ledger.outbox.failed(claim.events[0], claim.id, "it answered 500", None)

    (dead,) = ledger.outbox.dead_letters()
    assert (dead.repair_id, dead.problem) == (first.id, "it answered 500")
    counts = ledger.outbox.counts()
    assert (counts.due, counts.dead, counts.sent) == (1, 1, 0)
    assert counts.oldest_due_at is not None
    assert [event.repair_id for event in claimed(ledger)] == [second.id]

    assert ledger.outbox.retry([second.id]) == 0
    assert ledger.outbox.retry([dead.id]) == 1
    assert ledger.outbox.retry() == 0
    (again,) = claimed(ledger)
    assert (again.id, again.attempts) == (dead.id, 1)


def test_what_ended_long_ago_is_let_go_of(
    bare: Database, ledger: Ledger, repaired: Repaired
) -> None:
    repaired("sent", "dead", "due")
    claim = ledger.outbox.claim(2, MINUTE)
    ledger.outbox.sent(claim.events[0], claim.id)
    ledger.outbox.failed(claim.events[1], claim.id, "it answered 500", None)

    for days, left in ((6, (1, 1, 1)), (2, (1, 1, 0)), (83, (1, 0, 0))):
        later(bare, days * 86_400)
        ledger.outbox.let_go()
        counts = ledger.outbox.counts()
        assert (counts.due, counts.dead, counts.sent) == left
