"""`migrate copy`: threads from one store to another."""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.settings import Settings
    from repair_service.transfer.copy import Copying, CopyTotals
    from repair_service.transfer.lane import Forms, Lane
    from repair_service.transfer.store import CopiedStore, Source

LANES = 2
"""Batches that are copied at once, over connections of their own: one is compared while the other
waits for a store."""

LEFT = 2
"""The exit code where a thread is there and differs."""

ToUrl = Annotated[
    str,
    typer.Option(
        "--to-url",
        help="The store to copy into, as postgresql://USER@HOST/DATABASE; its tables must be there "
        "(PostgresSaver.setup()). Or set REPAIR_TO_URL.",
        metavar="URL",
        rich_help_panel=options.STORE,
        envvar="REPAIR_TO_URL",
        show_default=False,
        show_envvar=False,
    ),
]
ToSchema = Annotated[
    str,
    typer.Option(
        "--to-schema",
        help="The schema of its tables.",
        metavar="NAME",
        rich_help_panel=options.STORE,
    ),
]
FromSqlite = Annotated[
    Path | None,
    typer.Option(
        "--from-sqlite",
        help="Copy out of this file of langgraph-checkpoint-sqlite instead of Postgres.",
        metavar="FILE",
        rich_help_panel=options.STORE,
        show_default=False,
    ),
]
HeadsOnly = Annotated[
    bool,
    typer.Option(
        "--heads-only",
        help="Copy what each thread needs to go on, without its history.",
        rich_help_panel=options.SELECTION,
    ),
]
Encrypt = Annotated[
    bool,
    typer.Option(
        "--encrypt",
        help="Encrypt every value with LANGGRAPH_AES_KEY, as EncryptedSerializer does.",
        rich_help_panel=options.POLICY,
    ),
]
Decrypt = Annotated[
    bool,
    typer.Option(
        "--decrypt",
        help="Write every value plain; LANGGRAPH_AES_KEY opens those that are encrypted.",
        rich_help_panel=options.POLICY,
    ),
]


def copy(
    context: typer.Context,
    to_url: ToUrl,
    to_schema: ToSchema = "public",
    from_sqlite: FromSqlite = None,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    config: options.Config = None,
    thread: options.Thread = None,
    since: options.Since = None,
    shard: options.Shard = None,
    heads_only: HeadsOnly = False,
    encrypt: Encrypt = False,
    decrypt: Decrypt = False,
    lock_timeout: options.LockTimeout = None,
    yes: options.Yes = None,
    dry_run: options.DryRun = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    debug: options.Debug = False,
) -> None:
    """Copy threads into another store, row by row; no value is decoded, and none is left behind.

    Each thread is copied whole in one transaction, and both sides are compared before it is
    committed. A thread that is there already is compared too: where it is the same it is passed
    over, so a copy that was broken off is run again; where it differs, nothing of it is written.
    With --heads-only, a channel that is kept as a history of changes takes along the checkpoints
    back to its last whole value. Threads that run meanwhile are copied as they were at one moment:
    stop the application first; those that moved on behind their copy are named by the next one.

    \b
    Examples:
      repair-service migrate copy --to-url postgresql://USER@HOST/NEW --dry-run
      repair-service migrate copy --to-url postgresql://USER@HOST/NEW --heads-only
      repair-service migrate copy --to-url postgresql://USER@HOST/NEW --from-sqlite chat.sqlite
      repair-service migrate copy --to-url postgresql://USER@HOST/NEW --encrypt --shard 1/4
      repair-service migrate copy --to-url postgresql://USER@HOST/NEW --since 2026-11-30T20:00

    \b
    Exit codes:
      0  every thread is in the other store
      1  a store could not be read or written; what was copied stays, run it again
      2  some threads are there and differ
      5  refused: no terminal to ask on and no --yes
     64  wrong usage
    130, 143  stopped by Ctrl-C or SIGTERM, between two batches
    """
    from repair_service.cli.settings import load_settings

    if encrypt and decrypt:
        from repair_service.errors import UsageError

        raise UsageError("--encrypt and --decrypt: give one of them.")
    own = {"to_url", "to_schema", "from_sqlite", "heads_only", "encrypt", "decrypt"}
    flags = {name: value for name, value in context.params.items() if name not in own}
    settings = load_settings(flags)
    with ExitStack() as opened:
        forms = _forms(encrypt=encrypt, decrypt=decrypt, foreign=from_sqlite is not None)
        source, reading = _source(settings, from_sqlite, opened)
        target = _target(settings, to_url, to_schema, opened)

        def lane(number: int, *, dry_run: bool) -> "Lane":
            from repair_service.transfer.lane import Lane

            # A file is read by one connection in one thread.
            file = from_sqlite is not None
            own = (source, reading) if file else _source(settings, None, opened)
            into = _target(settings, to_url, to_schema, opened) if number else target
            return Lane(*own, into, forms, heads_only=heads_only, dry_run=dry_run)

        def copying(moved: "Callable[[CopyTotals], None]", *, dry_run: bool) -> "Copying":
            from repair_service.transfer.copy import Copying

            count = LANES if from_sqlite is None else 1
            lanes = [lane(number, dry_run=dry_run) for number in range(count)]
            return Copying(source, reading, lanes, moved=moved)

        raise typer.Exit(_run(settings, flags, copying))


