"""A worker that remembers what it was asked, and states to show."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from repair_service.errors import UsageError
from repair_service.worker.state import (
    Request,
    RunningState,
    ScheduleState,
    StoreState,
    WorkerState,
)

TOKEN = "0123456789abcdef0123456789abcdef"
NOW = datetime.now(UTC)
KEY = "here/public"


def store_state(name: str = "orders", **changes: Any) -> StoreState:
    """A store that can be worked with, as a ledger in the same database knows it."""
    state = StoreState(
        name=name,
        target="database orders at db-1.internal:5432 as repairer",
        key=KEY,
        problem=None,
    )
    return replace(state, **changes)


def schedule_state(name: str = "nightly", **changes: Any) -> ScheduleState:
    """A sweep of that store that has never run."""
    state = ScheduleState(
        name=name,
        store="orders",
        verb="sweep",
        trigger="cron 0 3 * * *, UTC",
        next_run=NOW + timedelta(hours=3, minutes=12),
        last_run=None,
        last_exit_code=None,
        misfires=0,
    )
    return replace(state, **changes)


def running_state(**changes: Any) -> RunningState:
    """A sweep of that store that goes on."""
    state = RunningState(
        run_id=None,
        store="orders",
        verb="sweep",
        why="nightly",
        started_at=NOW - timedelta(seconds=75),
    )
    return replace(state, **changes)


def worker_state(**changes: Any) -> WorkerState:
    """A replica that leads, with one store and one schedule."""
    state = WorkerState(
        replica="worker-7d9f6c5b8-x2x4q",
        leads=True,
        leader="worker-7d9f6c5b8-x2x4q",
        lease_until=NOW + timedelta(seconds=20),
        paused=False,
        ledger_problem=None,
        stores=(store_state(),),
        schedules=(schedule_state(),),
        running=(),
    )
    return replace(state, **changes)


@dataclass
class RememberingWorker:
    """A worker that does nothing but remember.

    Attributes:
        now: The state that it says.
        asked: What was put before it.
        said: Pauses and resumes, with who asked for them.
        fails: What it raises when it is asked something.
    """

    now: WorkerState = field(default_factory=worker_state)
    asked: list[Request] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)
    fails: Exception | None = None

    def state(self) -> WorkerState:
        return self.now

    def ask(self, request: Request) -> UUID:
        if self.fails is not None:
            raise self.fails
        if request.reason == "refused":
            raise UsageError("The settings require another reason.")
        self.asked.append(request)
        return uuid4()

    def pause(self, actor: str) -> None:
        self.said.append(("pause", actor))
        self.now = replace(self.now, paused=True)

    def resume(self, actor: str) -> None:
        self.said.append(("resume", actor))
        self.now = replace(self.now, paused=False)
