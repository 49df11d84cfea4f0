"""Runs: each call of a verb that looked at heads."""

from datetime import datetime
from typing import Any
from uuid import UUID

from repair_service.ledger.database import Database
from repair_service.ledger.records.run import NewRun, Run
from repair_service.ledger.statements import runs

LOOKED_BACK = 20
"""Runs among which one is looked for that was cut short."""


class Runs:
    """The runs in the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, run: NewRun) -> UUID:
        """Record the start of a run; returns its id."""
        with self._database.transaction() as connection:
            connection.execute(runs.insert_run(run))
        return run.id

    def save_progress(self, run_id: UUID, *, totals: Any, resume_cursor: Any = None) -> None:
        """Record how far a run that goes on has come."""
        with self._database.transaction() as connection:
            connection.execute(runs.update_progress(run_id, totals, resume_cursor))

    def close(
        self,
        run_id: UUID,
        *,
        totals: Any,
        exit_code: int,
        complete: bool,
        resume_cursor: Any = None,
        finished_at: datetime | None = None,
    ) -> None:
        """Record the end of a run.

        Args:
            run_id: The run.
            totals: What was counted: a mapping or a dataclass.
            exit_code: The command's exit code.
            complete: Whether every head of the selection was looked at, and each finding recorded.
                Only then is the run a base for incremental sweeps.
            resume_cursor: Where an incomplete run would go on.
            finished_at: The time; now by default.
        """
        with self._database.transaction() as connection:
            connection.execute(
                runs.finish_run(
                    run_id,
                    totals=totals,
                    exit_code=exit_code,
                    complete=complete,
                    resume_cursor=resume_cursor,
                    finished_at=finished_at,
                )
            )

    def newest(self, limit: int = 50, *, before: Run | None = None) -> list[Run]:
        """The newest runs of all stores, newest first; for a next page, those older than one."""
        position = None if before is None else (before.started_at, before.id)
        return [runs.run_of(row) for row in self._database.rows(runs.newest_runs(limit, position))]

    def get(self, run_id: UUID) -> Run | None:
        """One run; None where there is no such run."""
        for row in self._database.rows(runs.run_by_id(run_id)):
            return runs.run_of(row)
        return None

    def last_completed_sweep(
        self, store_key: str, *, shard_index: int = 1, shard_count: int = 1
    ) -> Run | None:
        """The last run that saw the whole store, or the whole of the shard, to its end.

        An incremental run looks at heads written since it began, and at `Findings.not_final`. It
        may have been an audit: what an audit found and did not mend is not final either.
        """
        statement = runs.last_whole_run(store_key, shard_index, shard_count)
        for row in self._database.rows(statement):
            return runs.run_of(row)
        return None

    def newest_of(
        self, verb: str, store_key: str, *, shard_index: int = 1, shard_count: int = 1
    ) -> list[Run]:
        """The newest runs of a verb over one store and shard that have ended, newest first."""
        statement = runs.newest_of_verb(verb, store_key, shard_index, shard_count, LOOKED_BACK)
        return [runs.run_of(row) for row in self._database.rows(statement)]
