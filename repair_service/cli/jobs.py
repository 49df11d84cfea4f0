"""`--jobs`: a run's work done by several processes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from repair_service.cli.settings import Settings, load_settings
from repair_service.errors import UsageError
from repair_service.ledger.records.base import END, Cursor
from repair_service.repair.diagnosis import Diagnosis
from repair_service.sweep.jobs import Found, Jobs
from repair_service.sweep.jobs import Moved as JobMoved
from repair_service.sweep.selection import Selection

if TYPE_CHECKING:
    from repair_service.cli.recording import Recording
    from repair_service.cli.running import Begin, Moved, Work
    from repair_service.ledger.records.run import NewRun


@dataclass(frozen=True, slots=True)
class SweepJob:
    """What one of the processes does.

    Attributes:
        flags: The flags of the call; environment and file are read again.
        writes: Whether repairable heads are written.
        selection: The heads that all processes look at together.
        run: The run in the ledger; None where none is kept.
        keeps: Whether findings and repairs are recorded there; a look before a run only asks for
            the quarantine.
        run_time: Seconds behind which it is cut short; None for any time.
    """

    flags: Mapping[str, Any]
    writes: bool
    selection: Selection
    run: "NewRun | None"
    keeps: bool
    run_time: float | None

    def __call__(self, index: int, count: int, found: Found, moved: JobMoved) -> Cursor | None:
        """Audit or sweep one part of what the call is for; where it stopped."""
        from repair_service.cli.opening import open_replica, open_store, open_throttle
        from repair_service.cli.recording import record_in_job
        from repair_service.sweep.run import Sweep

        settings = load_settings(self.flags)
        with (
            open_store(settings, writes=self.writes) as store,
            open_replica(settings, store) as replica,
            record_in_job(settings, self.run, writes=self.writes, keeps=self.keeps) as record,
        ):
            # What writes nothing needs nothing of the primary.
            judged = store if self.writes else replica or store
            sweep = Sweep(
                judged,
                settings.policy(),
                self.selection.of_job(index, count),
                on_progress=moved,
                record=record,
                active_query=settings.active_query,
                replica=replica,
                throttle=open_throttle(settings, judged, replica),
                run_time=self.run_time,
            )
            for diagnosis in sweep.repair() if self.writes else sweep.audit():
                found(diagnosis, sweep.totals)
            moved(sweep.totals)
            return END if sweep.complete else sweep.cursor


def jobs_of(
    settings: Settings, flags: Mapping[str, Any], recording: "Recording", *, writes: bool
) -> "Begin":
    """Judging, or repairing, the selected heads in `settings.jobs` processes.

    Raises:
        UsageError: A bound on the whole run is asked for, which the processes do not share.
    """
    for name, bound in (("max-repairs", settings.max_repairs), ("max-ratio", settings.max_ratio)):
        if writes and bound is not None:
            raise UsageError(f"--{name} bounds one process; give it without --jobs.")

    def begin(moved: "Moved") -> "tuple[Work, Iterator[Diagnosis]]":
        job = SweepJob(
            dict(flags),
            writes,
            recording.selection,
            recording.run,
            recording.keeps,
            settings.run_time,
        )
        jobs = Jobs(job, settings.jobs, moved)
        return jobs, jobs.outcomes()

    return begin
