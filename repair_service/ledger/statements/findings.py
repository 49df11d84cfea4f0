"""Statements about findings, and the records their rows become."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Delete,
    Insert,
    Row,
    Select,
    delete,
    exists,
    func,
    select,
    true,
    tuple_,
    union,
)
from sqlalchemy.dialects.postgresql import insert

from repair_service.ledger.records.finding import Finding
from repair_service.ledger.tables import findings, repairs, runs
from repair_service.ledger.values import clean_optional, clean_text, plain
from repair_service.repair.verdict import Fault, Verdict
from repair_service.transcript.fault import FaultKind

Place = tuple[str, str]
"""A thread and a namespace of it."""


def upsert_finding() -> Insert:
    """Records one finding; a head that is judged again in the same run has its later verdict."""
    statement = insert(findings)
    key = {"run_id", "thread_id", "checkpoint_ns"}
    return statement.on_conflict_do_update(
        constraint="findings_pkey",
        set_={name: value for name, value in statement.excluded.items() if name not in key},
    )


def finding_values(run_id: UUID, finding: Finding) -> dict[str, Any]:
    """The values of one row."""
    return {
        "run_id": run_id,
        "thread_id": finding.thread_id,
        "checkpoint_ns": finding.checkpoint_ns,
        "checkpoint_id": finding.checkpoint_id,
        "verdict": finding.verdict.value,
        "reason": clean_text(finding.reason),
        "channel": clean_optional(finding.channel),
        "faults": plain(finding.faults),
        "evidence": plain(
            {
                "idle_seconds": finding.idle_seconds,
                "pending": finding.pending,
                "interrupts": finding.interrupts,
                "resume": finding.resume,
                "route": finding.route,
                "route_source": finding.route_source,
            }
        ),
        "new_checkpoint_id": finding.new_checkpoint_id,
        "head_at": finding.head_at,
    }


def findings_page(run_id: UUID, after: Place | None, limit: int) -> Select[Any]:
    """A run's findings in the order of threads and namespaces."""
    place = tuple_(findings.c.thread_id, findings.c.checkpoint_ns)
    statement = (
        select(findings)
        .where(findings.c.run_id == run_id)
        .order_by(findings.c.thread_id, findings.c.checkpoint_ns)
        .limit(limit)
    )
    return statement if after is None else statement.where(place > tuple_(*after))


def not_final_page(
    run_ids: Sequence[UUID],
    store_key: str,
    undone_since: datetime,
    repaired_since: datetime,
    after: Place | None,
    limit: int,
) -> Select[Any]:
    """The places that must be looked at again though their heads are old.

    They are those that some runs did not find healthy, those where a patch was taken back, and
    those that were repaired not long ago: the real result may come late.
    """
    found = (
        select(findings.c.thread_id, findings.c.checkpoint_ns)
        .where(findings.c.run_id.in_(run_ids))
        .distinct()
    )
    undone = (
        select(repairs.c.thread_id, repairs.c.checkpoint_ns)
        .where(repairs.c.store_key == store_key, repairs.c.undone_at >= undone_since)
        .distinct()
    )
    # By their runs, for which there are indexes.
    repaired = (
        select(repairs.c.thread_id, repairs.c.checkpoint_ns)
        .join(runs, runs.c.id == repairs.c.run_id)
        .where(runs.c.started_at >= repaired_since, repairs.c.store_key == store_key)
        .distinct()
    )
    # Each part is cut to a page of its own, for what comes behind it is not to be read each time.
    parts = [
        (part if after is None else part.where(tuple_(*part.selected_columns) > tuple_(*after)))
        .order_by(*part.selected_columns)
        .limit(limit)
        for part in (found, undone, repaired)
    ]
    both = union(*parts).subquery()
    return (
        select(both.c.thread_id, both.c.checkpoint_ns)
        .order_by(both.c.thread_id, both.c.checkpoint_ns)
        .limit(limit)
    )


def forget_findings(before: datetime) -> Delete:
    """Lets go of the findings of old runs, but for those that the next incremental sweep needs.

    Those of a run that was cut short are kept until a later one has come to the end.
    """
    old = runs.alias("old")
    newer = runs.alias("newer")
    superseded = (
        exists()
        .where(
            newer.c.store_key == old.c.store_key,
            newer.c.shard_count == old.c.shard_count,
            newer.c.shard_index == old.c.shard_index,
            newer.c.complete,
            newer.c.whole_store,
            newer.c.started_at > old.c.started_at,
            # A run that went on where the old one was cut short needs what that one found.
            func.coalesce(
                ~newer.c.selection["earlier"]["runs"].contains(func.to_jsonb(old.c.id)), true()
            ),
        )
        .correlate(old)
    )
    needless = select(old.c.id).where(old.c.started_at < before, ~old.c.whole_store | superseded)
    return delete(findings).where(findings.c.run_id.in_(needless))


def finding_of(row: Row[Any]) -> Finding:
    """The record of a row."""
    evidence: Mapping[str, Any] = row.evidence
    return Finding(
        thread_id=row.thread_id,
        checkpoint_ns=row.checkpoint_ns,
        checkpoint_id=row.checkpoint_id,
        verdict=Verdict(row.verdict),
        reason=row.reason,
        channel=row.channel,
        faults=tuple(Fault(**{**fault, "kind": FaultKind(fault["kind"])}) for fault in row.faults),
        resume=evidence["resume"],
        route=tuple(evidence["route"]),
        route_source=evidence["route_source"],
        idle_seconds=evidence["idle_seconds"],
        new_checkpoint_id=row.new_checkpoint_id,
        pending=tuple(evidence["pending"]),
        interrupts=evidence["interrupts"],
        head_at=row.head_at,
    )
