"""What a worker is doing: what its HTTP side shows of it, and may ask of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

Verb = Literal["audit", "sweep", "repair", "undo"]


@dataclass(frozen=True, slots=True)
class StoreState:
    """One store of the settings.

    Attributes:
        name: Its name in the settings.
        target: Its address, without a password.
        key: How the ledger knows it; None until it was reached once.
        problem: Why it cannot be worked with, with the remedy; None where it can.
    """

    name: str
    target: str
    key: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """One schedule of the settings.

    Attributes:
        name: Its name in the settings.
        store: The store's name.
        verb: audit or sweep.
        trigger: When it runs, as the settings say it.
        next_run: Its next time; None while it is paused, or this replica does not lead.
        last_run: Its last run in the ledger.
        last_exit_code: How that ended.
        misfires: Times that passed while nobody could run it, since this replica began.
    """

    name: str
    store: str
    verb: Verb
    trigger: str
    next_run: datetime | None
    last_run: UUID | None
    last_exit_code: int | None
    misfires: int


@dataclass(frozen=True, slots=True)
class RunningState:
    """What runs now.

    Attributes:
        run_id: Its run in the ledger.
        store: The store's name.
        verb: What it does.
        why: The schedule's name, or who asked.
        started_at: Since when.
    """

    run_id: UUID | None
    store: str
    verb: Verb
    why: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A replica, and what it knows of the others.

    Attributes:
        replica: Its own name.
        leads: Whether it holds the lease.
        leader: The name of the replica that holds it; None where none does.
        lease_until: When that lease ends unless it is renewed.
        paused: Whether schedules are paused, on all replicas.
        ledger_problem: Why the ledger cannot be worked with; None where it can.
        stores: Every store of the settings.
        schedules: Every schedule of the settings.
        running: What runs on this replica.
    """

    replica: str
    leads: bool
    leader: str | None
    lease_until: datetime | None
    paused: bool
    ledger_problem: str | None
    stores: tuple[StoreState, ...]
    schedules: tuple[ScheduleState, ...]
    running: tuple[RunningState, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """Something that a person asks of the worker, to be done now by the replica that leads.

    Attributes:
        verb: What to do.
        store: The store's name.
        actor: Who asks, for the ledger.
        reason: Why, for the ledger.
        thread_id: The thread to repair, or to undo.
        run_id: The run to undo.
    """

    verb: Verb
    store: str
    actor: str
    reason: str | None = None
    thread_id: str | None = None
    run_id: UUID | None = None


class Worker(Protocol):
    """What the HTTP side needs of the worker; safe to call from any thread."""

    def state(self) -> WorkerState:
        """What is known now; asks no database."""

    def ask(self, request: Request) -> UUID:
        """Put a request before the replica that leads; returns the request's id.

        Raises:
            UsageError: There is no such store, or the request lacks what its verb needs.
            LedgerError: The ledger was lost.
        """

    def pause(self, actor: str) -> None:
        """Start nothing more on a schedule, on any replica, until it is resumed; what runs ends."""

    def resume(self, actor: str) -> None:
        """Let the schedules run again."""
