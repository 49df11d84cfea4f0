"""Findings: the heads that a run did not find healthy, with their evidence."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import Any
from uuid import UUID

from sqlalchemy import Select

from repair_service.errors import LedgerError
from repair_service.ledger.database import PAGE, Database
from repair_service.ledger.records.base import CLOCKS, LATE, Base
from repair_service.ledger.records.finding import Finding
from repair_service.ledger.statements import findings

BATCH = 500
"""Findings a transaction: half a megabyte at most, and a round trip each few thousand heads."""

BEHIND_NAMESPACES = "\U0010ffff"
"""Stands behind every namespace of a thread, by its bytes."""


class Findings:
    """The findings in the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, run_id: UUID, found: Iterable[Finding]) -> int:
        """Record heads that were not healthy, BATCH at a time; returns how many.

        The same head recorded again in the same run replaces what was recorded before.
        """
        count = 0
        remaining = iter(found)
        while batch := list(islice(remaining, BATCH)):
            # A statement may not meet one row twice, and two writers meet rows in one order.
            rows = {(each.thread_id, each.checkpoint_ns): each for each in batch}
            values = [findings.finding_values(run_id, rows[place]) for place in sorted(rows)]
            with self._database.transaction() as connection:
                connection.execute(findings.upsert_finding(), values)
            count += len(batch)
        return count

    def recorder(self, run_id: UUID) -> "FindingRecorder":
        """Takes the findings of a run one by one, and records them in batches."""
        return FindingRecorder(self, run_id)

    def page(
        self, run_id: UUID, *, after: tuple[str, str] | None = None, limit: int = PAGE
    ) -> list[Finding]:
        """One page of a run's findings, by thread and namespace.

        Args:
            run_id: The run.
            after: Thread and namespace of the last finding of the page before; None for the first.
            limit: How many at most.
        """
        rows = self._database.rows(findings.findings_page(run_id, after, limit))
        return [findings.finding_of(row) for row in rows]

    def all(self, run_id: UUID) -> Iterator[Finding]:
        """All of a run's findings, a page at a time."""
        pages = self._database.pages(
            lambda after: findings.findings_page(run_id, after, PAGE),
            lambda row: (row.thread_id, row.checkpoint_ns),
        )
        return map(findings.finding_of, pages)

    def not_final(
        self, base: Base, store_key: str, *, after: str | None = None
    ) -> Iterator[tuple[str, str]]:
        """The threads and namespaces to look at again though their heads are older than a run.

        Those that it did not find healthy, those whose patch was taken back since it began, and
        those that were repaired within LATE before it or since. The last two are of every shard.

        Args:
            base: What an incremental run goes on from (`Runs.last_completed_sweep`).
            store_key: The store.
            after: Begin behind this thread.
        """
        begun = base.began_at - CLOCKS

        def page(behind: tuple[str, str] | None) -> Select[Any]:
            if behind is None and after is not None:
                behind = (after, BEHIND_NAMESPACES)
            return findings.not_final_page(base.runs, store_key, begun, begun - LATE, behind, PAGE)

        rows = self._database.pages(page, lambda row: (row.thread_id, row.checkpoint_ns))
        return ((row.thread_id, row.checkpoint_ns) for row in rows)

    def forget(self, before: datetime) -> int:
        """Let go of the findings of runs older than that; returns how many.

        Runs and repairs stay, and the findings that the next incremental sweep needs.
        """
        with self._database.transaction() as connection:
            return connection.execute(findings.forget_findings(before)).rowcount


class FindingRecorder:
    """Takes the findings of a run one by one, and records them in batches.

    A context manager: what is left is recorded on the way out, also where something went wrong.
    """

    def __init__(self, findings: Findings, run_id: UUID) -> None:
        self._findings = findings
        self._run_id = run_id
        self._waiting: list[Finding] = []

    def __enter__(self) -> "FindingRecorder":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.flush()
            return
        # What went wrong first is what is to be reported.
        with suppress(LedgerError):
            self.flush()

    def add(self, finding: Finding) -> None:
        """Take one finding."""
        self._waiting.append(finding)
        if len(self._waiting) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Record what was taken so far."""
        waiting, self._waiting = self._waiting, []
        self._findings.record(self._run_id, waiting)
