"""A repair: one patch, before it is written and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal
from uuid import UUID, uuid4

from repair_service.checkpoint.digest import writes_digest
from repair_service.checkpoint.rows import WriteRow
from repair_service.ledger.pattern import pattern_of
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Resume, RouteSource

Outcome = Literal["salvaged", "placeholder", "moved", "removed"]

OUTCOMES: Mapping[str, Outcome] = {
    "salvage": "salvaged",
    "placeholder": "placeholder",
    "move": "moved",
    "remove": "removed",
}
"""What became of a call, by the mend of its fault."""


@dataclass(frozen=True, slots=True)
class RepairedCall:
    """What became of one call, or of one result that had none."""

    channel: str
    message_index: int
    tool_call_id: str | None
    tool_name: str | None
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class BlobKey:
    """The rest of the key of a row that a patch wrote to `checkpoint_blobs`."""

    channel: str
    version: str


@dataclass(frozen=True, slots=True)
class BelowKey:
    """A checkpoint that went with a patch into another namespace, the first one there.

    Attributes:
        checkpoint_ns, checkpoint_id: Where it was written.
        blobs: What it wrote to `checkpoint_blobs`.
        written: Digest of its rows in `checkpoint_writes`; None where it wrote none.
    """

    checkpoint_ns: str
    checkpoint_id: str
    blobs: tuple[BlobKey, ...]
    written: str | None


@dataclass(frozen=True, slots=True)
class RemovedMessage:
    """A message that a patch took out of a list; the only content that the ledger keeps.

    Attributes:
        channel: The transcript's channel.
        message_index: Where it stood in the list as it was found.
        tool_call_id: The call that it said it answers.
        type: The serialization type as the store writes it (`msgpack`, `msgpack+aes`).
        message: Its bytes; encrypted where the store's blobs are.
    """

    channel: str
    message_index: int
    tool_call_id: str | None
    type: str
    message: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class NewRepair:
    """One patch as it is about to be written.

    Attributes:
        store_key: Which store (StoreIdentity.key).
        pattern: The call pattern of its faults, for the quarantine.
        blobs: What it writes to `checkpoint_blobs`.
        calls: What becomes of each call.
        removed: The messages that it takes out.
        written: Digest of what it writes to `checkpoint_writes`; None where it writes none.
        below: What goes with it into other namespaces.
    """

    run_id: UUID
    store_key: str
    thread_id: str
    checkpoint_ns: str
    from_checkpoint_id: str
    to_checkpoint_id: str
    writes_digest: str
    pattern: str
    blobs: tuple[BlobKey, ...] = ()
    calls: tuple[RepairedCall, ...] = ()
    removed: tuple[RemovedMessage, ...] = ()
    resume: Resume | None = None
    route: tuple[str, ...] = ()
    route_source: RouteSource | None = None
    salvaged: int = 0
    placeholders: int = 0
    written: str | None = None
    below: tuple[BelowKey, ...] = ()
    id: UUID = field(default_factory=uuid4)

    @classmethod
    def of(
        cls,
        diagnosis: Diagnosis,
        run_id: UUID,
        store_key: str,
        *,
        removed: tuple[RemovedMessage, ...] = (),
    ) -> "NewRepair":
        """The ledger's side of a repairable diagnosis.

        Args:
            diagnosis: One with a patch.
            run_id: The run that writes it.
            store_key: The store it is written to.
            removed: The messages that the patch takes out.

        Raises:
            ValueError: It has no patch.
        """
        patch = diagnosis.patch
        if patch is None:
            raise ValueError("only a diagnosis with a patch is a repair")
        return cls(
            run_id=run_id,
            store_key=store_key,
            thread_id=diagnosis.thread_id,
            checkpoint_ns=diagnosis.checkpoint_ns,
            from_checkpoint_id=patch.head_id,
            to_checkpoint_id=patch.row.checkpoint_id,
            writes_digest=patch.writes_digest,
            pattern=pattern_of(diagnosis.faults),
            blobs=tuple(BlobKey(blob.channel, blob.version) for blob in patch.blobs),
            calls=tuple(
                RepairedCall(
                    fault.channel,
                    fault.message_index,
                    fault.tool_call_id,
                    fault.tool_name,
                    OUTCOMES[fault.mend],
                )
                for fault in diagnosis.faults
                if fault.mend in OUTCOMES and fault.message_index is not None
            ),
            removed=removed,
            resume=diagnosis.resume,
            route=diagnosis.route,
            route_source=diagnosis.route_source,
            salvaged=patch.salvaged,
            placeholders=patch.placeholders,
            written=_written(patch.writes),
            below=tuple(
                BelowKey(
                    carried.row.checkpoint_ns,
                    carried.row.checkpoint_id,
                    tuple(BlobKey(blob.channel, blob.version) for blob in carried.blobs),
                    _written(carried.writes),
                )
                for carried in patch.below
            ),
        )


def _written(writes: Sequence[WriteRow]) -> str | None:
    ordered = sorted(writes, key=lambda write: (write.task_path, write.task_id, write.idx))
    return writes_digest(ordered) if ordered else None


class RepairState(StrEnum):
    """What is known of a patch."""

    INTENDED = "intended"
    """Recorded, and not known to be in the store: a crash, or a write that goes on now."""
    SETTLED = "settled"
    """It was written."""
    ABANDONED = "abandoned"
    """It never was written."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One patch as it stands in the ledger; the fields of NewRepair without the removed messages.

    Attributes:
        undone_at: When it was taken back, None while it stands.
        undone_by, undone_run: Who did, and in which run.
    """

    id: UUID
    run_id: UUID
    store_key: str
    thread_id: str
    checkpoint_ns: str
    from_checkpoint_id: str
    to_checkpoint_id: str
    state: RepairState
    writes_digest: str
    pattern: str
    blobs: tuple[BlobKey, ...]
    calls: tuple[RepairedCall, ...]
    resume: Resume | None
    route: tuple[str, ...]
    route_source: RouteSource | None
    salvaged: int
    placeholders: int
    written: str | None
    below: tuple[BelowKey, ...]
    recorded_at: datetime
    settled_at: datetime | None
    undone_at: datetime | None
    undone_by: str | None
    undone_run: UUID | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of intents.

    Attributes:
        settled: Those that stand now.
        abandoned: Those that another settled repair had written in the meantime.
    """

    settled: tuple[UUID, ...]
    abandoned: tuple[UUID, ...]
