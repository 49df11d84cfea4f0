"""What a verb works on, as the settings name it: the store, and where the report goes."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from repair_service.cli.settings import Settings
from repair_service.cli.variables import WORKER_RUN, aes_key, wants_json_lines
from repair_service.errors import UsageError
from repair_service.report.document import Report
from repair_service.report.formats import report_as
from repair_service.store.gateway import Store
from repair_service.sweep.throttle import Throttle


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
    with _connect(settings, store_address(settings), read_only=not writes) as store:
        if writes:
            store.check_writable(migrates=settings.migrate is not None)
        else:
            store.check_understood()
        yield store


@contextmanager
def open_replica(settings: Settings, store: Store) -> Iterator[Store | None]:
    """The replica that the settings name to be read, understood or refused; None where none is.

    Args:
        settings: The settings.
        store: The store.

    Raises:
        UsageError: An address that cannot be read, or one of another store.
        StoreError: It cannot be reached, is none that is understood, or may not be used.
    """
    address = replica_address(settings)
    if address is None:
        yield None
        return
    with _connect(settings, address, read_only=True) as replica:
        store.check_replica(replica)
        replica.check_understood()
        yield replica


def replica_address(settings: Settings) -> str | None:
    """The address of the replica that is to be read; None where there is none. Secret."""
    secret = settings.read_url
    return secret.get_secret_value().strip() or None if secret is not None else None


def open_throttle(settings: Settings, *servers: Store | None) -> Throttle:
    """What lets a run wait as the settings ask.

    Args:
        settings: The settings.
        servers: Those that are worked on, the primary first.
    """
    limits = settings.limits().shared_by(settings.jobs)
    return Throttle(limits, [server.load() for server in servers if server is not None])


def checked_throttle(settings: Settings, *servers: Store | None) -> Throttle:
    """The same, for a run that begins now: what cannot be asked is said at once.

    Raises:
        UsageError, StoreError: A server cannot be asked.
    """
    throttle = open_throttle(settings, *servers)
    throttle.check()
    if throttle.blind:
        print(
            "Note: --max-lag waits for nothing: the server shows no replica that streams from it.",
            file=sys.stderr,
        )
    return throttle


def _connect(settings: Settings, address: str, *, read_only: bool) -> Store:
    return Store.connect(
        address,
        schema=settings.store_schema,
        aes_key=aes_key(),
        bounds=settings.bounds(),
        read_only=read_only,
    )


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


def open_report(settings: Settings, out: IO[str]) -> Report:
    """The report of a run that begins now, in the format of the settings.

    Raises:
        UsageError: The format is of runs that have ended.
    """
    if os.environ.get(WORKER_RUN):
        from repair_service.cli.logs import LoggedReport

        # Nobody reads what a worker's run prints: its report is in the ledger.
        return LoggedReport()
    if settings.format == "markdown" or settings.format == "html":
        raise UsageError(
            f"--format {settings.format}: a run is reported so from the ledger, once it has ended: "
            f"repair-service report last --format {settings.format}."
        )
    report = report_as(settings.format, out)
    if wants_json_lines(os.environ):
        from repair_service.cli.logs import LoggedReport

        return LoggedReport(report)
    return report


def one_answer(verb: str, settings: Settings, flags: Mapping[str, Any]) -> Settings:
    """The settings of a verb that has one short answer: table or json.

    Args:
        verb: The verb.
        settings: Its settings.
        flags: Its flags. A format that the environment or the file sets for the long reports of
            other verbs is no reason to refuse: the nearest one is taken.

    Raises:
        UsageError: The flag asks for a format that is neither.
    """
    if settings.format in ("table", "json"):
        return settings
    if flags.get("format") is not None:
        raise UsageError(f"--format: {verb} has one answer, as table or as json.")
    nearest = "json" if settings.format == "jsonl" else "table"
    return settings.model_copy(update={"format": nearest})
