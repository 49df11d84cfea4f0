"""A run as the ledger keeps it, where there is one: who, why, what, and how it ended."""

import getpass
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from repair_service import __version__
from repair_service.cli.ledger import OpenLedger, ledger_address
from repair_service.cli.settings import Settings
from repair_service.cli.telling import tells
from repair_service.cli.variables import aes_key, run_id_told
from repair_service.errors import LedgerError
from repair_service.store.gateway import Store
from repair_service.sweep.record import NoRecord, Record
from repair_service.sweep.selection import Selection

if TYPE_CHECKING:
    from repair_service.ledger.gateway import Ledger
    from repair_service.ledger.records.base import Cursor, JobCursors
    from repair_service.ledger.records.run import NewRun
    from repair_service.sweep.run_record import RunRecord


class Recording:
    """One run, in the ledger where there is one.

    Attributes:
        run_id: Its id, also where nothing is kept.
        record: Takes its findings and repairs.
        run: What the ledger knows of it; None where there is no ledger.
        keeps: Whether the ledger takes its findings and repairs.
        selection: The heads that it looks at.
    """

    def __init__(
        self,
        run_id: UUID,
        kept: "RunRecord | None",
        ledger: "Ledger | None",
        selection: Selection,
        run: "NewRun | None" = None,
    ) -> None:
        self.run_id = run_id
        self.run = run
        self.selection = selection
        self.keeps = kept is not None
        self.record: Record = kept or NoRecord()
        self._kept = kept
        self._ledger = ledger

    def close(
        self,
        totals: Any,
        *,
        exit_code: int,
        complete: bool,
        cursor: "Cursor | JobCursors | None" = None,
    ) -> None:
        """Record the end of the run.

        Args:
            totals: What was counted.
            exit_code: The exit code.
            complete: Whether every head of the selection was looked at.
            cursor: Where the next run may go on.

        Raises:
            LedgerError: The ledger was lost.
        """
        if self._kept is not None:
            self._kept.flush()
        if self._ledger is not None:
            self._ledger.runs.close(
                self.run_id,
                totals=totals,
                exit_code=exit_code,
                complete=complete,
                resume_cursor=cursor,
            )

    def close_broken(self, totals: Any, *, exit_code: int) -> None:
        """Record the end of a run that something else has ended; says where that fails too."""
        try:
            self.close(totals, exit_code=exit_code, complete=False)
        except LedgerError as error:
            print(f"The ledger does not have the end of this run. {error}", file=sys.stderr)


def start_run(
    verb: str,
    settings: Settings,
    opened: OpenLedger | None,
    *,
    writes: bool,
    scope: Selection | None = None,
    selection: Any = None,
    policy: Any = None,
    replica: Store | None = None,
) -> Recording:
    """Record the start of a run.

    Args:
        verb: The verb.
        settings: The settings.
        opened: The ledger; None to keep nothing.
        writes: Whether it writes to the store.
        scope: The heads it looks at; those of the settings by default.
        selection: What it looks at in other words, where it is no matter of heads; nobody goes on
            from such a run.
        policy: What it may do; that of the settings by default.
        replica: The replica that it looks at; an incremental run goes on from what that had then.

    Raises:
        LedgerError: The ledger was lost.
    """
    chosen = scope or selection_of(settings)
    run_id = run_id_told(os.environ) or uuid4()
    if opened is None:
        return Recording(run_id, None, None, chosen)
    run = _new_run(
        verb,
        settings,
        opened,
        run_id=run_id,
        selection=chosen if selection is None else selection,
        policy=_policy_of(settings, replica) if policy is None else policy,
        whole_store=selection is None and chosen.whole,
    )
    opened.ledger.runs.open(run)
    kept = _run_record(settings, opened.ledger, run, writes=writes)
    return Recording(run.id, kept, opened.ledger, chosen, run)


def _new_run(
    verb: str,
    settings: Settings,
    opened: OpenLedger,
    *,
    run_id: UUID,
    selection: Any,
    policy: Any,
    whole_store: bool,
) -> "NewRun":
    from repair_service.ledger.records.run import NewRun

    return NewRun(
        verb=verb,
        store=opened.identity,
        selection=selection,
        policy=policy,
        whole_store=whole_store,
        actor=actor_of(settings),
        version=__version__,
        host=socket.gethostname(),
        reason=settings.reason,
        shard_index=settings.part.index,
        shard_count=settings.part.count,
        started_at=datetime.now(UTC),
        id=run_id,
    )


def _run_record(
    settings: Settings, ledger: "Ledger", run: "NewRun", *, writes: bool
) -> "RunRecord":
    from repair_service.sweep.run_record import RunRecord

    return RunRecord(
        ledger,
        run,
        most_repairs=settings.max_repairs_per_thread,
        writes=writes,
        aes_key=aes_key(),
    )


@contextmanager
def record_in_job(
    settings: Settings, run: "NewRun | None", *, writes: bool, keeps: bool
) -> Iterator[Record]:
    """The record of a run that another process has begun and will end.

    Args:
        settings: The settings.
        run: The run; None where none is kept.
        writes: Whether it writes to the store.
        keeps: Whether its findings and repairs are kept, or the quarantine is only asked for.

    Raises:
        LedgerError: The ledger was lost.
    """
    if run is None:
        yield NoRecord()
        return
    from repair_service.ledger.gateway import Ledger
    from repair_service.sweep.run_record import Look

    with Ledger(ledger_address(settings), tells=tells(settings)) as ledger:
        if not keeps:
            yield Look(ledger, run.store.key, most_repairs=settings.max_repairs_per_thread)
            return
        record = _run_record(settings, ledger, run, writes=writes)
        try:
            yield record
        finally:
            record.flush()


def selection_of(settings: Settings) -> Selection:
    """The heads that the settings select."""
    return Selection(
        threads=settings.thread,
        namespace=settings.namespace,
        since=settings.since,
        shard=settings.part,
    )


def preview(
    settings: Settings, opened: OpenLedger | None, scope: Selection | None = None
) -> Recording:
    """A look before a run, of which nothing is kept; it knows what the ledger says."""
    recording = Recording(uuid4(), None, None, scope or selection_of(settings))
    if opened is not None:
        from repair_service.sweep.run_record import Look

        # Never opened; the processes of --jobs know by it which store the ledger is to be asked of.
        recording.run = _new_run(
            "audit",
            settings,
            opened,
            run_id=recording.run_id,
            selection=recording.selection,
            policy={},
            whole_store=False,
        )
        recording.record = Look(
            opened.ledger, opened.identity.key, most_repairs=settings.max_repairs_per_thread
        )
    return recording


def actor_of(settings: Settings) -> str:
    """Who runs this: REPAIR_ACTOR, else the account of the operating system."""
    if settings.actor:
        return settings.actor
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user id may have no name
        return f"uid {os.getuid()}"


def _said(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _policy_of(settings: Settings, replica: Store | None) -> dict[str, Any]:
    bounds = {
        "active_query": settings.active_query,
        "max_repairs": settings.max_repairs,
        "max_ratio": settings.max_ratio,
        **{name: _said(value) for name, value in asdict(settings.limits()).items()},
        "read_behind": None if replica is None else replica.load().behind(),
        "dry_run": settings.dry_run,
    }
    return {**asdict(settings.policy()), **bounds}
