"""What keeps a sweep from doing too much: the quarantine, used plans, and a ledger not there."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A thread that was repaired so often for one call pattern that it is not repaired again.

    Attributes:
        checkpoint_ns: The namespace in which it was last found.
        count: In how many runs it had been repaired.
        since: Since when it is in.
    """

    store_key: str
    thread_id: str
    pattern: str
    checkpoint_ns: str
    count: int
    since: datetime
    released_at: datetime | None
    released_by: str | None


@dataclass(frozen=True, slots=True)
class PlanUse:
    """When a plan was applied, and by which run."""

    applied_at: datetime
    run_id: UUID | None


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a ledger can be kept.

    Attributes:
        ready: Whether it can.
        why: What is missing, what is not kept then, and what to do about it; empty when ready.
    """

    ready: bool
    why: str = ""
