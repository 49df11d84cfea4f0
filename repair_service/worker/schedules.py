"""The schedules of the replica that leads.

APScheduler says when; what was run already is in the ledger. Each time is claimed there before it
is run, so that it is run once whoever leads, and the times that passed while nobody could run them
become one run.
"""

import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler

from repair_service.ledger.records.worker import NewRequest
from repair_service.ledger.replicas import Replicas
from repair_service.worker.configuration import ScheduleConfiguration, WorkerConfiguration
from repair_service.worker.times import next_time, passed, trigger_for

LATE = timedelta(seconds=5)
"""A time that is claimed later than this was missed: a second or two is a busy database."""

_log = structlog.get_logger("repair_service.worker")


class Schedules:
    """Asks for a run at each time of a schedule, while this replica leads.

    `start`, `stop` and `claim` belong to one thread.
    """

    def __init__(
        self,
        configuration: WorkerConfiguration,
        replicas: Replicas,
        due: Callable[[], None],
    ) -> None:
        """Nothing is scheduled yet.

        Args:
            configuration: The schedules.
            replicas: Their times in the ledger.
            due: Called when a time has come, in any thread; then `claim` is to be called.
        """
        self._configuration = configuration
        self._replicas = replicas
        self._tell = due
        self._triggers = {each.name: trigger_for(each) for each in configuration.schedules}
        self._lock = threading.Lock()
        self._due: set[str] = set()
        self._misfires: Counter[str] = Counter()
        self._last: dict[str, datetime] = {}
        self._since = datetime.now(UTC)
        self._scheduler: BackgroundScheduler | None = None

    def start(self) -> None:
        """Go on where the last leader ended.

        Raises:
            LedgerError: The ledger was lost; to be called again.
        """
        self._since = datetime.now(UTC)
        triggers = {each.name: each.trigger for each in self._configuration.schedules}
        known = self._replicas.begin_schedules(triggers, since=self._since)
        self._last = {name: row.last_due for name, row in known.items()}
        scheduler = BackgroundScheduler(
            jobstores={"default": MemoryJobStore()},
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone=UTC,
        )
        for name, trigger in self._triggers.items():
            # A time in the past comes at once.
            first = next_time(trigger, self._last[name])
            scheduler.add_job(self._come, trigger, args=[name], id=name, next_run_time=first)
        scheduler.start()
        with self._lock:
            self._scheduler = scheduler

    def stop(self) -> None:
        """Ask for nothing more."""
        with self._lock:
            scheduler, self._scheduler = self._scheduler, None
            self._due.clear()
        if scheduler is not None:
            scheduler.shutdown(wait=False)

    def next_run(self, name: str) -> datetime | None:
        """The next time of a schedule; None while this replica does not lead."""
        with self._lock:
            job = None if self._scheduler is None else self._scheduler.get_job(name)
        moment: datetime | None = None if job is None else job.next_run_time
        return None if moment is None else moment.astimezone(UTC)

    def misfires(self, name: str) -> int:
        """Times of a schedule that passed while nobody could run them."""
        with self._lock:
            return self._misfires[name]

    def claim(self, *, paused: bool) -> None:
        """Ask for the runs whose time has come.

        Args:
            paused: Whether the times are to pass without a run.

        Raises:
            LedgerError: The ledger was lost; to be called again.
        """
        with self._lock:
            names = sorted(self._due)
        for name in names:
            self._claim(name, paused=paused)
            with self._lock:
                self._due.discard(name)

    def _claim(self, name: str, *, paused: bool) -> None:
        schedule = self._configuration.schedule(name)
        now = datetime.now(UTC)
        found = passed(self._triggers[name], self._last[name], now)
        if found is None or schedule is None:
            return
        missed = found.count - 1
        if found.last <= self._since or now - found.last > LATE:
            missed += 1
        request = None if paused else _request(schedule, found.last)
        asked = self._replicas.claim(name, found.last, self._configuration.replica, request)
        self._last[name] = found.last
        if paused:
            return
        if not asked:
            missed = found.count
            _log.warning(
                "the last run of this schedule goes on, so its time passes",
                schedule=name,
                store=schedule.store,
            )
        with self._lock:
            self._misfires[name] += missed
        if missed:
            _log.warning("times were missed", schedule=name, store=schedule.store, count=missed)

    def _come(self, name: str) -> None:
        with self._lock:
            self._due.add(name)
        self._tell()


def _request(schedule: ScheduleConfiguration, due: datetime) -> NewRequest:
    return NewRequest(
        verb=schedule.verb,
        store=schedule.store,
        actor=schedule.actor,
        reason=schedule.reason,
        schedule=schedule.name,
        due_at=due,
    )
