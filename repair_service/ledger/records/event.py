"""What the application is told of a repair by its webhook, and how far that has come."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

EventType = Literal["thread.repaired", "thread.repair_undone"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing to tell.

    Attributes:
        id: The same in every attempt.
        type: A patch was written, or taken back.
        position: Its place among the events of its thread.
        attempts: How often it was sent, this time included.
        recorded_at: When it came about.
        store: The store's address, without a password.
        store_key: The store as the ledger knows it.
        thread_id, checkpoint_ns, checkpoint_id: The thread's head from then on.
        run_id: The run that did it; None for an undo outside of one.
        repair_id: The patch.
        resume: Where the thread goes on: `continue`, `park` or `keep`.
        salvaged, placeholders: How many results were real, and made up.
    """

    id: UUID
    type: EventType
    position: int
    attempts: int
    recorded_at: datetime
    store: str
    store_key: str
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    run_id: UUID | None
    repair_id: UUID
    resume: str | None
    salvaged: int
    placeholders: int


@dataclass(frozen=True, slots=True)
class OutboxCounts:
    """How much is in the outbox.

    Attributes:
        due: Events that are to be sent, now or later.
        dead: Those that were given up.
        sent: Those that were taken, of the last days.
        oldest_due_at: When the oldest that is not sent yet came about; None where there is none.
    """

    due: int
    dead: int
    sent: int
    oldest_due_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that was given up.

    Attributes:
        problem: What its last attempt came to.
    """

    id: UUID
    type: str
    thread_id: str
    repair_id: UUID
    attempts: int
    recorded_at: datetime
    ended_at: datetime
    problem: str | None
