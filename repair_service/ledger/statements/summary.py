"""Statements that count over a whole store: a few rows each, whatever the ledger has grown to."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Float,
    Integer,
    Select,
    Text,
    and_,
    case,
    cast,
    column,
    distinct,
    extract,
    func,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import array

from repair_service.ledger.records.repair import RepairState
from repair_service.ledger.tables import findings, outbox, quarantine, repairs, runs
from repair_service.repair.verdict import Verdict

SUCCEEDED = (0, 2)
"""Exit codes of runs that did what they should: nothing is wrong, or it is known what is."""

LONGEST_NAME = 100
"""Characters of a tool's or model's name: both are as somebody else wrote them."""


def newest_whole_run(store_key: str) -> Select[Any]:
    """In how many shards the whole of a store was last looked at."""
    return (
        select(runs.c.shard_count)
        .where(runs.c.store_key == store_key, runs.c.complete, runs.c.whole_store)
        .order_by(runs.c.started_at.desc())
        .limit(1)
    )


def newest_of_shards(store_key: str, shard_count: int) -> Select[Any]:
    """The last whole run of each shard."""
    of_shards = and_(
        runs.c.store_key == store_key,
        runs.c.shard_count == shard_count,
        runs.c.complete,
        runs.c.whole_store,
    )
    # Found in the index alone, however many runs there were.
    newest = (
        select(runs.c.shard_index, func.max(runs.c.started_at).label("started_at"))
        .where(of_shards)
        .group_by(runs.c.shard_index)
        .subquery()
    )
    return (
        select(runs.c.id, runs.c.selection, runs.c.started_at)
        .join(
            newest,
            and_(
                newest.c.shard_index == runs.c.shard_index,
                newest.c.started_at == runs.c.started_at,
            ),
        )
        .where(of_shards)
        .order_by(runs.c.shard_index)
    )


def totals_of(run_ids: Sequence[UUID]) -> Select[Any]:
    """What these runs counted."""
    return select(runs.c.totals).where(runs.c.id.in_(run_ids), runs.c.totals.is_not(None))


def oldest_repairable(run_ids: Sequence[UUID]) -> Select[Any]:
    """When the oldest head of these runs was written that has a patch which is not written."""
    return select(func.min(findings.c.head_at)).where(
        findings.c.run_id.in_(run_ids), findings.c.verdict == Verdict.REPAIRABLE.value
    )


def most_frequent(run_ids: Sequence[UUID], field: str, limit: int) -> Select[Any]:
    """The most frequent values of one field of the faults that these runs found, with counts."""
    fault = func.jsonb_array_elements(findings.c.faults).table_valued(
        column("value", findings.c.faults.type), name="fault"
    )
    name = func.left(fault.c.value[field].astext, LONGEST_NAME)
    count = func.count()
    return (
        select(name.label("name"), count.label("number"))
        .select_from(findings.join(fault, true()))
        .where(findings.c.run_id.in_(run_ids))
        .group_by(name)
        .order_by(count.desc(), name)
        .limit(limit)
    )


def runs_by_exit(store_key: str) -> Select[Any]:
    """Runs that have ended, by verb and exit code; of the last one, start, end and throttling."""
    began, ended = extract("epoch", runs.c.started_at), extract("epoch", runs.c.finished_at)
    throttled = func.coalesce(cast(runs.c.totals["throttled_seconds"].astext, Float), 0.0)
    numbers = array([cast(ended, Float), cast(began, Float), throttled])
    return (
        select(
            runs.c.verb,
            runs.c.exit_code,
            func.count().label("number"),
            # Lists are compared by their first numbers first: the one that ended last.
            func.max(numbers).label("last"),
            func.sum(throttled).label("throttled"),
        )
        .where(
            runs.c.store_key == store_key,
            runs.c.finished_at.is_not(None),
            runs.c.exit_code.is_not(None),
        )
        .group_by(runs.c.verb, runs.c.exit_code)
    )


def repairs_counted(store_key: str) -> Select[Any]:
    """How many patches were written, taken back and left open, and what they put in."""
    settled = repairs.c.state == RepairState.SETTLED.value

    def counted(condition: Any) -> Any:
        return func.count(case((condition, 1)))

    def summed(name: str) -> Any:
        number = cast(repairs.c.patch[name].astext, Integer)
        return func.coalesce(func.sum(case((settled, number))), 0)

    return select(
        counted(settled).label("repairs"),
        counted(and_(settled, repairs.c.undone_at.is_not(None))).label("undone"),
        counted(repairs.c.state == RepairState.INTENDED.value).label("open_intents"),
        summed("salvaged").label("salvaged"),
        summed("placeholders").label("placeholders"),
    ).where(repairs.c.store_key == store_key)


def quarantined_counted(store_key: str) -> Select[Any]:
    """How many threads are not repaired again."""
    return select(func.count(distinct(cast(quarantine.c.thread_id, Text)))).where(
        quarantine.c.store_key == store_key, quarantine.c.released_at.is_(None)
    )


def dead_counted(store_key: str) -> Select[Any]:
    """How many events the webhook did not take, and that are sent no more."""
    return select(func.count()).where(outbox.c.store_key == store_key, outbox.c.state == "dead")
