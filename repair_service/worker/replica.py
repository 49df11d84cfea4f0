"""One replica of the worker: leads where no other does, runs what is asked, and stops in order.

Everything that asks the ledger happens in one thread, the follower, so that an idle replica holds
one connection. The main thread asks no database: it hears the signals, and stops the runs in time
where the lease could not be renewed.
"""

import threading
import time
import traceback
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog

from repair_service.errors import LedgerError, LedgerMismatch, RepairServiceError, UsageError
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.worker import NewRequest, ScheduleRow
from repair_service.worker.configuration import WorkerConfiguration
from repair_service.worker.hold import RENEWED_AT, Hold
from repair_service.worker.runs import Runs
from repair_service.worker.schedules import Schedules
from repair_service.worker.state import Request, ScheduleState, WorkerState
from repair_service.worker.stores import Stores
from repair_service.worker.telling import Telling

GUARD_SECONDS = 0.2
"""Between two looks of the main thread at the lease: a small part of the shortest one."""

KILL_SECONDS = 5.0
"""For a run that was killed to be gone, and its end recorded."""

LEDGER_SECONDS = 5.0
"""Between two attempts where the ledger cannot be used."""

_log = structlog.get_logger("repair_service.worker")


@dataclass(frozen=True, slots=True)
class _Known:
    """What the follower learned last."""

    leader: str | None = None
    lease_until: datetime | None = None
    paused: bool = False
    problem: str | None = "It was not asked yet."
    schedules: tuple[ScheduleRow, ...] = ()


