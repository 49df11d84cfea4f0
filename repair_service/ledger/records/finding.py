"""A finding: one head that was not healthy, and why."""

from dataclasses import dataclass
from datetime import UTC, datetime

from repair_service.checkpoint.identifiers import timestamp
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Fault, Resume, RouteSource, Verdict


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
    def of(cls, diagnosis: Diagnosis) -> "Finding":
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
            pending=diagnosis.pending,
            interrupts=diagnosis.interrupts,
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
            pending=self.pending,
            interrupts=self.interrupts,
        )
