"""Which heads a run has to look at, by what the ledger says of the runs before it."""

import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from repair_service import __version__
from repair_service.cli.ledger import OpenLedger
from repair_service.cli.recording import selection_of
from repair_service.cli.settings import Settings
from repair_service.cli.times import say_time
from repair_service.ledger.records.base import Base, Earlier
from repair_service.sweep.selection import Selection

if TYPE_CHECKING:
    from repair_service.ledger.records.run import Run

STALE = timedelta(days=7)
"""A run that was cut short longer ago is not gone on with: most of what it saw has changed."""

TIMES = frozenset({"min_idle", "deployed_at"})
"""What decides when a head is judged, and not how: it is another one after each deploy."""


def scope_of(verb: str, settings: Settings, opened: OpenLedger | None) -> Selection:
    """The heads that the settings ask for, less those that the ledger says need no look; says so.

    Args:
        verb: The verb: a run goes on only where one of the same verb was cut short.
        settings: The settings.
        opened: The ledger; without, a run is full.

    Raises:
        LedgerError: The ledger was lost.
    """
    chosen = selection_of(settings)
    # What a migration is for has not changed: the graph has.
    if opened is None or settings.full or settings.migrate is not None:
        return chosen
    if (stopped := _cut_short(verb, settings, opened, chosen)) is not None:
        said = f"Goes on where run {stopped.id} stopped; --full begins anew."
        scope = replace(chosen, base=Base.within(stopped.selection), earlier=Earlier.of(stopped))
    elif not chosen.whole:
        return chosen
    else:
        said, scope = _since_last(settings, opened, chosen)
    print(said, file=sys.stderr)
    return scope


def _since_last(settings: Settings, opened: OpenLedger, chosen: Selection) -> tuple[str, Selection]:
    part = settings.part
    last = opened.ledger.runs.last_completed_sweep(
        opened.identity.key, shard_index=part.index, shard_count=part.count
    )
    why = None
    if last is None:
        why = "no earlier run over all of them has come to its end"
    elif last.version != __version__:
        why = f"the last run was by release {last.version}"
    elif not _same_policy(settings, last, TIMES):
        why = "the last run had another policy"
    if last is None or why is not None:
        return f"Looks at every head: {why}.", chosen
    base = Base.of(last)
    since = say_time(base.since)
    said = (
        f"Looks at what has changed since {since}, and at what was not final in run {last.id}; "
        "--full looks at every head."
    )
    return said, replace(chosen, base=base)


def _cut_short(
    verb: str, settings: Settings, opened: OpenLedger, chosen: Selection
) -> "Run | None":
    """The run to go on with: the last like this one, if it was cut short and kept its place."""
    from repair_service.ledger.values import plain

    asked = {name: plain(value) for name, value in asdict(chosen).items()}
    names = ("threads", "namespace", "since", "shard")
    for run in opened.ledger.runs.newest_of(
        verb,
        opened.identity.key,
        shard_index=settings.part.index,
        shard_count=settings.part.count,
    ):
        alike = (
            run.version == __version__
            and run.policy.get("dry_run") == settings.dry_run
            and all(run.selection.get(name) == asked[name] for name in names)
            and _same_policy(settings, run, frozenset({"deployed_at"}))
        )
        if alike and run.complete:
            return None
        if alike and (earlier := Earlier.of(run)) is not None:
            recent = run.finished_at is not None and run.finished_at > datetime.now(UTC) - STALE
            if recent and not earlier.takes(settings.jobs):
                print(
                    f"Does not go on where run {run.id} stopped: another number of --jobs would "
                    "have other parts.",
                    file=sys.stderr,
                )
                return None
            return run if recent else None
    return None


def _same_policy(settings: Settings, run: "Run", but: frozenset[str]) -> bool:
    from repair_service.ledger.values import plain

    policy: dict[str, Any] = plain(settings.policy())
    return all(run.policy.get(name) == policy[name] for name in policy.keys() - but)
