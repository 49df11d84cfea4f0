"""The answer of `store status` and `store upgrade`."""

from importlib.metadata import version
from typing import IO

from repair_service.report.answer import Lines, write_document
from repair_service.report.document import SCHEMA_VERSION
from repair_service.store.upgrade import Step, StoreStatus

SAVER = "langgraph-checkpoint-postgres"


def status_lines(out: IO[str], found: StoreStatus) -> None:
    """Write a status for people."""
    lines = Lines(out)
    lines.wrapped(
        f"LangGraph's tables in the schema {found.schema} of {found.target} are at migration "
        f"{found.recorded}; the saver installed here ({SAVER} {version(SAVER)}) makes "
        f"{found.newest}."
    )
    for index in found.building:
        lines.wrapped(f"The index {index} is being built by somebody else.")
    if not found.steps:
        lines.wrapped("There is nothing to run.")
        return
    lines.line("An upgrade runs, in this order:")
    for step in found.steps:
        lines.wrapped(f"{step.migration}  {step.text}", indent=2)
        for note in _notes(found, step):
            lines.wrapped(note, indent=5)


def write_status_json(out: IO[str], found: StoreStatus, code: int) -> None:
    """Write a status for programs."""
    write_document(
        out,
        {
            "schema_version": SCHEMA_VERSION,
            "schema": found.schema,
            "recorded": found.recorded,
            "newest": found.newest,
            "saver": version(SAVER),
            "steps": [
                {
                    "migration": step.migration,
                    "statement": step.text,
                    "index": step.index,
                    "rebuilds": step.rebuilds,
                }
                for step in found.steps
            ],
            "building": list(found.building),
            "exit_code": code,
        },
    )


def _notes(found: StoreStatus, step: Step) -> list[str]:
    notes = []
    if step.rebuilds:
        notes.append("A broken index of that name is dropped first.")
    if step.index is not None and step.table is not None:
        rows = found.rows.get(step.table)
        size = "" if rows is None else f" of about {rows:,} rows"
        notes.append(f"Reads the whole table{size}; the application reads and writes meanwhile.")
    return notes
