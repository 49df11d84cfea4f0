"""The ledger's runs for their readers: a list of them, and one with what it wrote."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import IO, Any

import msgspec

from repair_service.ledger.records.repair import Repair, RepairedCall, RepairState
from repair_service.ledger.records.run import Run
from repair_service.report.answer import Lines, write_document
from repair_service.report.document import SCHEMA_VERSION
from repair_service.report.table import printable

NO_END = "it has not ended: it goes on, or its process died"


class PastRun(msgspec.Struct, frozen=True):
    """A run of the ledger.

    Attributes:
        finished_at, exit_code, totals: None while it goes on, and where its process died.
        complete: Whether every head of its selection was looked at.
    """

    id: str
    verb: str
    store: str
    actor: str
    reason: str | None
    host: str
    version: str
    started_at: str
    finished_at: str | None
    complete: bool
    exit_code: int | None
    totals: Any
    selection: Any
    policy: Any


class PastRepair(msgspec.Struct, frozen=True):
    """A patch of the ledger.

    Attributes:
        state: `settled` where it was written; `intended` where a crash left that open; `abandoned`
            where it never was.
        undone_at, undone_by: When it was taken back, and by whom.
    """

    thread_id: str
    checkpoint_ns: str
    from_checkpoint_id: str
    to_checkpoint_id: str
    state: str
    calls: Sequence[RepairedCall]
    resume: str | None
    route: Sequence[str]
    recorded_at: str
    undone_at: str | None
    undone_by: str | None


def past_run(run: Run) -> PastRun:
    """A run for a report."""
    return PastRun(
        id=str(run.id),
        verb=run.verb,
        store=run.store,
        actor=run.actor,
        reason=run.reason,
        host=run.host,
        version=run.version,
        started_at=moment(run.started_at),
        finished_at=moment(run.finished_at) if run.finished_at else None,
        complete=run.complete,
        exit_code=run.exit_code,
        totals=run.totals,
        selection=run.selection,
        policy=run.policy,
    )


def past_repair(repair: Repair) -> PastRepair:
    """A patch for a report."""
    return PastRepair(
        thread_id=repair.thread_id,
        checkpoint_ns=repair.checkpoint_ns,
        from_checkpoint_id=repair.from_checkpoint_id,
        to_checkpoint_id=repair.to_checkpoint_id,
        state=repair.state.value,
        calls=repair.calls,
        resume=repair.resume,
        route=repair.route,
        recorded_at=moment(repair.recorded_at),
        undone_at=moment(repair.undone_at) if repair.undone_at else None,
        undone_by=repair.undone_by,
    )


def write_runs_json(
    out: IO[str], runs: Sequence[Run], open_intents: int, next_command: str | None
) -> None:
    """Write the list for programs."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "runs": [past_run(run) for run in runs],
        "open_intents": open_intents,
        "exit_code": 0,
        "next_command": next_command,
    }
    write_document(out, document)


def write_runs(
    out: IO[str], runs: Sequence[Run], open_intents: int, next_command: str | None
) -> None:
    """Write the list for people, newest first."""
    lines = Lines(out)
    if runs:
        lines.line(f"{'RUN':<38}{'STARTED':<22}{'VERB':<8}EXIT", "bold")
    for run in runs:
        code = "-" if run.exit_code is None else str(run.exit_code)
        started = moment(run.started_at)
        lines.line(f"{run.id!s:<38}{started:<22}{printable(run.verb):<8}{code}")
        lines.wrapped(_said(run), 4)
    if not runs:
        lines.line("No run yet.")
    if open_intents:
        lines.wrapped(
            f"Of {open_intents} begun writes nobody has said whether they are in the store: they "
            "go on, or a process died. Runs on that store settle those older than five minutes."
        )
    lines.next(next_command)


def write_run_json(
    out: IO[str], run: Run, repairs: Sequence[Repair], next_command: str | None
) -> None:
    """Write one run and its patches for programs."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "run": past_run(run),
        "repairs": [past_repair(repair) for repair in repairs],
        "exit_code": 0,
        "next_command": next_command,
    }
    write_document(out, document)


def write_run(out: IO[str], run: Run, repairs: Sequence[Repair], next_command: str | None) -> None:
    """Write one run and its patches for people."""
    lines = Lines(out)
    ended = moment(run.finished_at) if run.finished_at else NO_END
    lines.line(f"run {run.id}: {printable(run.verb)}", "bold")
    for name, value in (
        ("store", run.store),
        ("by", f"{run.actor} at {run.host}, repair-service {run.version}"),
        ("reason", run.reason or "none given"),
        ("started", moment(run.started_at)),
        ("ended", ended),
        ("exit code", "-" if run.exit_code is None else str(run.exit_code)),
        ("counted", said_totals(run) or "nothing"),
    ):
        lines.line(f"{name:<12}{printable(value)}")
    for repair in repairs:
        lines.line(f"{_state(repair):<12}{printable(repair.thread_id)}")
        if repair.checkpoint_ns:
            lines.wrapped(f"namespace {printable(repair.checkpoint_ns)}", 12)
        lines.wrapped(f"{repair.to_checkpoint_id} behind {repair.from_checkpoint_id}", 12)
        if repair.undone_at:
            by = printable(repair.undone_by or "somebody")
            lines.wrapped(f"taken back {moment(repair.undone_at)} by {by}", 12)
    lines.next(next_command)


def said_totals(run: Run) -> str:
    """What a run counted, in short; empty where it never said."""
    totals = run.totals or {}
    verdicts = totals.get("verdicts")
    if not isinstance(verdicts, dict):
        return ""
    said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if count)
    heads = totals.get("heads")
    if not isinstance(heads, int) or not said:
        return said
    return f"{heads} head{'' if heads == 1 else 's'}: {said}"


def moment(time: datetime) -> str:
    """A time as ISO 8601 in UTC, to the second."""
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _said(run: Run) -> str:
    reason = f': "{printable(run.reason)}"' if run.reason else ""
    by = f"{printable(run.actor)} at {printable(run.host)}{reason}"
    came_to = said_totals(run) if run.finished_at else NO_END
    return f"{by}; {came_to}" if came_to else by


def _state(repair: Repair) -> str:
    if repair.undone_at is not None:
        return "undone"
    return "written" if repair.state is RepairState.SETTLED else repair.state.value
