"""Saved plans: what a sweep would write, pinned so that it can be read, approved and applied.

A plan holds no content of a message. It names for each head what was diagnosed and decided, and a
digest of the patch. Applying it judges each head again by the plan's own policy and time, and
writes only where everything is as the plan says.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import msgspec

from repair_service.checkpoint.digest import writes_digest
from repair_service.checkpoint.rows import BlobRow, CheckpointRow, ThreadRows, WriteRow
from repair_service.errors import UsageError
from repair_service.repair.diagnosis import Diagnosis, Patch
from repair_service.repair.verdict import Fault, Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.fleet import FleetSample
from repair_service.sweep.judging import judge_of
from repair_service.sweep.record import Record
from repair_service.sweep.write import held_back, is_held_back, write_patch

PLAN_VERSION = 1

THREADS_AT_ONCE = 50
"""Threads whose whole rows are held at once."""


class PlannedRepair(msgspec.Struct, frozen=True):
    """One head as it was diagnosed, and what is to be written behind it.

    Attributes:
        thread_id, checkpoint_ns, checkpoint_id: The head.
        writes_digest: Digest of its pending writes.
        reason, faults, resume, route, route_source: The decision, as in Diagnosis.
        new_checkpoint_id: The patch's checkpoint.
        patch_digest: Digest of the rows to be written.
    """

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    writes_digest: str
    reason: str
    faults: tuple[Fault, ...]
    resume: str | None
    route: tuple[str, ...]
    route_source: str | None
    new_checkpoint_id: str
    patch_digest: str

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> "PlannedRepair":
        """What a plan says of a repairable diagnosis.

        Raises:
            ValueError: It has no patch.
        """
        patch = diagnosis.patch
        if patch is None:
            raise ValueError("only a diagnosis with a patch can be planned")
        return cls(
            thread_id=diagnosis.thread_id,
            checkpoint_ns=diagnosis.checkpoint_ns,
            checkpoint_id=diagnosis.checkpoint_id,
            writes_digest=patch.writes_digest,
            reason=diagnosis.reason,
            faults=diagnosis.faults,
            resume=diagnosis.resume,
            route=diagnosis.route,
            route_source=diagnosis.route_source,
            new_checkpoint_id=patch.row.checkpoint_id,
            patch_digest=patch_digest(patch),
        )


class PlanHeading(msgspec.Struct, frozen=True):
    """What a plan says of itself.

    Attributes:
        id: The plan's id.
        made_at: When it was made; the time by which it judges again.
        version: The release that made it.
        store: The store's address without a password.
        schema: The schema of the checkpoint tables.
        policy: What the operator allowed and declared.
        active_query: The operator's query for the threads that run now.
    """

    id: UUID
    made_at: datetime
    version: str
    store: str
    schema: str
    policy: Policy
    active_query: str | None = None


class Plan(msgspec.Struct, frozen=True):
    """A saved plan."""

    plan_version: int
    heading: PlanHeading
    items: tuple[PlannedRepair, ...]


def write_plan(path: Path, heading: PlanHeading, items: Iterable[PlannedRepair]) -> int:
    """Write a plan, an item a line; returns how many items it has.

    Raises:
        UsageError: The file cannot be written.
    """
    count = 0
    try:
        with path.open("w", encoding="utf-8") as out:
            about = msgspec.json.encode(heading).decode()
            out.write(f'{{"plan_version": {PLAN_VERSION},\n "heading": {about},\n "items": [')
            for item in items:
                out.write("\n  " if not count else ",\n  ")
                out.write(msgspec.json.encode(item).decode())
                count += 1
            out.write("\n ]}\n")
    except OSError as error:
        raise UsageError(f"The plan {path} cannot be written: {error.strerror}.") from None
    return count


def read_plan(path: Path) -> Plan:
    """Read a plan.

    Raises:
        UsageError: The file cannot be read, is no plan, or one of another form.
    """
    if path.is_char_device() or path.is_block_device():
        raise UsageError(f"{path} is a device and no plan; make one with plan --out FILE.")
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    except OSError as error:
        raise UsageError(f"The plan {path} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UsageError(f"{path} is no plan; make one with plan --out FILE.") from None
    if plan.plan_version != PLAN_VERSION:
        raise UsageError(
            f"{path} is a plan of form {plan.plan_version}, and this release reads form "
            f"{PLAN_VERSION}; make it anew with plan --out FILE."
        )
    return plan


def apply_plan(
    store: Store, plan: Plan, record: Record, wait: Callable[[], None] = lambda: None
) -> Iterator[Diagnosis]:
    """Write what a plan says, and nothing else.

    Args:
        store: The store, open for writing.
        plan: The plan.
        record: Takes findings and repairs.
        wait: Called before each item; waits where the server has other things to do.

    Yields:
        For each item the outcome: `repaired`, `failed`, or `drifted` with the part that is not as
        the plan says; `manual` where its thread is in quarantine by now.

    Raises:
        UsageError: The plan's query for the threads that run failed.
        StoreError, LedgerError: One of the two cannot be used; what was written stays.
    """
    fleet, heading = FleetSample(store), plan.heading
    if heading.active_query:
        store.active_threads(heading.active_query, ())
    for start in range(0, len(plan.items), THREADS_AT_ONCE):
        some = plan.items[start : start + THREADS_AT_ONCE]
        ids = list({item.thread_id for item in some})
        threads, quarantined = store.threads(ids), record.quarantined(ids)
        for item in some:
            wait()
            diagnosis = _as_planned(item, threads, heading, fleet)
            if is_held_back(diagnosis, heading.policy, record, quarantined):
                diagnosis = held_back(diagnosis)
            outcome = write_patch(
                store, diagnosis, heading.policy, record, active_query=heading.active_query
            )
            record.found(outcome)
            yield outcome


def already_applied(diagnosis: Diagnosis) -> bool:
    """Whether an item drifted because this very patch is there."""
    return diagnosis.verdict is Verdict.DRIFTED and diagnosis.reason == APPLIED


APPLIED = "This patch is there already; nothing was written."


def patch_digest(patch: Patch) -> str:
    """A digest of the rows of a patch, their time aside.

    Returns:
        64 hex digits.
    """
    hashed = hashlib.sha256()
    _hash_rows(hashed, patch.row, patch.blobs, patch.writes)
    for carried in patch.below:
        _hash_rows(hashed, carried.row, carried.blobs, carried.writes)
    return hashed.hexdigest()


def _hash_rows(
    hashed: "hashlib._Hash",
    row: CheckpointRow,
    blobs: Iterable[BlobRow],
    writes: Sequence[WriteRow],
) -> None:
    checkpoint = {key: value for key, value in row.checkpoint.items() if key != "ts"}
    for part in (row.parent_checkpoint_id, checkpoint, row.metadata):
        hashed.update(json.dumps(part, sort_keys=True, default=dict).encode() + b"\0")
    for blob in sorted(blobs, key=lambda blob: blob.channel):
        hashed.update(f"{blob.channel}\0{blob.version}\0{blob.type}\0".encode())
        hashed.update(hashlib.sha256(blob.blob or b"").digest())
    if writes:
        hashed.update(writes_digest(writes).encode())


def _as_planned(
    item: PlannedRepair,
    threads: Mapping[str, ThreadRows],
    heading: PlanHeading,
    fleet: FleetSample,
) -> Diagnosis:
    """The diagnosis of an item, with its patch where everything is as planned, else `drifted`."""
    thread = threads.get(item.thread_id)
    rows = thread.heads.get(item.checkpoint_ns) if thread else None
    if thread is None or rows is None:
        return _drifted(item, "The thread is not in the store any more.")
    if rows.row.checkpoint_id != item.checkpoint_id:
        ours = rows.row.checkpoint_id == item.new_checkpoint_id
        return _drifted(item, APPLIED if ours else "The thread has a newer checkpoint.")
    made = heading.made_at.astimezone(UTC).timestamp()
    diagnosis = judge_of(heading.policy).diagnose(thread, item.checkpoint_ns, made, fleet)
    if diagnosis.patch is None:
        return _drifted(item, f"The head is {diagnosis.verdict.value} now: {diagnosis.reason}")
    now = PlannedRepair.of(diagnosis)
    if now != item:
        return _drifted(item, f"Not as planned: {', '.join(_differences(item, now))}.")
    return diagnosis


def _differences(planned: PlannedRepair, now: PlannedRepair) -> list[str]:
    names = {
        "writes_digest": "the head's pending writes",
        "faults": "the faults",
        "resume": "where it goes on",
        "route": "the next nodes",
        "route_source": "how the next nodes are known",
        "new_checkpoint_id": "the new checkpoint's id",
        "patch_digest": "the rows to be written",
    }
    changed = [text for name, text in names.items() if getattr(planned, name) != getattr(now, name)]
    return changed or ["the reason"]


def _drifted(item: PlannedRepair, reason: str) -> Diagnosis:
    return Diagnosis(
        thread_id=item.thread_id,
        checkpoint_ns=item.checkpoint_ns,
        checkpoint_id=item.checkpoint_id,
        verdict=Verdict.DRIFTED,
        reason=reason,
        faults=tuple(replace(fault, mend="none") for fault in item.faults),
    )
