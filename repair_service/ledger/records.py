"""What the ledger takes and gives: plain values, made without a database library.

Nothing here holds content of a message, but for `RemovedMessage`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID, uuid4

from repair_service.checkpoint.identifiers import timestamp
from repair_service.ledger.pattern import pattern_of
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Fault, Resume, RouteSource, Verdict

Outcome = Literal["salvaged", "placeholder", "moved", "removed"]

OUTCOMES: Mapping[str, Outcome] = {
    "salvage": "salvaged",
    "placeholder": "placeholder",
    "move": "moved",
    "remove": "removed",
}
"""What became of a call, by the mend of its fault."""


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """Which store the ledger speaks of.

    Attributes:
        address: Database, host, port and schema, without a password: for people.
        key: The same store has the same key in every run: for the ledger.
        shared: Whether the ledger's tables are in the store's own database, so that a patch and its
            row can be written in one transaction.
    """

    address: str
    key: str
    shared: bool


@dataclass(frozen=True, slots=True)
class NewRun:
    """What is known of a run when it starts.

    Attributes:
        verb: The verb.
        store: The store it looks at.
        selection, policy: What was asked and allowed: values that JSON can say, dataclasses,
            mappings, sets and times.
        whole_store: Whether the selection leaves no head out (an incremental sweep leaves none
            out either), or none of the shard.
        actor: Who runs it.
        version: The release.
        host: The machine.
        reason: Why, in the operator's words.
        shard_index, shard_count: Which part, from 1, of how many.
    """

    verb: str
    store: StoreIdentity
    selection: Any
    policy: Any
    whole_store: bool
    actor: str
    version: str
    host: str
    reason: str | None = None
    shard_index: int = 1
    shard_count: int = 1
    started_at: datetime | None = None
    id: UUID = field(default_factory=uuid4)


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it stands in the ledger.

    Attributes:
        finished_at: None while it goes on, and for ever where the process died.
        complete: Whether every head of the selection was looked at.
        totals: What was counted; None where the run never said.
        resume_cursor: Where it would go on; None once it is complete.
    """

    id: UUID
    verb: str
    store: str
    store_key: str
    selection: Mapping[str, Any]
    policy: Mapping[str, Any]
    whole_store: bool
    actor: str
    reason: str | None
    version: str
    host: str
    shard_index: int
    shard_count: int
    started_at: datetime
    finished_at: datetime | None
    complete: bool
    totals: Mapping[str, Any] | None
    exit_code: int | None
    resume_cursor: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One head that was not healthy, and the evidence for its verdict.

    Attributes:
        thread_id, checkpoint_ns, checkpoint_id: The head.
        verdict, reason, channel, faults, resume, route, route_source, idle_seconds: As in
            Diagnosis.
        new_checkpoint_id: The patch's checkpoint, planned or written.
        pending: The nodes of its pending tasks.
        interrupts: How many interrupts wait for an answer.
        head_at: When the head was written, where its id says it.
    """

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    verdict: Verdict
    reason: str
    channel: str | None = None
    faults: tuple[Fault, ...] = ()
    resume: Resume | None = None
    route: tuple[str, ...] = ()
    route_source: RouteSource | None = None
    idle_seconds: float | None = None
    new_checkpoint_id: str | None = None
    pending: tuple[str, ...] = ()
    interrupts: int = 0
    head_at: datetime | None = None

    @classmethod
    def of(
        cls,
        diagnosis: Diagnosis,
        *,
        pending: tuple[str, ...] = (),
        interrupts: int = 0,
    ) -> "Finding":
        """The finding for a diagnosis; its time is read from the head's id."""
        seconds = timestamp(diagnosis.checkpoint_id)
        return cls(
            thread_id=diagnosis.thread_id,
            checkpoint_ns=diagnosis.checkpoint_ns,
            checkpoint_id=diagnosis.checkpoint_id,
            verdict=diagnosis.verdict,
            reason=diagnosis.reason,
            channel=diagnosis.channel,
            faults=diagnosis.faults,
            resume=diagnosis.resume,
            route=diagnosis.route,
            route_source=diagnosis.route_source,
            idle_seconds=diagnosis.idle_seconds,
            new_checkpoint_id=diagnosis.patch.row.checkpoint_id if diagnosis.patch else None,
            pending=pending,
            interrupts=interrupts,
            head_at=None if seconds is None else datetime.fromtimestamp(seconds, UTC),
        )

    def diagnosis(self) -> Diagnosis:
        """The diagnosis it was made from, without its patch, whose content is not kept."""
        return Diagnosis(
            thread_id=self.thread_id,
            checkpoint_ns=self.checkpoint_ns,
            checkpoint_id=self.checkpoint_id,
            verdict=self.verdict,
            reason=self.reason,
            channel=self.channel,
            faults=self.faults,
            resume=self.resume,
            route=self.route,
            route_source=self.route_source,
            idle_seconds=self.idle_seconds,
        )


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
                if fault.mend in OUTCOMES
            ),
            removed=removed,
            resume=diagnosis.resume,
            route=diagnosis.route,
            route_source=diagnosis.route_source,
            salvaged=patch.salvaged,
            placeholders=patch.placeholders,
        )


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


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A thread that is not repaired again for one call pattern."""

    store_key: str
    thread_id: str
    checkpoint_ns: str
    pattern: str
    count: int
    since: datetime
    released_at: datetime | None
    released_by: str | None


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a ledger can be kept.

    Attributes:
        ready: Whether it can.
        why: What is missing, what is not kept then, and what to do about it; empty when ready.
    """

    ready: bool
    why: str = ""
