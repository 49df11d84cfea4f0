"""What `undo` did, for its readers."""

from collections import Counter
from collections.abc import Sequence
from typing import IO

import msgspec

from repair_service.report.answer import Lines, write_document
from repair_service.report.document import SCHEMA_VERSION, RunItem
from repair_service.report.table import printable
from repair_service.sweep.undo import Undone

STYLES = {"undone": "green", "kept": "yellow"}


class UndoneDocument(msgspec.Struct, frozen=True):
    """The document: its items are `Undone`."""

    schema_version: int
    run: RunItem
    dry_run: bool
    totals: dict[str, int]
    items: Sequence[Undone]
    exit_code: int
    next_command: str | None


def write_undone_json(
    out: IO[str],
    run: RunItem,
    items: Sequence[Undone],
    *,
    dry_run: bool,
    exit_code: int,
    next_command: str | None,
) -> None:
    """Write the outcome of each patch for programs."""
    write_document(
        out,
        UndoneDocument(
            schema_version=SCHEMA_VERSION,
            run=run,
            dry_run=dry_run,
            totals=undone_totals(items),
            items=items,
            exit_code=exit_code,
            next_command=next_command,
        ),
    )


def write_undone(
    out: IO[str], items: Sequence[Undone], *, dry_run: bool, next_command: str | None
) -> None:
    """Write the outcome of each patch for people."""
    lines = Lines(out)
    for item in items:
        lines.line(f"{item.outcome:<12}{printable(item.thread_id)}", STYLES[item.outcome])
        if item.checkpoint_ns:
            lines.wrapped(f"namespace {printable(item.checkpoint_ns)}", 12)
        if item.reason:
            lines.wrapped(item.reason, 12)
        elif item.outcome == "undone":
            tense = "would be" if dry_run else "is"
            lines.wrapped(f"{item.from_checkpoint_id} {tense} the head again", 12)
    if not items:
        lines.wrapped(
            "There is no patch to take back: the ledger has none of it, or all were taken back."
        )
        return
    totals = undone_totals(items)
    verb = "Would be taken back" if dry_run else "Taken back"
    kept = f"; {totals['kept']} kept" if totals["kept"] else ""
    lines.wrapped(f"{verb}: {totals['undone']} of {_patches(len(items))}{kept}.")
    lines.next(next_command)


def undone_totals(items: Sequence[Undone]) -> dict[str, int]:
    """How many were taken back, and how many were kept."""
    counts = Counter(item.outcome for item in items)
    return {"undone": counts["undone"], "kept": counts["kept"]}


def _patches(count: int) -> str:
    return f"{count} patch" if count == 1 else f"{count} patches"
