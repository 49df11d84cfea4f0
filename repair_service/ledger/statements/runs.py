"""Statements about runs, and the records their rows become."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Insert, Row, Select, Update, insert, select, tuple_, update

from repair_service.ledger.records.run import NewRun, Run
from repair_service.ledger.tables import runs
from repair_service.ledger.values import clean_optional, clean_text, plain


def insert_run(run: NewRun) -> Insert:
    """Records the start of a run."""
    return insert(runs).values(
        id=run.id,
        verb=run.verb,
        store=clean_text(run.store.address),
        store_key=clean_text(run.store.key),
        selection=plain(run.selection),
        policy=plain(run.policy),
        whole_store=run.whole_store,
        actor=clean_text(run.actor),
        reason=clean_optional(run.reason),
        version=run.version,
        host=clean_text(run.host),
        shard_index=run.shard_index,
        shard_count=run.shard_count,
        started_at=run.started_at or datetime.now(UTC),
    )


def update_progress(run_id: UUID, totals: Any, resume_cursor: Any) -> Update:
    """Records how far a run has come."""
    return (
        update(runs)
        .where(runs.c.id == run_id, runs.c.finished_at.is_(None))
        .values(totals=plain(totals), resume_cursor=plain(resume_cursor))
    )


def finish_run(
    run_id: UUID,
    *,
    totals: Any,
    exit_code: int,
    complete: bool,
    resume_cursor: Any,
    finished_at: datetime | None,
) -> Update:
    """Records the end of a run."""
    return (
        update(runs)
        .where(runs.c.id == run_id)
        .values(
            totals=plain(totals),
            exit_code=exit_code,
            complete=complete,
            resume_cursor=None if complete else plain(resume_cursor),
            finished_at=finished_at or datetime.now(UTC),
        )
    )


def newest_runs(limit: int, before: tuple[datetime, UUID] | None) -> Select[Any]:
    """The newest runs, newest first."""
    statement = select(runs).order_by(runs.c.started_at.desc(), runs.c.id.desc()).limit(limit)
    if before is not None:
        statement = statement.where(tuple_(runs.c.started_at, runs.c.id) < tuple_(*before))
    return statement


def run_by_id(run_id: UUID) -> Select[Any]:
    """One run."""
    return select(runs).where(runs.c.id == run_id)


def last_whole_run(store_key: str, shard_index: int, shard_count: int) -> Select[Any]:
    """The last run that looked at every head of the shard, or of the store."""
    return (
        select(runs)
        .where(
            runs.c.store_key == store_key,
            tuple_(runs.c.shard_count, runs.c.shard_index).in_(
                sorted({(1, 1), (shard_count, shard_index)})
            ),
            runs.c.complete,
            runs.c.whole_store,
        )
        .order_by(runs.c.started_at.desc())
        .limit(1)
    )


def newest_of_verb(
    verb: str, store_key: str, shard_index: int, shard_count: int, limit: int
) -> Select[Any]:
    """The newest runs of a verb over one store and shard that have ended, newest first."""
    return (
        select(runs)
        .where(
            runs.c.verb == verb,
            runs.c.store_key == store_key,
            runs.c.shard_index == shard_index,
            runs.c.shard_count == shard_count,
            runs.c.finished_at.is_not(None),
        )
        .order_by(runs.c.started_at.desc(), runs.c.id.desc())
        .limit(limit)
    )


def run_of(row: Row[Any]) -> Run:
    """The record of a row."""
    return Run(**row._mapping)
