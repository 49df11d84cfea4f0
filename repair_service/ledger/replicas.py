"""What the worker's replicas share in the ledger: who leads, requests, schedules, the pause."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

from repair_service.ledger.database import Database
from repair_service.ledger.records.worker import Lease, NewRequest, RequestRow, ScheduleRow
from repair_service.ledger.statements import worker

KEPT_FOR = timedelta(days=30)
"""How long a request that is done is kept; its run stays."""


class Replicas:
    """The leader among the worker's replicas, and what is shared between all of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def lead(self, holder: str, seconds: float) -> Lease:
        """Take the lease if it is free, or renew it; returns who holds it now.

        Args:
            holder: The replica that asks.
            seconds: How long the lease is to last from now.
        """
        with self._database.transaction() as connection:
            connection.execute(worker.take_lease(holder, seconds))
            return worker.lease_of(connection.execute(worker.lease()).one())

    def leader(self) -> Lease | None:
        """Who holds the lease, or held it last."""
        return next(map(worker.lease_of, self._database.rows(worker.lease())), None)

    def step_down(self, holder: str) -> None:
        """End a replica's own lease."""
        self._database.write(None, worker.drop_lease(holder))

    def begin_schedules(
        self, triggers: Mapping[str, str], *, since: datetime
    ) -> dict[str, ScheduleRow]:
        """Make the schedules of the settings known, and forget all others.

        Args:
            triggers: When each runs, as the settings say it, by its name.
            since: From when on a new one counts, and one that runs at other times than before.

        Returns:
            Each as it stands now.
        """
        with self._database.transaction() as connection:
            for name in sorted(triggers):
                connection.execute(worker.begin_schedule(name, triggers[name], since))
            connection.execute(worker.forget_schedules(triggers.keys()))
            rows = connection.execute(worker.all_schedules()).all()
        return {row.name: worker.schedule_of(row) for row in rows}

    def schedules(self) -> dict[str, ScheduleRow]:
        """Every schedule that is known, by its name."""
        rows = map(worker.schedule_of, self._database.rows(worker.all_schedules()))
        return {row.name: row for row in rows}

    def claim(self, name: str, due: datetime, leader: str, request: NewRequest | None) -> bool:
        """Claim a time of a schedule, and ask for its run in the same transaction.

        Args:
            name: The schedule.
            due: The time.
            leader: The replica that claims it; it has to hold the lease.
            request: What is to be done; None to let the time pass. Nothing is asked for while the
                schedule's last request is open.

        Returns:
            Whether the run was asked for.
        """
        with self._database.transaction() as connection:
            if not connection.execute(worker.claim_due(name, due, leader)).rowcount:
                return False
            if request is None or connection.execute(worker.is_open_for(name)).first():
                return False
            # Of an INSERT the count is forgotten otherwise.
            counted = connection.execution_options(preserve_rowcount=True)
            return counted.execute(worker.insert_request(request)).rowcount > 0

    def ask(self, request: NewRequest) -> UUID:
        """Put a request before the replica that leads; returns its id."""
        self._database.write(None, worker.insert_request(request))
        return request.id

    def open_requests(self, limit: int = 100) -> list[RequestRow]:
        """The requests that are not done, the first asked first."""
        return [worker.request_of(row) for row in self._database.rows(worker.open_requests(limit))]

    def newest_requests(
        self, limit: int = 50, *, before: RequestRow | None = None
    ) -> list[RequestRow]:
        """The newest requests, newest first; for a next page, those older than one."""
        position = None if before is None else (before.asked_at, before.id)
        rows = self._database.rows(worker.newest_requests(limit, position))
        return [worker.request_of(row) for row in rows]

    def request(self, request_id: UUID) -> RequestRow | None:
        """One request; None where there is no such request."""
        rows = self._database.rows(worker.request_by_id(request_id))
        return next(map(worker.request_of, rows), None)

    def begin(self, request: RequestRow, run_id: UUID, leader: str) -> bool:
        """Begin on a request; False where it is not to be begun by this replica any more."""
        statement = worker.claim_request(request.id, run_id, request.attempts, leader)
        return self._database.write(None, statement) > 0

    def hand_back(self, request_id: UUID, run_id: UUID) -> None:
        """Leave a request that was begun, and stopped, to the next leader."""
        self._database.write(None, worker.hand_back(request_id, run_id))

    def finish(self, request: RequestRow, run_id: UUID, exit_code: int) -> None:
        """Record how a request's run ended."""
        with self._database.transaction() as connection:
            done = connection.execute(worker.finish_request(request.id, run_id, exit_code, None))
            if done.rowcount and request.schedule is not None:
                connection.execute(worker.end_schedule_run(request.schedule, run_id, exit_code))
            connection.execute(worker.forget_requests(datetime.now(UTC) - KEPT_FOR))

    def give_up(self, request_id: UUID, problem: str) -> None:
        """Record that a request is not done, and why."""
        self._database.write(None, worker.finish_request(request_id, None, None, problem))

    def pause(self, actor: str) -> None:
        """Pause the schedules of all replicas."""
        self._database.write(None, worker.pause(actor))

    def resume(self) -> None:
        """End the pause."""
        with self._database.transaction() as connection:
            connection.execute(worker.resume())

    def is_paused(self) -> bool:
        """Whether the schedules are paused."""
        return bool(self._database.rows(worker.paused()))
