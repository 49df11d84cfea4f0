"""What the worker's replicas share: the lease, the times of schedules, and requests."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid4


@dataclass(frozen=True, slots=True)
class Lease:
    """Which replica leads.

    Attributes:
        holder: Its name.
        expires_at: When the lease ends unless it is renewed, by the database's clock.
        seconds_left: How far away that is; negative once it has ended.
    """

    holder: str
    expires_at: datetime
    seconds_left: float


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """What became of a schedule.

    Attributes:
        name: Its name in the settings.
        trigger: When it runs, as the settings said it.
        last_due: The last time that was run, or that is not to be run any more.
        last_run: Its last run that ended.
        last_exit_code: How that ended.
    """

    name: str
    trigger: str
    last_due: datetime
    last_run: UUID | None = None
    last_exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class NewRequest:
    """Something to be done by the replica that leads.

    Attributes:
        verb: audit, sweep, repair or undo.
        store: The store's name in the settings.
        actor, reason: Who asks, and why.
        schedule: The schedule that asks; None where a person does.
        due_at: The time of the schedule that is run.
        thread_id: The thread to repair, or to undo.
        undo_run: The run to undo.
    """

    verb: str
    store: str
    actor: str
    reason: str | None = None
    schedule: str | None = None
    due_at: datetime | None = None
    thread_id: str | None = None
    undo_run: UUID | None = None
    id: UUID = field(default_factory=uuid4)


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request as it stands in the ledger.

    Attributes:
        attempts: How often a replica began on it.
        claimed_by: The replica that began last.
        run_id: That attempt's run.
        finished_at: None while it is to be done, or is being done.
        exit_code: How the run ended; None where it never began.
        problem: Why it was given up; None where it was done.
    """

    id: UUID
    verb: str
    store: str
    schedule: str | None
    due_at: datetime | None
    thread_id: str | None
    undo_run: UUID | None
    actor: str
    reason: str | None
    asked_at: datetime
    attempts: int
    claimed_by: str | None
    started_at: datetime | None
    run_id: UUID | None
    finished_at: datetime | None
    exit_code: int | None
    problem: str | None
