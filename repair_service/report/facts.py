"""The facts of a run: who asked for it, of what, when, and how it ended."""

from collections.abc import Mapping
from typing import Any

from repair_service.ledger.records.run import Run
from repair_service.ledger.values import plain
from repair_service.repair.durations import said_duration
from repair_service.repair.verdict import Policy
from repair_service.report.advice import EXIT_CODES
from repair_service.report.table import printable
from repair_service.report.wording import said_time, settings_of

Facts = list[tuple[str, str]]
"""Names and values; free of control characters, and not yet escaped."""


def facts_of(run: Run) -> Facts:
    """The facts of a run but for its settings."""
    facts = [
        ("Run", str(run.id)),
        ("Verb", printable(run.verb)),
        ("Store", printable(run.store)),
        ("Actor", printable(run.actor)),
        ("Reason", printable(run.reason or "") or "none given"),
        ("Host", printable(run.host)),
        ("Version", printable(run.version)),
        ("Shard", f"{run.shard_index} of {run.shard_count}"),
        ("Started", said_time(run.started_at)),
    ]
    if run.finished_at is None:
        return [*facts, ("Finished", "not yet, or never")]
    took = (run.finished_at - run.started_at).total_seconds()
    return [
        *facts,
        ("Finished", f"{said_time(run.finished_at)}, after {said_duration(took)}"),
        ("Looked at", "every head of its selection" if run.complete else "a part of its selection"),
        ("Exit code", _said_exit(run.exit_code)),
    ]


def selection_of(run: Run) -> Facts:
    """What the run was asked to look at; empty for the whole store."""
    return list(settings_of(run.selection))


def policy_of(run: Run) -> Facts:
    """What the operator allowed and declared; placeholder texts only where they are their own."""
    default = dict(settings_of(_placeholders(plain(Policy()))))
    return [
        (name, value)
        for name, value in settings_of(run.policy)
        if not (name in default and default[name] == value)
    ]


def _placeholders(policy: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"placeholders": policy["placeholders"]}


def _said_exit(code: int | None) -> str:
    if code is None:
        return "not recorded"
    return f"{code}: {EXIT_CODES[code]}" if code in EXIT_CODES else str(code)
