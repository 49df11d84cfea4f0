"""Jobs: what several processes tell, and how they end."""

import multiprocessing
import os
import signal
import threading

import pytest

from repair_service.errors import RepairServiceError, StoreUnreachable
from repair_service.ledger.records.base import END, Cursor, JobCursors
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Verdict
from repair_service.sweep.jobs import Found, Jobs, JobStopped, Moved
from repair_service.sweep.totals import Totals


def diagnosis(number: int) -> Diagnosis:
    return Diagnosis(f"t{number}", "", "id", Verdict.MANUAL, "for a test")


class Says:
    """A job that says so many outcomes."""

    def __init__(self, outcomes: int) -> None:
        self.outcomes = outcomes

    def __call__(self, index: int, count: int, found: Found, moved: Moved) -> Cursor | None:
        totals = Totals()
        for number in range(self.outcomes):
            totals.heads += 1
            totals.verdicts[Verdict.MANUAL] += 1
            found(diagnosis(index * 1_000 + number), totals)
        totals.heads += 5
        moved(totals)
        return END


class Fails(Says):
    """The second job fails; the first would go on for ever."""

    def __call__(self, index: int, count: int, found: Found, moved: Moved) -> Cursor | None:
        if index == 2:
            raise StoreUnreachable("gone")
        while True:
            found(diagnosis(index), Totals())


class Dies(Says):
    def __call__(self, index: int, count: int, found: Found, moved: Moved) -> Cursor | None:
        if index == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return END


class IsCutShort(Says):
    """Each job by its own place."""

    def __init__(self, *places: Cursor | None) -> None:
        self.places = places

    def __call__(self, index: int, count: int, found: Found, moved: Moved) -> Cursor | None:
        return self.places[index - 1]


class GoesOn(Says):
    """Only ends when it is told to, and finishes what it is at."""

    def __call__(self, index: int, count: int, found: Found, moved: Moved) -> Cursor | None:
        totals = Totals()
        try:
            while True:
                totals.heads += 1
                found(diagnosis(index), totals)
        except JobStopped:
            totals.heads += 1_000_000
            moved(totals)
            raise


def test_the_totals_are_those_of_all_jobs() -> None:
    seen: list[int] = []
    jobs = Jobs(Says(3), 2, lambda totals: seen.append(totals.heads))
    found = list(jobs.outcomes())
    assert len(found) == 6
    assert jobs.totals.heads == 2 * (3 + 5)
    assert jobs.totals.verdicts[Verdict.MANUAL] == 6
    assert seen == sorted(seen)


def test_jobs_that_are_cut_short_are_gone_on_with_each_in_its_place() -> None:
    places = (END, Cursor("walk", "m"), None)
    jobs = Jobs(IsCutShort(*places), 3, lambda totals: None)
    assert list(jobs.outcomes()) == []
    assert (jobs.complete, jobs.stopped_by) == (False, "--run-time")
    assert jobs.cursor == JobCursors(places)


@pytest.mark.parametrize(("place", "complete"), [(END, True), (None, False)])
def test_jobs_that_keep_no_place_are_complete_or_begun_anew(
    place: Cursor | None, complete: bool
) -> None:
    jobs = Jobs(IsCutShort(place, place), 2, lambda totals: None)
    assert list(jobs.outcomes()) == []
    assert (jobs.complete, jobs.cursor) == (complete, None)


def test_a_job_that_fails_ends_the_others_and_the_run() -> None:
    jobs = Jobs(Fails(0), 2, lambda totals: None)
    with pytest.raises(StoreUnreachable, match="gone"):
        list(jobs.outcomes())


def test_a_job_that_is_killed_is_an_error_that_says_so() -> None:
    jobs = Jobs(Dies(0), 2, lambda totals: None)
    with pytest.raises(RepairServiceError, match="-9"):
        list(jobs.outcomes())


def test_a_run_that_is_stopped_still_hears_what_its_jobs_did() -> None:
    jobs = Jobs(GoesOn(0), 2, lambda totals: None)
    outcomes = jobs.outcomes()
    for _ in range(10):
        next(outcomes)
    rest = list(jobs.rest())
    assert {each.thread_id for each in rest} <= {"t1", "t2"}
    assert jobs.totals.heads > 2_000_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_only_begins_is_not_ended_by_a_signal_to_all(number: signal.Signals) -> None:
    """Ctrl-C reaches a process of ours before any of our code does."""

    def strike() -> None:
        while not (children := multiprocessing.active_children()):
            pass
        for child in children:
            assert child.pid
            os.kill(child.pid, number)

    striking = threading.Thread(target=strike)
    striking.start()
    assert len(list(Jobs(Says(2), 1, lambda totals: None).outcomes())) == 2
    striking.join()
