"""A run under a report and in the ledger: what the verbs that look at heads have in common."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from repair_service.cli.exits import ExitCode, exit_code
from repair_service.cli.incremental import scope_of
from repair_service.cli.jobs import jobs_of
from repair_service.cli.ledger import open_ledger
from repair_service.cli.opening import (
    checked_throttle,
    open_output,
    open_replica,
    open_report,
    open_store,
    replica_address,
    store_address,
)
from repair_service.cli.progress import Progress
from repair_service.cli.recording import Recording, start_run
from repair_service.cli.settings import Settings, load_settings
from repair_service.cli.signals import Stop, Stopped
from repair_service.cli.times import say_duration, say_time
from repair_service.errors import RepairServiceError, UsageError
from repair_service.ledger.records.base import Cursor, JobCursors
from repair_service.repair.diagnosis import Diagnosis
from repair_service.report.document import (
    Ending,
    Report,
    RunItem,
    scope_options,
    totals_item,
)
from repair_service.store.failures import read_address
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.totals import Totals


@dataclass(slots=True)
class Outcome:
    """What a run has come to.

    Attributes:
        totals: What was counted.
        first: The first head with each verdict, for what to type next.
        code: The exit code so far.
    """

    totals: Totals
    first: dict[str, Diagnosis]
    code: ExitCode | int = ExitCode.OK


class Work(Protocol):
    """What a run does, head by head."""

    totals: Totals
    stopped_by: str | None
    refused: bool
    complete: bool

    @property
    def cursor(self) -> Cursor | JobCursors | None:
        """Where the next run may go on; None where none has to, or no place is kept."""

    def rest(self) -> Iterator[Diagnosis]:
        """What is still done once the run is stopped."""


Moved = Callable[[Totals], None]
"""Called now and then with the totals so far; raises where the run is to stop."""

Begin = Callable[[Moved], tuple[Work, Iterator[Diagnosis]]]
"""Begins some work: the work, and its outcomes as they come."""


def audit_of(
    settings: Settings,
    store: Store,
    recording: Recording,
    *,
    now: Callable[[], float] = time.time,
    flags: Mapping[str, Any] | None = None,
) -> Begin:
    """Judging the heads that the settings select; in several processes where flags are given."""
    throttle = checked_throttle(settings, store)
    if settings.jobs > 1 and flags is not None:
        return jobs_of(settings, flags, recording, writes=False)

    def begin(moved: Moved) -> tuple[Work, Iterator[Diagnosis]]:
        sweep = Sweep(
            store,
            settings.policy(),
            recording.selection,
            now=now,
            on_progress=moved,
            record=recording.record,
            active_query=settings.active_query,
            throttle=throttle,
            run_time=settings.run_time,
        )
        return sweep, sweep.audit()

    return begin


def sweep_of(
    settings: Settings,
    store: Store,
    recording: Recording,
    flags: Mapping[str, Any] | None = None,
    replica: Store | None = None,
) -> Begin:
    """Repairing the heads that the settings select, within their bounds; jobs as for `audit_of`.

    With a replica it is that which is looked for them in.
    """
    throttle = checked_throttle(settings, store, replica)
    if settings.jobs > 1 and flags is not None:
        return jobs_of(settings, flags, recording, writes=True)
    if settings.max_ratio is not None and settings.run_time is not None:
        raise UsageError(
            "--max-ratio looks at every head before it writes the first, and --run-time may end "
            "the run before that; give one of them."
        )

    def begin(moved: Moved) -> tuple[Work, Iterator[Diagnosis]]:
        sweep = Sweep(
            store,
            settings.policy(),
            recording.selection,
            on_progress=moved,
            record=recording.record,
            max_repairs=settings.max_repairs,
            max_ratio=settings.max_ratio,
            active_query=settings.active_query,
            replica=replica,
            throttle=throttle,
            run_time=settings.run_time,
        )
        return sweep, sweep.repair()

    return begin


def audit_only(
    verb: str,
    flags: Mapping[str, Any],
    advise: Callable[[Outcome, Mapping[str, Any]], str | None],
) -> int:
    """The whole of a verb that judges the selected heads and writes nothing.

    Args:
        verb: The verb, for the report.
        flags: The flags by name.
        advise: Gives the command to type next.

    Returns:
        The exit code.

    Raises:
        RepairServiceError: The settings or the store cannot be used, or a named thread is missing.
    """
    settings = load_settings(flags)
    with (
        Stop() as stop,
        open_output(settings) as out,
        open_store(settings, writes=False) as store,
        open_replica(settings, store) as replica,
        open_ledger(settings, store, writes=False, looks=True) as opened,
    ):
        report = open_report(settings, out)
        scope = scope_of(verb, settings, opened)
        recording = start_run(verb, settings, opened, writes=False, scope=scope, replica=replica)
        outcome = run_reported(
            verb,
            settings,
            stop,
            recording,
            audit_of(settings, replica or store, recording, flags=flags),
            report=report,
            advise=lambda outcome: advise(outcome, flags),
        )
        check_threads_exist(settings, outcome)
        return int(outcome.code)


def run_reported(
    verb: str,
    settings: Settings,
    stop: Stop,
    recording: Recording,
    begin: Begin,
    *,
    report: Report,
    advise: Callable[[Outcome], str | None],
    earn: Callable[[Totals], ExitCode] | None = None,
) -> Outcome:
    """Do some work, report each head, and record and report the ending, whatever ends it.

    Args:
        verb: The verb, for the report.
        settings: The settings.
        stop: The signals; entered by the caller.
        recording: The run in the ledger; closed here.
        begin: The work.
        report: Takes the heads, and the ending also after an error or a signal.
        advise: Gives the command to type next.
        earn: The exit code of a run that came to its end and that no bound stopped; that of a sweep
            by default.

    Raises:
        Stopped: A signal came; the report is ended.
        StoreError, LedgerError: One of the two failed in the middle; the report is ended.
    """
    started = time.time()
    with Progress(verb, rate=settings.rate) as progress:

        def moved(totals: Totals) -> None:
            progress.update(totals)
            stop.check()

        work, outcomes = begin(moved)
        outcome = Outcome(work.totals, {})

        def end(code: int) -> None:
            outcome.code = code
            progress.clear()
            run = run_item(verb, settings, recording, started)
            report.end(Ending(run, totals_item(outcome.totals), int(code), advise(outcome)))

        stop.between_heads()
        try:
            for diagnosis in outcomes:
                outcome.first.setdefault(diagnosis.verdict.value, diagnosis)
                progress.clear()
                report.add(diagnosis)
                moved(work.totals)
            code = _code(settings, work, earn)
            recording.close(
                work.totals, exit_code=int(code), complete=work.complete, cursor=work.cursor
            )
        except Stopped as signal:
            progress.clear()
            for diagnosis in work.rest():
                outcome.first.setdefault(diagnosis.verdict.value, diagnosis)
                report.add(diagnosis)
            recording.close_broken(work.totals, exit_code=signal.exit_code)
            end(signal.exit_code)
            raise
        except BrokenPipeError:
            recording.close_broken(work.totals, exit_code=int(ExitCode.ERROR))
            raise
        except Exception:
            recording.close_broken(work.totals, exit_code=int(ExitCode.ERROR))
            end(ExitCode.ERROR)
            raise
        end(code)
    _say_bound(settings, work, recording)
    return outcome


def wait_for_deploy(settings: Settings) -> None:
    """Wait until the last old process of a deploy is gone, saying so on stderr."""
    if settings.deployed_at is None:
        return
    until = settings.deployed_at + settings.settle
    said = 0.0
    while (left := until - time.time()) > 0:
        if time.monotonic() - said >= 30 or not said:
            said = time.monotonic()
            print(
                f"Waiting {say_duration(left)} more, until {say_time(until)}, when the last "
                "process from before the deploy is gone (--settle).",
                file=sys.stderr,
                flush=True,
            )
        time.sleep(min(left, 1.0))


def check_threads_exist(settings: Settings, outcome: Outcome) -> None:
    """A thread that was named and is not there is an error, not a thread without faults.

    Raises:
        RepairServiceError: There are fewer threads than were named.
    """
    if missing := _missing(settings, outcome.totals):
        named = set(settings.thread)
        if len(named) == 1:
            raise RepairServiceError(missing_thread(settings.thread[0], settings))
        raise RepairServiceError(
            f"{missing} of the {len(named)} threads that were named are not in the schema "
            f"{settings.store_schema!r}; the others were looked at."
        )


def missing_thread(thread_id: str, settings: Settings) -> str:
    """The sentence for a thread that does not exist."""
    return (
        f"There is no thread {thread_id!r} in the store's schema {settings.store_schema!r}; "
        "check the id, the database and --schema."
    )


def _missing(settings: Settings, totals: Totals) -> int:
    """How many of the threads that were named are not in the store."""
    if (settings.namespace, settings.since, settings.shard) != (None, None, None):
        return 0  # a thread may be there and have no such head, or be another shard's
    return max(0, len(set(settings.thread)) - totals.threads)


def _code(settings: Settings, work: Work, earn: Callable[[Totals], ExitCode] | None) -> ExitCode:
    if _missing(settings, work.totals):
        return ExitCode.ERROR
    if work.refused:
        return ExitCode.REFUSED
    if work.stopped_by:
        return ExitCode.PARTLY_FAILED
    if earn is not None:
        return earn(work.totals)
    return exit_code(work.totals.verdicts, exit_zero=settings.exit_zero)


def _say_bound(settings: Settings, work: Work, recording: Recording) -> None:
    if work.refused:
        print(
            f"Nothing was written: {work.stopped_by}. Look with audit; where it is right, give a "
            "greater --max-ratio.",
            file=sys.stderr,
        )
    elif not work.complete and work.cursor is not None:
        jobs = f", with --jobs {settings.jobs}," if isinstance(work.cursor, JobCursors) else ""
        goes_on = (
            f"the next run of this kind{jobs} goes on from here"
            if recording.keeps
            else "nothing keeps the place, so the next run begins anew"
        )
        print(f"Stopped by {work.stopped_by}; {goes_on}.", file=sys.stderr)
    elif work.stopped_by:
        print(f"Stopped by {work.stopped_by}; run it again to go on.", file=sys.stderr)


def run_item(verb: str, settings: Settings, recording: Recording, started: float) -> RunItem:
    """The run for a report, as it ends now."""
    options = settings.options()
    if replica := replica_address(settings):
        options["read_url"] = read_address(replica).text
    return RunItem(
        id=str(recording.run_id),
        verb=verb,
        started_at=say_time(started),
        finished_at=say_time(time.time()),
        store=read_address(store_address(settings)).text,
        options={**options, **scope_options(recording.selection)},
    )
