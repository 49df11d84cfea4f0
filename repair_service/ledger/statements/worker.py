"""Statements about what the worker's replicas share, and the records their rows become.

What only the leader may do asks for the lease in the statement itself: a replica that was held up
(a frozen machine, a slow network) may think that it leads when another one does.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Delete,
    Insert,
    Interval,
    Row,
    Select,
    Update,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from repair_service.ledger.records.worker import Lease, NewRequest, RequestRow, ScheduleRow
from repair_service.ledger.tables import leases, pauses, requests, schedules
from repair_service.ledger.values import clean_optional, clean_text

WORKER = "worker"
"""The name of the one lease, and of the one pause."""

NOW = func.clock_timestamp()


def take_lease(holder: str, seconds: float) -> Insert:
    """Takes the lease, or renews it; writes no row while another replica holds it."""
    end = NOW + cast(literal(f"{seconds} seconds"), Interval)
    statement = insert(leases).values(name=WORKER, holder=holder, taken_at=NOW, expires_at=end)
    return statement.on_conflict_do_update(
        constraint="leases_pkey",
        set_={
            "holder": statement.excluded.holder,
            "taken_at": case(
                (leases.c.holder == holder, leases.c.taken_at),
                else_=statement.excluded.taken_at,
            ),
            "expires_at": statement.excluded.expires_at,
        },
        where=or_(leases.c.holder == holder, leases.c.expires_at <= NOW),
    )


def drop_lease(holder: str) -> Update:
    """Ends the lease of a replica that stops, so that another one need not wait."""
    return (
        update(leases)
        .where(leases.c.name == WORKER, leases.c.holder == holder)
        .values(expires_at=NOW)
    )


def lease() -> Select[Any]:
    """Who holds the lease, and how long."""
    left = func.extract("epoch", leases.c.expires_at - NOW).label("seconds_left")
    return select(leases.c.holder, leases.c.expires_at, left).where(leases.c.name == WORKER)


def lease_of(row: Row[Any]) -> Lease:
    """The record of a row."""
    return Lease(row.holder, row.expires_at, float(row.seconds_left))


def led_by(holder: str) -> ColumnElement[bool]:
    """Whether that replica holds the lease now."""
    return exists(
        select(leases.c.name).where(
            leases.c.name == WORKER, leases.c.holder == holder, leases.c.expires_at > NOW
        )
    )


def all_schedules() -> Select[Any]:
    """Every schedule that is known."""
    return select(schedules)


def schedule_of(row: Row[Any]) -> ScheduleRow:
    """The record of a row."""
    return ScheduleRow(**row._mapping)


def begin_schedule(name: str, trigger: str, since: datetime) -> Insert:
    """Makes a schedule known; one whose trigger is another now begins anew."""
    statement = insert(schedules).values(name=name, trigger=clean_text(trigger), last_due=since)
    return statement.on_conflict_do_update(
        constraint="schedules_pkey",
        set_={"trigger": statement.excluded.trigger, "last_due": statement.excluded.last_due},
        where=schedules.c.trigger != statement.excluded.trigger,
    )


def forget_schedules(but: Collection[str]) -> Delete:
    """Lets go of the schedules that the settings have no longer."""
    return delete(schedules).where(schedules.c.name.not_in([*but]))


def claim_due(name: str, due: datetime, leader: str) -> Update:
    """Claims a time of a schedule; writes no row where it was claimed before."""
    return (
        update(schedules)
        .where(schedules.c.name == name, schedules.c.last_due < due, led_by(leader))
        .values(last_due=due)
    )


def insert_request(request: NewRequest) -> Insert:
    """Records a request; a schedule's time is asked for once."""
    return (
        insert(requests)
        .values(
            id=request.id,
            verb=request.verb,
            store=clean_text(request.store),
            schedule=request.schedule,
            due_at=request.due_at,
            thread_id=clean_optional(request.thread_id),
            undo_run=request.undo_run,
            actor=clean_text(request.actor),
            reason=clean_optional(request.reason),
        )
        .on_conflict_do_nothing()
    )


def open_requests(limit: int) -> Select[Any]:
    """The requests that are not done, the first asked first."""
    return (
        select(requests)
        .where(requests.c.finished_at.is_(None))
        .order_by(requests.c.asked_at, requests.c.id)
        .limit(limit)
    )


def newest_requests(limit: int, before: tuple[datetime, UUID] | None) -> Select[Any]:
    """The newest requests, newest first, those of schedules too."""
    statement = (
        select(requests).order_by(requests.c.asked_at.desc(), requests.c.id.desc()).limit(limit)
    )
    if before is not None:
        place = tuple_(requests.c.asked_at, requests.c.id)
        statement = statement.where(place < tuple_(*before))
    return statement


def request_by_id(request_id: UUID) -> Select[Any]:
    """One request."""
    return select(requests).where(requests.c.id == request_id)


def request_of(row: Row[Any]) -> RequestRow:
    """The record of a row."""
    return RequestRow(**row._mapping)


def is_open_for(schedule: str) -> Select[Any]:
    """A row where a schedule's request is not done yet."""
    return select(requests.c.id).where(
        requests.c.schedule == schedule, requests.c.finished_at.is_(None)
    )


def claim_request(request_id: UUID, run_id: UUID, attempts: int, leader: str) -> Update:
    """Begins on a request; writes no row where somebody else did meanwhile."""
    return (
        update(requests)
        .where(
            requests.c.id == request_id,
            requests.c.attempts == attempts,
            requests.c.finished_at.is_(None),
            led_by(leader),
        )
        .values(attempts=requests.c.attempts + 1, claimed_by=leader, started_at=NOW, run_id=run_id)
    )


def hand_back(request_id: UUID, run_id: UUID) -> Update:
    """Leaves a request that was begun to the next leader; it costs no attempt."""
    return (
        update(requests)
        .where(_attempt(request_id, run_id))
        .values(attempts=requests.c.attempts - 1, claimed_by=None, started_at=None, run_id=None)
    )


def finish_request(
    request_id: UUID, run_id: UUID | None, exit_code: int | None, problem: str | None
) -> Update:
    """Records the end of a request, unless another replica went on with it meanwhile."""
    ours = requests.c.id == request_id if run_id is None else _attempt(request_id, run_id)
    return (
        update(requests)
        .where(ours, requests.c.finished_at.is_(None))
        .values(finished_at=NOW, exit_code=exit_code, problem=clean_optional(problem))
    )


def _attempt(request_id: UUID, run_id: UUID) -> ColumnElement[bool]:
    return and_(
        requests.c.id == request_id,
        requests.c.run_id == run_id,
        requests.c.finished_at.is_(None),
    )


def end_schedule_run(name: str, run_id: UUID, exit_code: int) -> Update:
    """Records how a schedule's last run ended."""
    return (
        update(schedules)
        .where(schedules.c.name == name)
        .values(last_run=run_id, last_exit_code=exit_code)
    )


def forget_requests(before: datetime) -> Delete:
    """Lets go of requests that were done long ago; their runs stay."""
    return delete(requests).where(requests.c.asked_at < before, requests.c.finished_at.is_not(None))


def pause(actor: str) -> Insert:
    """Pauses the schedules; who paused them first stays known."""
    statement = insert(pauses).values(name=WORKER, paused_by=clean_text(actor))
    return statement.on_conflict_do_nothing()


def resume() -> Delete:
    """Ends the pause."""
    return delete(pauses).where(pauses.c.name == WORKER)


def paused() -> Select[Any]:
    """A row while the schedules are paused."""
    return select(pauses.c.paused_by, pauses.c.paused_at).where(pauses.c.name == WORKER)
