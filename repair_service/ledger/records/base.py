"""What an incremental run goes on from: the last run that came to the end of the whole store."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from repair_service.ledger.records.run import Run

CLOCKS = timedelta(minutes=5)
"""How far the clocks of the application, the ledger and this machine may be apart, with the time
from the making of a checkpoint's id to its commit."""

LATE = timedelta(days=7)
"""How long after a repair its thread is looked at, healthy or not: a real result may come late, as
a pending write of an old checkpoint, and no id tells of it."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a run stopped; JSON can say it.

    Attributes:
        part: In the walk over the store, in the second look at what was not final, or at the end.
        after: The last thread that is done.
    """

    part: Literal["walk", "again", "end"]
    after: str


END = Cursor("end", "")
"""Nothing is left."""


@dataclass(frozen=True, slots=True)
class JobCursors:
    """Where the processes of one run stopped, each in its own part of the threads.

    Attributes:
        jobs: In the order of the parts; None for one that begins anew.
    """

    jobs: tuple[Cursor | None, ...]


@dataclass(frozen=True, slots=True)
class Base:
    """A run that looked at every head, or at all that had changed since such a run.

    Attributes:
        runs: Its id, and those of the runs that it went on from where they had stopped.
        began_at: When the first of them began.
        since: Seconds since 1970; heads older than this that it did not find wrong are not looked
            at again.
    """

    runs: tuple[UUID, ...]
    began_at: datetime
    since: float

    @classmethod
    def of(cls, run: Run) -> "Base":
        """The base that a complete run is."""
        earlier = Earlier.within(run.selection)
        began_at = earlier.began_at if earlier else _as_of(run)
        min_idle = run.policy.get("min_idle")
        # A run kept a head alone that was younger; one without end has no JSON, and null stands.
        idle = timedelta(seconds=min_idle) if isinstance(min_idle, int | float) else LATE
        # It saw of the store what the replica that it read had then.
        behind = timedelta(seconds=run.policy.get("read_behind") or 0)
        return cls(
            runs=(run.id, *(earlier.runs if earlier else ())),
            began_at=began_at,
            since=(began_at - behind - min(idle, LATE) - CLOCKS).timestamp(),
        )

    @classmethod
    def within(cls, selection: Mapping[str, Any]) -> "Base | None":
        """The base that a run's selection names; None where it is a full one."""
        match selection.get("base"):
            case {"runs": [*runs], "began_at": str(began_at), "since": int() | float() as since}:
                ids = tuple(UUID(each) for each in runs)
                return cls(ids, datetime.fromisoformat(began_at), since)
        return None


@dataclass(frozen=True, slots=True)
class Earlier:
    """The runs that a run goes on from where they were cut short.

    Attributes:
        runs: Their ids, the last one first.
        began_at: When the first of them began.
        cursor: Where the last one stopped.
    """

    runs: tuple[UUID, ...]
    began_at: datetime
    cursor: Cursor | JobCursors

    @classmethod
    def of(cls, run: Run) -> "Earlier | None":
        """How to go on from a run that was cut short; None where it keeps no place."""
        cursor = _cursor_of(run.resume_cursor)
        if cursor is None:
            return None
        before = cls.within(run.selection)
        return cls(
            runs=(run.id, *(before.runs if before else ())),
            began_at=before.began_at if before else _as_of(run),
            cursor=cursor,
        )

    @classmethod
    def within(cls, selection: Mapping[str, Any]) -> "Earlier | None":
        """What a run's selection says that it goes on from; None where it began anew."""
        match selection.get("earlier"):
            case {"runs": [*runs], "began_at": str(began_at), "cursor": said}:
                ids = tuple(UUID(each) for each in runs)
                cursor = _cursor_of(said)
                if cursor is not None:
                    return cls(ids, datetime.fromisoformat(began_at), cursor)
        return None

    def takes(self, jobs: int) -> bool:
        """Whether so many processes can go on from it: those that were cut short in their own
        parts only as they were."""
        return isinstance(self.cursor, Cursor) or len(self.cursor.jobs) == jobs

    def of_job(self, index: int) -> "Earlier | None":
        """The same for one process, from 1; None where that one begins anew."""
        if isinstance(self.cursor, Cursor):
            return self
        cursor = self.cursor.jobs[index - 1]
        return None if cursor is None else replace(self, cursor=cursor)


def _cursor_of(said: Any) -> Cursor | JobCursors | None:
    match said:
        case {"jobs": [*jobs]}:
            return JobCursors(tuple(_place_of(each) for each in jobs))
    return _place_of(said)


def _place_of(said: Any) -> Cursor | None:
    match said:
        case {"part": "walk" | "again" | "end" as part, "after": str(after)}:
            return Cursor(part, after)
    return None


def _as_of(run: Run) -> datetime:
    """From when on a run saw the store: one that read a replica, from what that had applied."""
    behind = run.policy.get("read_behind")
    return run.started_at - timedelta(seconds=behind if isinstance(behind, int | float) else 0)
