"""A run under a report: what `audit`, `sweep` and `repair` have in common."""

import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from repair_service.cli.exits import ExitCode, exit_code
from repair_service.cli.progress import Progress
from repair_service.cli.settings import Settings, aes_key, load_settings
from repair_service.cli.signals import Stop, Stopped
from repair_service.cli.times import say_duration, say_time
from repair_service.errors import RepairServiceError, UsageError
from repair_service.repair.diagnosis import Diagnosis
from repair_service.report.document import Ending, Report, RunItem, totals_item
from repair_service.report.formats import report_as
from repair_service.store.failures import read_address
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from repair_service.sweep.totals import Totals

FARTHEST_DEPLOY = 24 * 3600.0
"""Seconds: a deploy later than this is a slip of the pen, and nobody wants to wait for it."""


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


def store_address(settings: Settings) -> str:
    """The store's address. Secret.

    Raises:
        UsageError: None is set.
    """
    secret = settings.database_url
    if secret is None or not secret.get_secret_value().strip():
        raise UsageError(
            "No database is named; set DATABASE_URL, or give "
            "--database-url postgresql://USER@HOST/DATABASE."
        )
    return secret.get_secret_value()


@contextmanager
def open_store(settings: Settings, *, writes: bool) -> Iterator[Store]:
    """The store that the settings name, understood or refused.

    Args:
        settings: The settings.
        writes: Whether it will be written to; without, nothing can be.

    Raises:
        UsageError: No address, or one that cannot be read.
        StoreError: It cannot be reached, is none that is understood, or may not be used.
    """
    with Store.connect(
        store_address(settings),
        schema=settings.store_schema,
        aes_key=aes_key(),
        read_only=not writes,
    ) as store:
        if writes:
            store.check_writable()
        else:
            store.check_understood()
        yield store


@contextmanager
def open_output(settings: Settings) -> Iterator[IO[str]]:
    """Where the report goes: the file of `--output`, else stdout.

    Raises:
        UsageError: The file cannot be written.
    """
    if settings.output is None:
        yield sys.stdout
        return
    try:
        out = settings.output.open("w", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--output {settings.output} cannot be written: {error.strerror}."
        ) from None
    with out:
        yield out


def new_sweep(store: Store, settings: Settings, on_progress: Callable[[Totals], None]) -> Sweep:
    """A run over the heads that the settings select."""
    selection = Selection(
        threads=settings.thread, namespace=settings.namespace, since=settings.since
    )
    return Sweep(store, settings.policy(), selection, on_progress=on_progress)


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
    ):
        outcome = run_reported(
            verb,
            settings,
            store,
            stop,
            writes=False,
            report=report_as(settings.format, out),
            advise=lambda outcome: advise(outcome, flags),
        )
        check_threads_exist(settings, outcome)
        return int(outcome.code)


def run_reported(
    verb: str,
    settings: Settings,
    store: Store,
    stop: Stop,
    *,
    writes: bool,
    report: Report,
    advise: Callable[[Outcome], str | None],
    one_thread: bool = False,
) -> Outcome:
    """Run over the selected heads and report each of them, whatever ends the run.

    Args:
        verb: The verb, for the report.
        settings: The settings.
        store: The store.
        stop: The signals; entered by the caller.
        writes: Whether repairable heads are written.
        report: Takes the heads, and the ending also after an error or a signal.
        advise: Gives the command to type next.
        one_thread: Whether this is the repair of one thread.

    Raises:
        Stopped: A signal came; the report is ended.
        StoreError: The store failed in the middle; the report is ended.
    """
    progress = Progress(verb)
    started = time.time()

    def moved(totals: Totals) -> None:
        progress.update(totals)
        stop.check()

    sweep = new_sweep(store, settings, moved)
    outcome = Outcome(sweep.totals, {})

    def end(code: int) -> None:
        outcome.code = code
        progress.clear()
        report.end(_ending(verb, settings, started, outcome, advise(outcome)))

    stop.between_heads()
    try:
        for diagnosis in sweep.repair() if writes else sweep.audit():
            outcome.first.setdefault(diagnosis.verdict.value, diagnosis)
            progress.clear()
            report.add(diagnosis)
            moved(sweep.totals)
    except Stopped as signal:
        end(signal.exit_code)
        raise
    except BrokenPipeError:
        progress.clear()
        raise
    except Exception:
        end(ExitCode.ERROR)
        raise
    end(_code(settings, sweep.totals, one_thread=one_thread))
    return outcome


def wait_for_deploy(settings: Settings) -> None:
    """Wait until the last old process of a deploy is gone, saying so on stderr.

    Raises:
        UsageError: The deploy is more than a day away.
    """
    if settings.deployed_at is None:
        return
    until = settings.deployed_at + settings.settle
    if settings.deployed_at - time.time() > FARTHEST_DEPLOY:
        raise UsageError(
            f"--deployed-at {say_time(settings.deployed_at)} is more than a day away; "
            "give the time at which the deploy began."
        )
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
    if settings.namespace is not None or settings.since is not None:
        return 0  # a thread may be there and have no such head
    return max(0, len(set(settings.thread)) - totals.threads)


def _code(settings: Settings, totals: Totals, *, one_thread: bool) -> ExitCode:
    if _missing(settings, totals):
        return ExitCode.ERROR
    return exit_code(totals.verdicts, exit_zero=settings.exit_zero, one_thread=one_thread)


def _ending(
    verb: str, settings: Settings, started: float, outcome: Outcome, advice: str | None
) -> Ending:
    run = RunItem(
        id=str(uuid.uuid4()),
        verb=verb,
        started_at=say_time(started),
        finished_at=say_time(time.time()),
        store=read_address(store_address(settings)).text,
        options=settings.options(),
    )
    return Ending(run, totals_item(outcome.totals), int(outcome.code), advice)
