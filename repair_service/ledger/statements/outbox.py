"""Statements about the outbox, and the records their rows become."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    Delete,
    Insert,
    Row,
    Select,
    Update,
    case,
    cast,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import INTERVAL, insert
from sqlalchemy.sql.dml import ReturningUpdate

from repair_service.ledger.records.event import DeadLetter, Event, EventType, OutboxCounts
from repair_service.ledger.records.repair import NewRepair, Repair
from repair_service.ledger.tables import outbox, repairs, runs
from repair_service.ledger.values import clean_text

_NOW = func.clock_timestamp()


def insert_event(kind: EventType, repair: NewRepair | Repair) -> Insert:
    """Adds one event, due at once; nothing where it is there already."""
    return (
        insert(outbox)
        .values(
            id=uuid4(),
            type=kind,
            repair_id=repair.id,
            store_key=clean_text(repair.store_key),
            thread_id=repair.thread_id,
        )
        .on_conflict_do_nothing(index_elements=["repair_id", "type"])
    )


def insert_event_of_settled(repair_id: UUID) -> Insert:
    """Adds the event of a repair that was settled."""
    settled = select(
        cast(uuid4(), outbox.c.id.type),
        cast("thread.repaired", outbox.c.type.type),
        repairs.c.id,
        repairs.c.store_key,
        repairs.c.thread_id,
    ).where(repairs.c.id == repair_id)
    return (
        insert(outbox)
        .from_select(["id", "type", "repair_id", "store_key", "thread_id"], settled)
        .on_conflict_do_nothing(index_elements=["repair_id", "type"])
    )


def claim_due(claim: UUID, lasts: timedelta, limit: int) -> ReturningUpdate[Any]:
    """Claims events that are due: of each thread the first that is not sent yet, and no other.

    Nobody else claims them until the claim ends. One that others hold at the moment is passed over.
    """
    earlier = outbox.alias("earlier")
    first_of_thread = ~exists().where(
        earlier.c.thread_id == outbox.c.thread_id,
        earlier.c.store_key == outbox.c.store_key,
        earlier.c.state == "due",
        earlier.c.position < outbox.c.position,
    )
    # A CTE is run once; a sub-query with a LIMIT might be run anew for each row.
    due = (
        select(outbox.c.id)
        .where(
            outbox.c.state == "due",
            outbox.c.due_at <= _NOW,
            or_(outbox.c.claimed_until.is_(None), outbox.c.claimed_until <= _NOW),
            first_of_thread,
        )
        .order_by(outbox.c.due_at, outbox.c.position)
        .limit(limit)
        .with_for_update(skip_locked=True, of=outbox)
        .cte("picked")
    )
    return (
        update(outbox)
        .where(outbox.c.id == due.c.id)
        .values(
            claim=claim,
            claimed_until=_NOW + cast(lasts, INTERVAL),
            attempts=outbox.c.attempts + 1,
        )
        .returning(outbox.c.id)
    )


def with_repairs(event_ids: Sequence[UUID]) -> Select[Any]:
    """Events with what they tell, in the order in which they came about."""
    undone = outbox.c.type == "thread.repair_undone"
    return (
        select(
            outbox.c.id,
            outbox.c.type,
            outbox.c.position,
            outbox.c.attempts,
            outbox.c.recorded_at,
            runs.c.store,
            outbox.c.store_key,
            outbox.c.thread_id,
            repairs.c.checkpoint_ns,
            case((undone, repairs.c.from_checkpoint_id), else_=repairs.c.to_checkpoint_id).label(
                "checkpoint_id"
            ),
            case((undone, repairs.c.undone_run), else_=repairs.c.run_id).label("run_id"),
            outbox.c.repair_id,
            repairs.c.patch,
        )
        .join(repairs, repairs.c.id == outbox.c.repair_id)
        .join(runs, runs.c.id == repairs.c.run_id)
        .where(outbox.c.id.in_(event_ids))
        .order_by(outbox.c.position)
    )


def mark_sent(event_id: UUID, claim: UUID) -> Update:
    """Says that an event was taken, unless somebody else has claimed it since."""
    return _of_claim(event_id, claim).values(state="sent", ended_at=_NOW, problem=None)


def mark_failed(event_id: UUID, claim: UUID, problem: str, wait: timedelta | None) -> Update:
    """Says that an attempt failed: to be sent again after a while, or given up."""
    if wait is None:
        return _of_claim(event_id, claim).values(state="dead", ended_at=_NOW, problem=problem)
    return _of_claim(event_id, claim).values(due_at=_NOW + cast(wait, INTERVAL), problem=problem)


def _of_claim(event_id: UUID, claim: UUID) -> Update:
    return (
        update(outbox)
        .where(outbox.c.id == event_id, outbox.c.claim == claim, outbox.c.state == "due")
        .values(claim=None, claimed_until=None)
    )


def retry_dead(event_ids: Sequence[UUID]) -> Update:
    """Makes events that were given up due again, from the first attempt; all of them if none is
    named."""
    statement = update(outbox).where(outbox.c.state == "dead")
    if event_ids:
        statement = statement.where(outbox.c.id.in_(event_ids))
    return statement.values(state="due", attempts=0, due_at=_NOW, ended_at=None)


def dead_letters(limit: int) -> Select[Any]:
    """Events that were given up, the latest first."""
    return (
        select(outbox)
        .where(outbox.c.state == "dead")
        .order_by(outbox.c.ended_at.desc(), outbox.c.position.desc())
        .limit(limit)
    )


def counts() -> Select[Any]:
    """How many events there are in each state."""
    return select(
        outbox.c.state, func.count().label("number"), func.min(outbox.c.recorded_at).label("oldest")
    ).group_by(outbox.c.state)


def delete_ended(state: str, age: timedelta) -> Delete:
    """Lets go of events that ended long ago."""
    return delete(outbox).where(
        outbox.c.state == state, outbox.c.ended_at < _NOW - cast(age, INTERVAL)
    )


def event_of(row: Row[Any]) -> Event:
    """The record of a row."""
    return Event(
        id=row.id,
        type=row.type,
        position=row.position,
        attempts=row.attempts,
        recorded_at=row.recorded_at,
        store=row.store,
        store_key=row.store_key,
        thread_id=row.thread_id,
        checkpoint_ns=row.checkpoint_ns,
        checkpoint_id=row.checkpoint_id,
        run_id=row.run_id,
        repair_id=row.repair_id,
        resume=row.patch["resume"],
        salvaged=row.patch["salvaged"],
        placeholders=row.patch["placeholders"],
    )


def dead_letter_of(row: Row[Any]) -> DeadLetter:
    """The record of a row."""
    return DeadLetter(
        id=row.id,
        type=row.type,
        thread_id=row.thread_id,
        repair_id=row.repair_id,
        attempts=row.attempts,
        recorded_at=row.recorded_at,
        ended_at=row.ended_at,
        problem=row.problem,
    )


def counts_of(rows: Sequence[Row[Any]]) -> OutboxCounts:
    """The record of the rows of `counts`."""
    found: dict[str, tuple[int, datetime]] = {row.state: (row.number, row.oldest) for row in rows}
    due, oldest = found.get("due", (0, None))
    dead, _ = found.get("dead", (0, None))
    sent, _ = found.get("sent", (0, None))
    return OutboxCounts(due=due, dead=dead, sent=sent, oldest_due_at=oldest)