def _run(settings: "Settings", flags: dict[str, Any], copying: "Callable[..., Copying]") -> int:
    from repair_service.cli.asking import agreed, need_answer
    from repair_service.cli.opening import one_answer

    settings = one_answer("migrate copy", settings, flags)
    if settings.dry_run:
        return _copied(settings, copying, dry_run=True)
    need_answer("migrate copy", settings.yes, "--dry-run says what would be copied")
    if not settings.yes and not agreed("Copy the threads?"):
        return LEFT
    return _copied(settings, copying, dry_run=False)


def _copied(settings: "Settings", copying: "Callable[..., Copying]", *, dry_run: bool) -> int:
    """Copy, say what was left, and give the exit code."""
    from repair_service.cli.signals import Stop, Stopped
    from repair_service.report.copied import CopyReport

    report = CopyReport(sys.stdout, as_json=settings.format == "json", dry_run=dry_run)
    with Stop() as stop:
        said = _Progress()

        def moved(totals: "CopyTotals") -> None:
            said.update(totals)
            stop.check()

        work = copying(moved, dry_run=dry_run)
        part = None if settings.part.count == 1 else settings.part.of_store()
        stop.between_heads()
        seen: set[str] = set()
        try:
            for thread, fate, reason in work.run(settings.thread, part, settings.since):
                seen.update({thread} & set(settings.thread))
                said.clear()
                report.add(thread, fate, reason)
        except Stopped as signal:
            said.clear()
            report.end(work.totals, signal.exit_code)
            return signal.exit_code
        said.clear()
        code = LEFT if report.left else 0
        report.end(work.totals, code)
    # A named thread may be another shard's, or older.
    whole = part is None and settings.since is None
    if missing := [each for each in settings.thread if whole and each not in seen]:
        from repair_service.errors import RepairServiceError

        raise RepairServiceError(
            f"{len(missing)} of the threads that were named are not there to be copied, "
            f"{missing[0]!r} for one; check the id, the database and --schema."
        )
    return code


class _Progress:
    """How far a copy is: a line that moves on a terminal, one each 30 s elsewhere."""

    def __init__(self) -> None:
        self._moving = sys.stderr.isatty()
        self._began = self._last = time.monotonic()
        self._shown = False

    def update(self, totals: "CopyTotals") -> None:
        now = time.monotonic()
        if now - self._last < (0.2 if self._moving else 30.0):
            return
        self._last = now
        rate = totals.bytes / 1e6 / (now - self._began)
        line = f"copy: {totals.threads.total():,} threads, {totals.rows:,} rows, {rate:.1f} MB/s"
        end = "" if self._moving else "\n"
        print(f"\r\x1b[K{line}" if self._moving else line, end=end, file=sys.stderr, flush=True)
        self._shown = self._moving

    def clear(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False


def _source(
    settings: "Settings", sqlite: Path | None, opened: ExitStack
) -> "tuple[Source, Callable[[], Any]]":
    """Where the threads are, and what opens a transaction there."""
    from repair_service.cli.variables import aes_key

    if sqlite is not None:
        from repair_service.transfer.sqlite import SqliteSource

        file = SqliteSource(sqlite, aes_key())
        opened.callback(file.close)
        return file, file.reading
    from repair_service.cli.opening import store_address

    address, schema = store_address(settings), settings.store_schema
    store = _store(settings, address, schema, opened, read_only=True)
    return store, store.connection.reading


def _target(settings: "Settings", url: str, schema: str, opened: ExitStack) -> "CopiedStore":
    store = _store(settings, url, schema, opened, read_only=bool(settings.dry_run))
    store.check_takes_rows()
    return store


def _store(
    settings: "Settings", url: str, schema: str, opened: ExitStack, *, read_only: bool
) -> "CopiedStore":
    from dataclasses import replace

    from repair_service.store.connection import StoreConnection
    from repair_service.transfer.store import STATEMENT_TIMEOUT, CopiedStore

    bounds = replace(settings.bounds(), statement_timeout=STATEMENT_TIMEOUT)
    connection = StoreConnection(url, schema, "repair-service", bounds, read_only)
    opened.callback(connection.close)
    return CopiedStore(connection)


def _forms(*, encrypt: bool, decrypt: bool, foreign: bool) -> "Forms":
    """What a row is compared as, and what is written of it.

    Raises:
        UsageError: There is no key.
    """
    from repair_service.cli.variables import aes_key
    from repair_service.errors import UsageError
    from repair_service.transfer.digest import canonical
    from repair_service.transfer.lane import Forms
    from repair_service.transfer.seal import as_it_is, opener, sealer

    key = aes_key()
    if (encrypt or decrypt) and key is None:
        flag = "--encrypt" if encrypt else "--decrypt"
        raise UsageError(f"{flag} needs the key; set LANGGRAPH_AES_KEY.")
    plain = opener(key)
    written = sealer(key) if encrypt else plain if decrypt else as_it_is
    if foreign:
        return Forms(lambda table, row: canonical(table, plain(table, row)), written)
    return Forms(plain if encrypt or decrypt else as_it_is, written)
