"""Summaries: what the ledger says of a store as a whole."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from repair_service.ledger.database import Database
from repair_service.ledger.records.base import Earlier
from repair_service.ledger.records.summary import LastWhole, RunsOfVerb, Share, StoreSummary
from repair_service.ledger.statements import summary

MOST_NAMES = 20
"""Tools, and models, that are counted by name: more would be as many series in a monitor."""

Counted = tuple[tuple[Share, ...], tuple[Share, ...], datetime | None]
"""Tools, models, and the oldest head that is left to repair."""


class Summaries:
    """Counts over whole stores. One reader at a time.

    What a run that has ended found does not change, so its findings are counted once.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counted: dict[str, tuple[tuple[UUID, ...], Counted]] = {}

    def of(self, store_key: str) -> StoreSummary:
        """The summary of one store; of one that the ledger does not know, nothing but zeros."""
        counted = self._database.rows(summary.repairs_counted(store_key))[0]
        quarantined = self._database.rows(summary.quarantined_counted(store_key))[0][0]
        untold = self._database.rows(summary.dead_counted(store_key))[0][0]
        return StoreSummary(
            whole=self._whole(store_key),
            runs=_by_verb(self._database.rows(summary.runs_by_exit(store_key))),
            quarantined=quarantined,
            untold=untold,
            **counted._mapping,
        )

    def _whole(self, store_key: str) -> LastWhole | None:
        for newest in self._database.rows(summary.newest_whole_run(store_key)):
            rows = self._database.rows(summary.newest_of_shards(store_key, newest.shard_count))
            run_ids = tuple(run_id for row in rows for run_id in (row.id, *_earlier(row.selection)))
            tools, models, oldest = self._shares(store_key, run_ids)
            said = [row.totals for row in self._database.rows(summary.totals_of(run_ids))]
            return LastWhole(
                runs=run_ids,
                at=min(row.started_at for row in rows),
                threads=sum(each.get("threads", 0) for each in said),
                heads=sum(each.get("heads", 0) for each in said),
                verdicts=_summed(said, "verdicts"),
                kinds=_summed(said, "faults"),
                tools=tools,
                models=models,
                oldest_repairable=oldest,
            )
        return None

    def _shares(self, store_key: str, run_ids: tuple[UUID, ...]) -> Counted:
        known, shares = self._counted.get(store_key, ((), ((), (), None)))
        if known == run_ids:
            return shares
        tools, models = (
            tuple(
                Share(row.name, row.number)
                for row in self._database.rows(summary.most_frequent(run_ids, field, MOST_NAMES))
            )
            for field in ("tool_name", "model")
        )
        oldest = self._database.rows(summary.oldest_repairable(run_ids))[0][0]
        self._counted[store_key] = (run_ids, (tools, models, oldest))
        return tools, models, oldest


def _earlier(selection: Mapping[str, Any]) -> tuple[UUID, ...]:
    """The runs that a run went on from where they were cut short: it is whole with them only."""
    earlier = Earlier.within(selection)
    return () if earlier is None else earlier.runs


def _summed(said: Sequence[Mapping[str, Any]], name: str) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in said:
        total.update(each.get(name) or {})
    return dict(total)


def _by_verb(rows: Sequence[Row[Any]]) -> dict[str, RunsOfVerb]:
    verbs: dict[str, list[Row[Any]]] = {}
    for row in rows:
        verbs.setdefault(row.verb, []).append(row)
    return {verb: _runs_of(of_verb) for verb, of_verb in sorted(verbs.items())}


def _runs_of(rows: Sequence[Row[Any]]) -> RunsOfVerb:
    ended, began, throttled = max(row.last for row in rows)
    succeeded = [row.last[0] for row in rows if row.exit_code in summary.SUCCEEDED]
    return RunsOfVerb(
        exit_codes={row.exit_code: row.number for row in rows},
        last_start=datetime.fromtimestamp(began, UTC),
        last_end=datetime.fromtimestamp(ended, UTC),
        last_throttled=throttled,
        throttled=sum(row.throttled for row in rows),
        last_success=datetime.fromtimestamp(max(succeeded), UTC) if succeeded else None,
    )
