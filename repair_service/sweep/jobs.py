"""Several processes over one store: each has a shard of its own, and tells what it finds."""

import gc
import multiprocessing
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from typing import Protocol

from repair_service.errors import RepairServiceError
from repair_service.ledger.records.base import END, Cursor, JobCursors
from repair_service.repair.diagnosis import Diagnosis
from repair_service.sweep.totals import Totals

Found = Callable[[Diagnosis, Totals], None]
"""Told of each outcome, with the totals so far; raises JobStopped where the job is to end."""

Moved = Callable[[Totals], None]
"""Told of the totals now and then; raises JobStopped where the job is to end."""


SIGNALS = (signal.SIGINT, signal.SIGTERM)


class JobStopped(BaseException):
    """The parent wants no more of this job."""


class Job(Protocol):
    """The work of one process; it is pickled to get there."""

    def __call__(self, index: int, count: int, found: Found, moved: Moved) -> Cursor | None:
        """Do the work of one part, from 1, of how many.

        Returns:
            Where it was cut short; END where it was not, None where it keeps no place.
        """


@dataclass(frozen=True, slots=True)
class _News:
    """What a process tells: its totals, an outcome, its end, its place then, its failure."""

    totals: Totals | None = None
    diagnosis: Diagnosis | None = None
    ended: bool = False
    cursor: Cursor | None = None
    error: Exception | None = None


class Jobs:
    """The work of all processes together.

    Attributes:
        totals: What all of them counted.
        stopped_by: What cut one of them short; None where nothing did.
        refused: False: no bound is shared between processes.
        complete: Whether none was cut short.
        cursor: Where the next run may go on with as many; None where this one is complete, or none
            of them keeps a place.
    """

    def __init__(self, job: Job, count: int, moved: Moved) -> None:
        """Nothing is started yet.

        Args:
            job: What each process does.
            count: How many processes.
            moved: Called with the totals so far; what it raises ends the outcomes.
        """
        self.totals = Totals()
        self.stopped_by: str | None = None
        self.refused = False
        self.complete = True
        self.cursor: JobCursors | None = None
        self._job = job
        self._count = count
        self._moved = moved
        # A process that is begun anew shares no connection and no thread with this one.
        self._context = multiprocessing.get_context("spawn")
        self._stop: Event = self._context.Event()
        self._running: dict[Connection, BaseProcess] = {}
        self._counted: dict[str, Totals] = {}
        self._places: dict[str, Cursor | None] = {}

    def outcomes(self) -> Iterator[Diagnosis]:
        """Start the processes, and yield what they find as it comes.

        Raises:
            RepairServiceError: One of them failed; the others have ended by then.
        """
        for index in range(1, self._count + 1):
            ours, theirs = self._context.Pipe(duplex=False)
            process = self._context.Process(
                target=_run,
                args=(self._job, index, self._count, theirs, self._stop),
                name=_name(index),
            )
            with _held_back():
                process.start()
            theirs.close()
            self._running[ours] = process
        yield from self._news(self._moved)
        self._see_ends()

    def rest(self) -> Iterator[Diagnosis]:
        """Let the processes end, each behind the head at hand; yields what they still did."""
        self._stop.set()
        yield from self._news(lambda totals: None)

    def _news(self, moved: Moved) -> Iterator[Diagnosis]:
        failure: Exception | None = None
        while self._running:
            ready = wait(list(self._running))
            for pipe in [each for each in self._running if each in ready]:
                news = self._read(pipe)
                if news.totals is not None:
                    self._counted[self._running[pipe].name] = news.totals
                    self._add_up()
                if news.error is not None:
                    failure = failure or news.error
                    self._stop.set()
                if news.ended:
                    self._places[self._running[pipe].name] = news.cursor
                    self._running.pop(pipe).join()
                    pipe.close()
                if news.diagnosis is not None:
                    yield news.diagnosis
                moved(self.totals)
        if failure is not None:
            raise failure

    def _read(self, pipe: Connection) -> _News:
        try:
            news: _News = pipe.recv()
        except EOFError:
            process = self._running[pipe]
            process.join()
            died = RepairServiceError(
                f"A job's process died (exit code {process.exitcode}; -9 is often a lack of "
                "memory). What it wrote is whole; run it again, with fewer --jobs."
            )
            return _News(ended=True, error=died)
        return news

    def _see_ends(self) -> None:
        """Whether one of them was cut short, and where all of them stand then."""
        places = tuple(self._places[_name(index)] for index in range(1, self._count + 1))
        if any(place != END for place in places):
            self.complete, self.stopped_by = False, "--run-time"
            if any(place is not None for place in places):
                self.cursor = JobCursors(places)

    def _add_up(self) -> None:
        """Put the totals of all processes into ours, which others hold on to."""
        counted = self._counted.values()
        self.totals.threads = sum(each.threads for each in counted)
        self.totals.heads = sum(each.heads for each in counted)
        self.totals.verdicts = sum((each.verdicts for each in counted), Counter())
        self.totals.faults = sum((each.faults for each in counted), Counter())
        self.totals.salvaged = sum(each.salvaged for each in counted)
        self.totals.placeholders = sum(each.placeholders for each in counted)
        self.totals.throttled_seconds = sum(each.throttled_seconds for each in counted)
        self.totals.waiting_for = next(filter(None, (each.waiting_for for each in counted)), None)
        shares = [each.share for each in counted if each.share is not None]
        self.totals.share = sum(shares) / self._count if shares else None


def _name(index: int) -> str:
    return f"repair-service job {index}"


@contextmanager
def _held_back() -> Iterator[None]:
    """The signals wait meanwhile, also for a process that is begun here, until it is ready.

    Ctrl-C goes to every process of a terminal, and a new one has not read any code of ours yet.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(job: Job, index: int, count: int, pipe: Connection, stop: Event) -> None:
    """One process, from its start to its end."""
    gc.freeze()
    # The parent hears the signals, and tells its processes to end between two heads.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    # What came while this process began is let go of with it.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def found(diagnosis: Diagnosis, totals: Totals) -> None:
        # What the patch writes is nothing that a report shows, and large.
        patch = diagnosis.patch and replace(diagnosis.patch, blobs=())
        pipe.send(_News(totals, replace(diagnosis, patch=patch)))
        check()

    def moved(totals: Totals) -> None:
        pipe.send(_News(totals))
        check()

    def check() -> None:
        if stop.is_set():
            raise JobStopped

    cursor: Cursor | None = None
    error: Exception | None = None
    try:
        cursor = job(index, count, found, moved)
    except JobStopped:
        pass
    except BrokenPipeError:
        return  # the parent is gone
    except RepairServiceError as failure:
        error = failure
    except Exception:  # noqa: BLE001  # raised again in the parent
        error = RuntimeError(f"A job failed:\n{traceback.format_exc()}")
    pipe.send(_News(ended=True, cursor=cursor, error=error))
