"""The runs of this replica: requests of the ledger, each done in a process, one at a time a store.

A request that was begun and has not ended when another replica leads is done again, from its
beginning: what the first attempt wrote is found healthy then.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid4

import structlog

from repair_service.ledger.records.worker import RequestRow
from repair_service.ledger.replicas import Replicas
from repair_service.worker.child import Child, ToldRun
from repair_service.worker.configuration import StoreConfiguration, WorkerConfiguration
from repair_service.worker.hold import Hold
from repair_service.worker.state import RunningState, Verb

ATTEMPTS = 3
"""Replicas that died over a request before it is given up: it may be what they died of."""

SIGNALLED = 128
"""Exit codes from here on say that a signal ended the run."""

ORPHAN_SHARE = 0.2
"""The share of the lease that a run may still go on once its worker has died. The lease has at
least a third of its life then: one that is not renewed stops the runs."""

WORDS: dict[str, tuple[str, ...]] = {
    "audit": ("audit",),
    "sweep": ("sweep", "--yes"),
    "repair": ("repair",),
    "undo": ("undo", "--yes"),
}

_log = structlog.get_logger("repair_service.worker")


@dataclass(slots=True)
class _Running:
    request: RequestRow
    run_id: UUID
    child: Child
    started_at: datetime
    began: float
    stopped: bool = False


class Runs:
    """The runs that go on in this replica; `begin` and `settle` belong to one thread."""

    def __init__(
        self,
        configuration: WorkerConfiguration,
        replicas: Replicas,
        hold: Hold,
        ended: Callable[[], None],
    ) -> None:
        """Nothing runs yet.

        Args:
            configuration: The stores and schedules.
            replicas: The requests.
            hold: The lease.
            ended: Called when a run has ended, in any thread.
        """
        self._configuration = configuration
        self._replicas = replicas
        self._hold = hold
        self._ended = ended
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}

    def running(self) -> tuple[RunningState, ...]:
        """What runs now."""
        with self._lock:
            return tuple(
                RunningState(
                    run_id=each.run_id,
                    store=store,
                    verb=_verb(each.request.verb),
                    why=each.request.schedule or each.request.actor,
                    started_at=each.started_at,
                )
                for store, each in self._running.items()
            )

    def stop(self) -> None:
        """Let every run end between two heads; what it did not come to is left to the leader."""
        with self._lock:
            for each in self._running.values():
                if not each.stopped:
                    each.stopped = True
                    each.child.stop()

    def kill(self) -> None:
        """End every run now."""
        with self._lock:
            for each in self._running.values():
                each.stopped = True
                if each.child.exit_code is None:
                    each.child.kill()

    def settle(self) -> bool:
        """Record how runs ended that have.

        Returns:
            Whether any had.

        Raises:
            LedgerError: The ledger was lost; to be called again.
        """
        with self._lock:
            ended = [
                (store, each, code)
                for store, each in self._running.items()
                if (code := each.child.exit_code) is not None
            ]
        for store, each, code in ended:
            if each.stopped and code >= SIGNALLED:
                self._replicas.hand_back(each.request.id, each.run_id)
            else:
                self._replicas.finish(each.request, each.run_id, code)
            with self._lock:
                del self._running[store]
            self._say_ended(each, code)
        return bool(ended)

    def begin(self, requests: Sequence[RequestRow]) -> None:
        """Begin on open requests, the first asked first, as far as their stores are free.

        Raises:
            LedgerError: The ledger was lost; to be called again.
        """
        for request in requests:
            with self._lock:
                busy = request.store in self._running
            if busy or not self._hold.leads():
                continue
            store = self._configuration.store(request.store)
            if store is None or request.verb not in WORDS:
                self._give_up(request, f"There is no store {request.store} in the settings.")
            elif request.attempts >= ATTEMPTS:
                self._give_up(
                    request, f"{ATTEMPTS} replicas died while they did this; see their logs."
                )
            else:
                self._begin(request, store)

    def _begin(self, request: RequestRow, store: StoreConfiguration) -> None:
        run_id = uuid4()
        if not self._replicas.begin(request, run_id, self._configuration.replica):
            return
        schedule = self._configuration.schedule(request.schedule)
        told = ToldRun(
            run_id=str(run_id),
            store=store.name,
            schedule=request.schedule,
            stop_seconds=self._hold.seconds * ORPHAN_SHARE,
            settings={
                **(store.settings if schedule is None else schedule.settings),
                "actor": request.actor,
                "reason": request.reason,
            },
        )
        key = {} if store.aes_key is None else {"LANGGRAPH_AES_KEY": store.aes_key.decode()}
        try:
            child = Child(_arguments(request), told, key, self._ended)
        except OSError as error:
            self._give_up(request, f"No process could be started: {error.strerror}.")
            return
        with self._lock:
            self._running[store.name] = _Running(
                request, run_id, child, datetime.now(UTC), time.monotonic()
            )
        _log.info(
            "a run begins",
            run_id=str(run_id),
            store=store.name,
            verb=request.verb,
            schedule=request.schedule,
            thread_id=request.thread_id,
            attempt=request.attempts + 1,
        )

    def _give_up(self, request: RequestRow, problem: str) -> None:
        self._replicas.give_up(request.id, problem)
        _log.error("a request is given up", request_id=str(request.id), problem=problem)

    def _say_ended(self, each: _Running, code: int) -> None:
        _log.info(
            "a run was stopped" if each.stopped and code >= SIGNALLED else "a run ended",
            run_id=str(each.run_id),
            store=each.request.store,
            verb=each.request.verb,
            schedule=each.request.schedule,
            thread_id=each.request.thread_id,
            exit_code=code,
            seconds=round(time.monotonic() - each.began, 1),
        )


def _arguments(request: RequestRow) -> list[str]:
    words = list(WORDS[request.verb])
    if request.undo_run is not None:
        words += ["--run", str(request.undo_run)]
    if request.thread_id is not None:
        words += ["--", request.thread_id]
    return words


def _verb(name: str) -> Verb:
    match name:
        case "audit" | "sweep" | "repair" | "undo":
            return name
        case _:
            raise ValueError(name)