class Replica:
    """One replica; what its HTTP side sees of it is `state.Worker`."""

    def __init__(self, configuration: WorkerConfiguration, ledger: Ledger) -> None:
        """Nothing is asked and nothing runs yet.

        Args:
            configuration: What it is told.
            ledger: The ledger; the caller closes it.
        """
        self._configuration = configuration
        self._replicas = ledger.replicas
        self._hold = Hold(configuration.lease)
        self._wake = threading.Event()
        self._done = threading.Event()
        self._stopping = False
        self._usable = False
        self._led = False
        self._lock = threading.Lock()
        self._known = _Known()
        self._next_lead = 0.0
        self._runs = Runs(configuration, ledger.replicas, self._hold, self._wake.set)
        self._schedules = Schedules(configuration, ledger.replicas, self._wake.set)
        self._stores = Stores(configuration.stores, ledger)
        self._telling = (
            Telling(configuration.ledger_address, configuration.webhook, self._hold.leads)
            if configuration.webhook is not None
            else None
        )

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop; then let what runs end, and leave the lease to another one.

        Args:
            stop: Set by a signal.
        """
        follower = threading.Thread(target=self._follow, name="follower", daemon=True)
        self._stores.start()
        if self._telling is not None:
            self._telling.start()
        follower.start()
        while not stop.wait(GUARD_SECONDS):
            self._guard()
        self._stop_runs()
        self._done.set()
        self._wake.set()
        follower.join(self._configuration.lease)
        self._stores.stop()
        if self._telling is not None:
            self._telling.stop()

    def state(self) -> WorkerState:
        """What is known now; asks no database."""
        known, leads = self._known, self._led and self._hold.leads()
        rows = {row.name: row for row in known.schedules}
        return WorkerState(
            replica=self._configuration.replica,
            leads=leads,
            leader=known.leader,
            lease_until=known.lease_until,
            paused=known.paused,
            ledger_problem=known.problem,
            stores=self._stores.states(),
            schedules=tuple(
                ScheduleState(
                    name=each.name,
                    store=each.store,
                    verb=each.verb,
                    trigger=each.trigger,
                    next_run=None if known.paused else self._schedules.next_run(each.name),
                    last_run=row.last_run if (row := rows.get(each.name)) else None,
                    last_exit_code=row.last_exit_code if row else None,
                    misfires=self._schedules.misfires(each.name),
                )
                for each in self._configuration.schedules
            ),
            running=self._runs.running(),
        )

    def ask(self, request: Request) -> UUID:
        """Put a request before the replica that leads; returns the request's id.

        Raises:
            UsageError: There is no such store, or the request lacks what its verb needs.
            LedgerError: The ledger was lost.
        """
        store = self._configuration.store(request.store)
        if store is None:
            raise UsageError(f"There is no store {request.store!r} in the settings.")
        named = (request.thread_id is not None) + (request.run_id is not None)
        needed = {"audit": 0, "sweep": 0, "repair": 1, "undo": 1}[request.verb]
        if named != needed or (request.verb == "repair" and request.thread_id is None):
            raise UsageError(
                "A repair needs a thread, an undo a thread or a run, an audit and a sweep neither."
            )
        if request.thread_id is not None and (not request.thread_id or "\0" in request.thread_id):
            raise UsageError("A thread's id is not empty, and has no null character in Postgres.")
        if store.needs_reason and request.verb != "audit" and not (request.reason or "").strip():
            raise UsageError("The settings require a reason for every write (require_reason).")
        asked = self._replicas.ask(
            NewRequest(
                verb=request.verb,
                store=request.store,
                actor=request.actor,
                reason=request.reason,
                thread_id=request.thread_id,
                undo_run=request.run_id,
            )
        )
        self._wake.set()
        return asked

    def pause(self, actor: str) -> None:
        """Start nothing more on a schedule, on any replica, until it is resumed; what runs ends."""
        self._replicas.pause(actor)
        self._note(paused=True)
        _log.info("the schedules are paused", actor=actor)
        self._wake.set()

    def resume(self, actor: str) -> None:
        """Let the schedules run again."""
        self._replicas.resume()
        self._note(paused=False)
        _log.info("the schedules go on", actor=actor)
        self._wake.set()

    def _guard(self) -> None:
        """Stop what runs in time where the lease was lost."""
        if not self._hold.leads():
            self._runs.stop()
        if self._hold.must_be_still():
            self._runs.kill()

    def _stop_runs(self) -> None:
        """Let what runs end between two heads, and end it where that takes too long."""
        self._stopping = True
        self._runs.stop()
        if not self._all_ended(self._configuration.grace):
            self._runs.kill()
            self._all_ended(KILL_SECONDS)

    def _all_ended(self, seconds: float) -> bool:
        """Wait so long for every run's end to be recorded."""
        until = time.monotonic() + seconds
        while self._runs.running():
            if time.monotonic() > until:
                return False
            self._guard()
            time.sleep(GUARD_SECONDS / 4)
        return True

    def _follow(self) -> None:
        """The follower: asks the ledger, until the worker stops."""
        while not self._done.is_set():
            self._wake.clear()
            pause = self._turn_safely()
            self._wake.wait(pause)
        try:
            self._schedules.stop()
            self._runs.settle()
            if self._led:
                self._replicas.step_down(self._configuration.replica)
        except LedgerError as error:
            # The lease ends by itself.
            _log.warning("the lease was not given back", problem=str(error))

    def _turn_safely(self) -> float:
        """One turn; returns the seconds until the next."""
        try:
            self._turn()
        except LedgerMismatch as error:
            self._usable = False
            self._say_problem(str(error))
        except RepairServiceError as error:
            self._say_problem(str(error))
        except Exception as error:  # noqa: BLE001  # a follower that ends would end the worker
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}, line {last.lineno}"
            self._say_problem(f"Unexpected {type(error).__name__} in {place}; report it.")
        else:
            if self._known.problem is not None:
                _log.info("the ledger can be worked with")
            self._note(problem=None)
            return self._pause()
        return min(LEDGER_SECONDS, self._configuration.lease * RENEWED_AT)

    def _turn(self) -> None:
        if not self._usable:
            self._check_ledger()
        if self._led and not self._hold.leads():
            self._lose()
        if self._hold.now() >= self._next_lead:
            self._lead()
        if self._runs.settle() or not self._led:
            self._note(schedules=tuple(self._replicas.schedules().values()))
        self._note(paused=self._replicas.is_paused())
        if self._led and not self._stopping:
            self._schedules.claim(paused=self._known.paused)
            self._runs.begin(self._replicas.open_requests())

    def _pause(self) -> float:
        """Seconds until the next turn."""
        to_lead = max(0.05, self._next_lead - self._hold.now())
        return min(to_lead, self._configuration.look) if self._led else to_lead

    def _check_ledger(self) -> None:
        from repair_service.ledger import migrate

        if remedy := migrate.check(self._configuration.ledger_address).remedy:
            raise LedgerError(remedy)
        self._usable = True

    def _lead(self) -> None:
        """Take the lease or renew it, and begin or end to lead."""
        asked_at = self._hold.now()
        renewal = self._configuration.lease * RENEWED_AT
        if self._stopping and not self._led:
            self._next_lead = asked_at + renewal
            return
        lease = self._replicas.lead(self._configuration.replica, self._configuration.lease)
        self._note(leader=lease.holder, lease_until=lease.expires_at)
        if lease.holder != self._configuration.replica:
            # Behind the end of the other one's, if it is not renewed.
            self._next_lead = self._hold.now() + min(renewal, max(0.0, lease.seconds_left) + 0.05)
            if self._led:
                self._lose()
            return
        self._hold.take(asked_at)
        if not self._led and not self._stopping:
            self._schedules.start()
            self._led = True
            self._note(schedules=tuple(self._replicas.schedules().values()))
            _log.info("this replica leads", replica=self._configuration.replica)
        # Last: where something above failed, the next turn does it again.
        self._next_lead = asked_at + renewal

    def _lose(self) -> None:
        self._hold.let_go()
        self._led = False
        self._schedules.stop()
        self._next_lead = 0.0
        _log.warning("this replica leads no longer", replica=self._configuration.replica)

    def _note(self, **learned: Any) -> None:
        with self._lock:
            self._known = replace(self._known, **learned)

    def _say_problem(self, problem: str) -> None:
        if self._known.problem != problem:
            _log.error("the ledger cannot be worked with", problem=problem)
        self._note(problem=problem)
