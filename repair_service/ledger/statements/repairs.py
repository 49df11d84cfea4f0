"""Statements about repairs, and the records their rows become."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Insert, Row, Select, Update, exists, func, insert, select, tuple_, update

from repair_service.ledger.records.repair import (
    BelowKey,
    BlobKey,
    NewRepair,
    RemovedMessage,
    Repair,
    RepairedCall,
    RepairState,
)
from repair_service.ledger.tables import removed_messages, repairs
from repair_service.ledger.values import clean_optional, clean_text, plain

Spot = tuple[str, UUID]
"""The checkpoint that a repair wrote, and the repair's id: where a page of repairs ended."""


def insert_repair(repair: NewRepair, state: RepairState) -> Insert:
    """Records one patch."""
    return insert(repairs).values(
        id=repair.id,
        run_id=repair.run_id,
        store_key=clean_text(repair.store_key),
        thread_id=repair.thread_id,
        checkpoint_ns=repair.checkpoint_ns,
        from_checkpoint_id=repair.from_checkpoint_id,
        to_checkpoint_id=repair.to_checkpoint_id,
        state=state.value,
        pattern=repair.pattern,
        patch=plain(
            {
                "resume": repair.resume,
                "route": repair.route,
                "route_source": repair.route_source,
                "salvaged": repair.salvaged,
                "placeholders": repair.placeholders,
                "written": repair.written,
                "below": repair.below,
            }
        ),
        calls=plain(repair.calls),
        blobs=plain(repair.blobs),
        writes_digest=repair.writes_digest,
        settled_at=func.clock_timestamp() if state is RepairState.SETTLED else None,
    )


def insert_removed(repair_id: UUID, position: int, removed: RemovedMessage) -> Insert:
    """Keeps one message that a patch took out."""
    return insert(removed_messages).values(
        repair_id=repair_id,
        position=position,
        channel=clean_text(removed.channel),
        message_index=removed.message_index,
        tool_call_id=clean_optional(removed.tool_call_id),
        type=removed.type,
        message=removed.message,
    )


def settle_intent(repair_id: UUID) -> Update:
    """Says of an intent that it was written, unless another repair is known to have written that
    very checkpoint."""
    other = repairs.alias("other")
    written_by_other = exists().where(
        other.c.thread_id == repairs.c.thread_id,
        other.c.to_checkpoint_id == repairs.c.to_checkpoint_id,
        other.c.checkpoint_ns == repairs.c.checkpoint_ns,
        other.c.store_key == repairs.c.store_key,
        other.c.state == RepairState.SETTLED.value,
        other.c.undone_at.is_(None),
    )
    return (
        update(repairs)
        .where(repairs.c.id == repair_id, repairs.c.state == RepairState.INTENDED.value)
        .where(~written_by_other)
        .values(state=RepairState.SETTLED.value, settled_at=func.clock_timestamp())
    )


def abandon_intent(repair_id: UUID) -> Update:
    """Says of an intent that it never was written."""
    return (
        update(repairs)
        .where(repairs.c.id == repair_id, repairs.c.state == RepairState.INTENDED.value)
        .values(state=RepairState.ABANDONED.value)
    )


def newest_intents_first(repair_ids: Sequence[UUID]) -> Select[Any]:
    """Those of the repairs that are still intents."""
    return (
        select(repairs.c.id)
        .where(repairs.c.id.in_(repair_ids), repairs.c.state == RepairState.INTENDED.value)
        .order_by(repairs.c.recorded_at.desc())
    )


def open_intents(store_key: str | None, before: datetime | None, limit: int) -> Select[Any]:
    """Intents that nobody has settled, oldest first."""
    statement = (
        select(repairs)
        .where(repairs.c.state == RepairState.INTENDED.value)
        .order_by(repairs.c.recorded_at)
        .limit(limit)
    )
    if store_key is not None:
        statement = statement.where(repairs.c.store_key == store_key)
    return statement if before is None else statement.where(repairs.c.recorded_at < before)


def repairs_page(
    *,
    store_key: str | None = None,
    thread_id: str | None = None,
    run_id: UUID | None = None,
    standing: bool = False,
    before: Spot | None = None,
    limit: int,
) -> Select[Any]:
    """Repairs, newest checkpoint first: the order in which they can be taken back."""
    statement = (
        select(repairs)
        .order_by(repairs.c.to_checkpoint_id.desc(), repairs.c.id.desc())
        .limit(limit)
    )
    if store_key is not None:
        statement = statement.where(repairs.c.store_key == store_key)
    if thread_id is not None:
        statement = statement.where(repairs.c.thread_id == thread_id)
    if run_id is not None:
        statement = statement.where(repairs.c.run_id == run_id)
    if standing:
        statement = statement.where(
            repairs.c.state == RepairState.SETTLED.value, repairs.c.undone_at.is_(None)
        )
    if before is not None:
        statement = statement.where(
            tuple_(repairs.c.to_checkpoint_id, repairs.c.id) < tuple_(*before)
        )
    return statement


def mark_undone(repair: Repair, by: str, run_id: UUID | None) -> Update:
    """Says that the checkpoint a repair wrote was taken back."""
    return (
        update(repairs)
        .where(
            repairs.c.thread_id == repair.thread_id,
            repairs.c.to_checkpoint_id == repair.to_checkpoint_id,
            repairs.c.checkpoint_ns == repair.checkpoint_ns,
            repairs.c.store_key == repair.store_key,
            repairs.c.state == RepairState.SETTLED.value,
            repairs.c.undone_at.is_(None),
        )
        .values(undone_at=func.clock_timestamp(), undone_by=clean_text(by), undone_run=run_id)
    )


def removed_of(repair_id: UUID) -> Select[Any]:
    """The messages that one repair took out, in the order of the list."""
    return (
        select(removed_messages)
        .where(removed_messages.c.repair_id == repair_id)
        .order_by(removed_messages.c.position)
    )


def repair_of(row: Row[Any]) -> Repair:
    """The record of a row."""
    patch: Mapping[str, Any] = row.patch
    return Repair(
        id=row.id,
        run_id=row.run_id,
        store_key=row.store_key,
        thread_id=row.thread_id,
        checkpoint_ns=row.checkpoint_ns,
        from_checkpoint_id=row.from_checkpoint_id,
        to_checkpoint_id=row.to_checkpoint_id,
        state=RepairState(row.state),
        writes_digest=row.writes_digest,
        pattern=row.pattern,
        blobs=tuple(BlobKey(**blob) for blob in row.blobs),
        calls=tuple(RepairedCall(**call) for call in row.calls),
        resume=patch["resume"],
        route=tuple(patch["route"]),
        route_source=patch["route_source"],
        salvaged=patch["salvaged"],
        placeholders=patch["placeholders"],
        # Rows of releases that knew no migrations have neither.
        written=patch.get("written"),
        below=tuple(
            BelowKey(
                checkpoint_ns=below["checkpoint_ns"],
                checkpoint_id=below["checkpoint_id"],
                blobs=tuple(BlobKey(**blob) for blob in below["blobs"]),
                written=below["written"],
            )
            for below in patch.get("below", ())
        ),
        recorded_at=row.recorded_at,
        settled_at=row.settled_at,
        undone_at=row.undone_at,
        undone_by=row.undone_by,
        undone_run=row.undone_run,
    )


def removed_message_of(row: Row[Any]) -> RemovedMessage:
    """The record of a row."""
    return RemovedMessage(
        channel=row.channel,
        message_index=row.message_index,
        tool_call_id=row.tool_call_id,
        type=row.type,
        message=bytes(row.message),
    )
