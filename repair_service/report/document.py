"""A whole run in a report: what was asked, what was counted, how it ended."""

from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from repair_service.ledger.records.base import Base, Earlier
from repair_service.repair.diagnosis import Diagnosis
from repair_service.sweep.totals import Totals

SCHEMA_VERSION = 1


class RunItem(msgspec.Struct, frozen=True):
    """One call of a verb.

    Attributes:
        id: A UUID.
        verb: The verb.
        started_at, finished_at: ISO 8601 in UTC; a past run that never ended has no end.
        store: The store's address, without password.
        options: The settings that were in force, by the names of their flags.
    """

    id: str
    verb: str
    started_at: str
    finished_at: str | None
    store: str
    options: dict[str, Any]


class TotalsItem(msgspec.Struct, frozen=True):
    """What a run counted; `faults` and `verdicts` hold only what was seen.

    `throttled_seconds` is the time that it waited for a quieter server.
    """

    threads: int
    heads: int
    verdicts: dict[str, int]
    faults: dict[str, int]
    salvaged: int
    placeholders: int
    throttled_seconds: float = 0.0


class Ending(msgspec.Struct, frozen=True):
    """All of a run that is known only at its end; a past run that never ended has no exit code."""

    run: RunItem
    totals: TotalsItem
    exit_code: int | None
    next_command: str | None


class Report(Protocol):
    """Takes the heads of a run as they come, and its ending."""

    def add(self, diagnosis: Diagnosis) -> None:
        """Report one head that is not healthy."""
        ...

    def end(self, ending: Ending) -> None:
        """Report the ending; nothing comes after it."""
        ...


class Scope(Protocol):
    """What a run goes on from (sweep/selection.py)."""

    @property
    def base(self) -> Base | None:
        """The run since which it looks."""

    @property
    def earlier(self) -> Earlier | None:
        """The run that was cut short."""


def scope_options(scope: Scope) -> dict[str, str | None]:
    """What a report says of the runs before it: since when it is incremental, and from which run;
    which run did the first part."""
    base, earlier = scope.base, scope.earlier
    since = None if base is None else datetime.fromtimestamp(base.since, UTC)
    return {
        "incremental_since": None if since is None else f"{since:%Y-%m-%dT%H:%M:%SZ}",
        "incremental_base": None if base is None else str(base.runs[0]),
        "goes_on_from": None if earlier is None else str(earlier.runs[0]),
    }


def totals_item(totals: Totals) -> TotalsItem:
    """The totals for a report, most frequent first."""
    return TotalsItem(
        threads=totals.threads,
        heads=totals.heads,
        verdicts={verdict.value: n for verdict, n in totals.verdicts.most_common() if n},
        faults={kind.value: n for kind, n in totals.faults.most_common() if n},
        salvaged=totals.salvaged,
        placeholders=totals.placeholders,
        throttled_seconds=round(totals.throttled_seconds, 1),
    )
