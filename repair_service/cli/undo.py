"""`undo`: takes patches back while their threads have not moved on."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from uuid import UUID

    from repair_service.cli.ledger import OpenLedger
    from repair_service.cli.recording import Recording
    from repair_service.cli.settings import Settings
    from repair_service.store.gateway import Store
    from repair_service.sweep.undo import Undone


def undo(
    context: typer.Context,
    thread_id: options.UndoThread = None,
    run: options.UndoRun = None,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    active_query: options.ActiveQuery = None,
    dry_run: options.DryRun = None,
    yes: options.Yes = None,
    reason: options.Reason = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    debug: options.Debug = False,
) -> None:
    """Take patches back: those of a thread, or of a run.

    The rows that we wrote are deleted, and the store is again what it was, row by row. A patch on
    which the thread has moved on is kept, and it is said what stands on it. A run that has begun on
    a patch and written nothing yet leaves no trace: stop the runs of these threads first, or name
    them with --active-query. It needs the ledger that recorded the patches, and DELETE on
    checkpoints and checkpoint_blobs. On a terminal it first shows what would be taken back and
    asks; elsewhere it needs --yes.

    \b
    Examples:
      repair-service undo 4711 --dry-run
      repair-service undo 4711
      repair-service undo --run last --yes --reason "wrong route"

    \b
    Exit codes:
      0  all of them are taken back, or there was none
      1  no ledger, no such run, or the store could not be read or written
      3  some are kept, because something stands on them
      5  refused: no terminal to ask on, and no --yes
     64  wrong usage
    """
    from repair_service.cli.opening import one_answer
    from repair_service.cli.settings import load_settings
    from repair_service.errors import UsageError

    if (thread_id is None) == (run is None):
        raise UsageError("undo takes a THREAD or --run RUN, and one of the two.")
    settings = one_answer("undo", load_settings(context.params), context.params)
    raise typer.Exit(_undo(settings, context.params, thread_id, run))


def _undo(
    settings: "Settings", flags: Mapping[str, Any], thread_id: str | None, run: str | None
) -> int:
    from repair_service.cli.asking import agreed, need_answer
    from repair_service.cli.ledger import (
        WRITING,
        check_reason,
        find_run,
        known_store,
        needed_ledger,
    )
    from repair_service.cli.opening import open_output, open_store
    from repair_service.cli.telling import send_due
    from repair_service.report.undone import write_undone

    writes = not settings.dry_run
    check_reason(settings, writes=writes)
    if writes:
        need_answer("undo", settings.yes, "--dry-run shows what would be taken back")
    with (
        open_output(settings) as out,
        open_store(settings, writes=writes) as store,
        needed_ledger(settings, "undo") as ledger,
    ):
        of_run = find_run(ledger, run, WRITING).id if run is not None else None
        what = _Patches(settings, store, known_store(settings, store, ledger), thread_id, of_run)
        if writes and not settings.yes:
            planned = what.look()
            write_undone(sys.stderr, planned, dry_run=True, next_command=None)
            if not any(item.outcome == "undone" for item in planned):
                return _code(planned)
            if not agreed("Take back?"):
                return 0
        flags = {**flags, "run": of_run}
        advice = next_undo(flags, thread_id) if settings.dry_run else None
        if settings.dry_run:
            return what.look_reported(out, advice)
        code = what.take_back(out)
        send_due(settings, ledger)
        return code


@dataclass(frozen=True, slots=True)
class _Patches:
    """The patches of a thread, or of a run."""

    settings: "Settings"
    store: "Store"
    opened: "OpenLedger"
    thread_id: str | None
    of_run: "UUID | None"

    def look(self) -> "list[Undone]":
        """What would become of each."""
        return list(self._undone(dry_run=True))

    def look_reported(self, out: IO[str], advice: str | None) -> int:
        """Report what would become of each."""
        from repair_service.cli.recording import preview

        recording = preview(self.settings, None)
        return self._report(out, recording, time.time(), self.look(), advice)

    def take_back(self, out: IO[str]) -> int:
        """Take each back, record it, and report it."""
        from repair_service.cli.exits import ExitCode
        from repair_service.cli.recording import start_run
        from repair_service.report.undone import undone_totals

        started = time.time()
        about = {"thread": self.thread_id, "run": self.of_run}
        recording = start_run(
            "undo", self.settings, self.opened, writes=True, selection=about, policy={}
        )
        done: list[Undone] = []
        try:
            done.extend(self._undone(dry_run=False, run_id=recording.run_id))
            totals = {"verdicts": undone_totals(done)}
            recording.close(totals, exit_code=_code(done), complete=True)
        except BaseException:
            totals = {"verdicts": undone_totals(done)}
            recording.close_broken(totals, exit_code=int(ExitCode.ERROR))
            raise
        return self._report(out, recording, started, done, None)

    def _undone(self, *, dry_run: bool, run_id: "UUID | None" = None) -> "Iterator[Undone]":
        from repair_service.cli.recording import actor_of
        from repair_service.sweep.undo import undo as take_back

        return take_back(
            self.store,
            self.opened.ledger,
            self.opened.identity,
            by=actor_of(self.settings),
            thread_id=self.thread_id,
            of_run=self.of_run,
            run_id=run_id,
            dry_run=dry_run,
            active_query=self.settings.active_query,
        )

    def _report(
        self,
        out: IO[str],
        recording: "Recording",
        started: float,
        items: "Sequence[Undone]",
        advice: str | None,
    ) -> int:
        from repair_service.cli.running import run_item
        from repair_service.report.undone import write_undone, write_undone_json

        code, dry_run = _code(items), self.settings.dry_run
        if not any(item.outcome == "undone" for item in items):
            advice = None
        if self.settings.format == "json":
            run = run_item("undo", self.settings, recording, started)
            write_undone_json(out, run, items, dry_run=dry_run, exit_code=code, next_command=advice)
        else:
            write_undone(out, items, dry_run=dry_run, next_command=advice)
        return code


def _code(items: "Sequence[Undone]") -> int:
    from repair_service.cli.exits import ExitCode

    kept = any(item.outcome == "kept" for item in items)
    return int(ExitCode.PARTLY_FAILED if kept else ExitCode.OK)


def next_undo(flags: Mapping[str, Any], thread_id: str | None) -> str:
    """What to type after a dry run."""
    from repair_service.cli.next_command import LEDGER, STORE, next_command

    return next_command("undo", flags, (*STORE, *LEDGER, "run", "active_query"), thread_id)
