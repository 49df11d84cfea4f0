"""What the worker's replicas share: one leads, a time is run once, a request is done once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pytest

from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.worker import NewRequest, RequestRow
from repair_service.ledger.replicas import Replicas
from tests.conftest import Database
from tests.ledger.examples import NOON

LONG = 600.0
QUARTER = timedelta(minutes=15)


@pytest.fixture
def replicas(ledger: Ledger) -> Replicas:
    return ledger.replicas


def scheduled(due: int = 1) -> NewRequest:
    return NewRequest(
        "sweep", "orders", "schedule", schedule="nightly", due_at=NOON + due * QUARTER
    )


def only_open(replicas: Replicas) -> RequestRow:
    [request] = replicas.open_requests()
    return request


def end_lease(bare: Database) -> None:
    with bare.connect() as connection:
        connection.execute("UPDATE repair_service.leases SET expires_at = clock_timestamp()")


def test_one_replica_leads_and_keeps_the_lease_while_it_renews_it(replicas: Replicas) -> None:
    first = replicas.lead("one", LONG)
    assert (first.holder, 590 < first.seconds_left <= 600) == ("one", True)

    assert replicas.lead("two", LONG).holder == "one"
    assert replicas.lead("one", LONG).expires_at > first.expires_at


def test_a_lease_that_has_ended_is_taken_over(replicas: Replicas, bare: Database) -> None:
    replicas.lead("one", LONG)
    end_lease(bare)

    assert replicas.lead("two", LONG).holder == "two"
    assert replicas.lead("one", LONG).holder == "two"


def test_a_replica_that_steps_down_leaves_the_lease_at_once(replicas: Replicas) -> None:
    replicas.lead("one", LONG)
    replicas.step_down("two")
    assert replicas.lead("two", LONG).holder == "one"

    replicas.step_down("one")

    assert replicas.lead("two", LONG).holder == "two"


def test_of_many_replicas_at_once_one_takes_the_lease(replicas: Replicas) -> None:
    with ThreadPoolExecutor(8) as pool:
        holders = pool.map(lambda name: replicas.lead(name, LONG).holder, "abcdefgh")

    assert len(set(holders)) == 1


def test_a_time_of_a_schedule_is_run_once(replicas: Replicas) -> None:
    replicas.lead("one", LONG)
    replicas.begin_schedules({"nightly": "every 15m"}, since=NOON)

    assert replicas.claim("nightly", NOON + QUARTER, "one", scheduled())
    assert not replicas.claim("nightly", NOON + QUARTER, "one", scheduled())

    assert only_open(replicas).schedule == "nightly"
    assert replicas.schedules()["nightly"].last_due == NOON + QUARTER


def test_a_replica_that_does_not_lead_runs_no_time(replicas: Replicas, bare: Database) -> None:
    replicas.lead("one", LONG)
    replicas.begin_schedules({"nightly": "every 15m"}, since=NOON)
    assert not replicas.claim("nightly", NOON + QUARTER, "two", scheduled())
    end_lease(bare)

    assert not replicas.claim("nightly", NOON + QUARTER, "one", scheduled())

    assert replicas.open_requests() == []
    assert replicas.schedules()["nightly"].last_due == NOON


def test_a_time_that_comes_while_the_last_run_goes_on_passes(replicas: Replicas) -> None:
    replicas.lead("one", LONG)
    replicas.begin_schedules({"nightly": "every 15m"}, since=NOON)
    replicas.claim("nightly", NOON + QUARTER, "one", scheduled())

    assert not replicas.claim("nightly", NOON + 2 * QUARTER, "one", scheduled(2))

    assert only_open(replicas).due_at == NOON + QUARTER
    assert replicas.schedules()["nightly"].last_due == NOON + 2 * QUARTER


def test_a_schedule_is_known_from_its_first_start_on(replicas: Replicas) -> None:
    replicas.begin_schedules({"nightly": "every 15m", "old": "every 1h"}, since=NOON)

    known = replicas.begin_schedules({"nightly": "every 15m"}, since=NOON + QUARTER)

    assert {name: row.last_due for name, row in known.items()} == {"nightly": NOON}


def test_a_schedule_that_runs_at_other_times_begins_anew(replicas: Replicas) -> None:
    replicas.begin_schedules({"nightly": "every 15m"}, since=NOON)

    known = replicas.begin_schedules({"nightly": "every 1h"}, since=NOON + QUARTER)

    assert known["nightly"].last_due == NOON + QUARTER


def test_a_request_is_begun_once_and_keeps_how_it_ended(replicas: Replicas) -> None:
    replicas.lead("one", LONG)
    asked = replicas.ask(NewRequest("repair", "orders", "mira", "ticket 4711", thread_id="t-1"))
    request, run_id = only_open(replicas), uuid4()
    assert (request.id, request.actor, request.thread_id) == (asked, "mira", "t-1")

    assert replicas.begin(request, run_id, "one")
    assert not replicas.begin(request, uuid4(), "one")
    replicas.finish(request, run_id, 2)

    done = replicas.request(asked)
    assert done is not None
    assert (done.run_id, done.exit_code, done.problem, done.attempts) == (run_id, 2, None, 1)
    assert done.finished_at is not None
    assert replicas.open_requests() == []
    assert replicas.newest_requests() == [done]


def test_only_the_leader_begins_on_a_request(replicas: Replicas) -> None:
    replicas.lead("one", LONG)
    replicas.ask(NewRequest("audit", "orders", "mira"))

    assert not replicas.begin(only_open(replicas), uuid4(), "two")


def test_a_request_that_was_stopped_is_left_to_the_next_leader(replicas: Replicas) -> None:
    replicas.lead("one", LONG)
    replicas.ask(NewRequest("sweep", "orders", "mira"))
    first = uuid4()
    replicas.begin(only_open(replicas), first, "one")

    replicas.hand_back(only_open(replicas).id, first)

    left = only_open(replicas)
    assert (left.attempts, left.claimed_by, left.run_id) == (0, None, None)


def test_a_replica_that_lost_a_request_does_not_end_it(replicas: Replicas, bare: Database) -> None:
    replicas.lead("one", LONG)
    replicas.ask(NewRequest("sweep", "orders", "mira"))
    request, first, second = only_open(replicas), uuid4(), uuid4()
    replicas.begin(request, first, "one")
    end_lease(bare)
    replicas.lead("two", LONG)
    assert replicas.begin(only_open(replicas), second, "two")

    replicas.finish(request, first, 143)
    replicas.hand_back(request.id, first)

    left = only_open(replicas)
    assert (left.run_id, left.attempts, left.claimed_by) == (second, 2, "two")


def test_how_a_schedules_run_ended_is_kept_with_it(replicas: Replicas) -> None:
    replicas.lead("one", LONG)
    replicas.begin_schedules({"nightly": "every 15m"}, since=NOON)
    replicas.claim("nightly", NOON + QUARTER, "one", scheduled())
    request, run_id = only_open(replicas), uuid4()
    replicas.begin(request, run_id, "one")

    replicas.finish(request, run_id, 3)

    row = replicas.schedules()["nightly"]
    assert (row.last_run, row.last_exit_code) == (run_id, 3)


def test_a_request_that_cannot_be_done_says_why(replicas: Replicas) -> None:
    asked = replicas.ask(NewRequest("sweep", "gone", "mira"))

    replicas.give_up(asked, "There is no store gone.")

    done = replicas.request(asked)
    assert done is not None
    assert (done.exit_code, done.problem) == (None, "There is no store gone.")


def test_a_request_of_a_month_ago_is_let_go_of(replicas: Replicas, bare: Database) -> None:
    replicas.lead("one", LONG)
    for name in ("done", "open"):
        replicas.ask(NewRequest("audit", name, "mira"))
    done, still_open = replicas.open_requests()
    replicas.give_up(done.id, "no such store")
    with bare.connect() as connection:
        connection.execute("UPDATE repair_service.requests SET asked_at = now() - interval '31 d'")
    late = replicas.ask(NewRequest("audit", "late", "mira"))
    replicas.begin(replicas.open_requests()[1], run_id := uuid4(), "one")

    replicas.finish(replicas.open_requests()[1], run_id, 0)

    assert {row.id for row in replicas.newest_requests()} == {still_open.id, late}


def test_a_pause_is_seen_by_all_until_it_ends(replicas: Replicas) -> None:
    assert not replicas.is_paused()
    replicas.pause("mira")
    replicas.pause("omar")
    assert replicas.is_paused()

    replicas.resume()

    assert not replicas.is_paused()
