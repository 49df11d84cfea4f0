"""Statements about threads that are not repaired again, and the records their rows become."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Insert,
    Row,
    Select,
    Text,
    Update,
    any_,
    case,
    distinct,
    func,
    literal,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from repair_service.ledger.records.rails import Quarantined
from repair_service.ledger.records.repair import RepairState
from repair_service.ledger.tables import quarantine, repairs
from repair_service.ledger.values import clean_text


def count_repairs(store_key: str, thread_id: str, pattern: str) -> Select[Any]:
    """In how many runs a thread was repaired for a call pattern, since it was last released.

    Runs, not patches: one run may repair several namespaces of a thread. What was taken back does
    not count.
    """
    released = (
        select(func.max(quarantine.c.released_at))
        .where(
            quarantine.c.store_key == store_key,
            quarantine.c.thread_id == thread_id,
            quarantine.c.pattern == pattern,
        )
        .scalar_subquery()
    )
    return select(func.count(distinct(repairs.c.run_id))).where(
        repairs.c.thread_id == thread_id,
        repairs.c.store_key == store_key,
        repairs.c.pattern == pattern,
        repairs.c.state == RepairState.SETTLED.value,
        repairs.c.undone_at.is_(None),
        func.coalesce(repairs.c.recorded_at > released, true()),
    )


def upsert_quarantine(
    store_key: str, thread_id: str, checkpoint_ns: str, pattern: str, count: int
) -> Insert:
    """Puts a thread into quarantine, or keeps it there; a released one goes in anew."""
    statement = insert(quarantine).values(
        store_key=store_key,
        thread_id=thread_id,
        pattern=pattern,
        checkpoint_ns=checkpoint_ns,
        count=count,
    )
    return statement.on_conflict_do_update(
        constraint="quarantine_pkey",
        set_={
            "checkpoint_ns": statement.excluded.checkpoint_ns,
            "count": statement.excluded.count,
            # It keeps the time it went in while it is in.
            "since": case(
                (quarantine.c.released_at.is_(None), quarantine.c.since),
                else_=statement.excluded.since,
            ),
            "released_at": None,
            "released_by": None,
        },
    )


def release(store_key: str, thread_id: str, by: str) -> Update:
    """Takes a thread out of quarantine; its repairs are counted from here on."""
    return (
        update(quarantine)
        .where(
            quarantine.c.store_key == store_key,
            quarantine.c.thread_id == thread_id,
            quarantine.c.released_at.is_(None),
        )
        .values(released_at=func.clock_timestamp(), released_by=clean_text(by))
    )


def quarantined_among(store_key: str, thread_ids: Sequence[str]) -> Select[Any]:
    """Those of the threads that are in quarantine."""
    return (
        select(quarantine.c.thread_id)
        .where(
            quarantine.c.store_key == store_key,
            quarantine.c.thread_id == any_(literal([*thread_ids], ARRAY(Text))),
            quarantine.c.released_at.is_(None),
        )
        .distinct()
    )


def quarantine_page(store_key: str, after: tuple[str, str] | None, limit: int) -> Select[Any]:
    """What is in quarantine, in the order of threads and patterns."""
    place = tuple_(quarantine.c.thread_id, quarantine.c.pattern)
    statement = (
        select(quarantine)
        .where(quarantine.c.store_key == store_key, quarantine.c.released_at.is_(None))
        .order_by(quarantine.c.thread_id, quarantine.c.pattern)
        .limit(limit)
    )
    return statement if after is None else statement.where(place > tuple_(*after))


def quarantined_of(row: Row[Any]) -> Quarantined:
    """The record of a row."""
    return Quarantined(**row._mapping)
