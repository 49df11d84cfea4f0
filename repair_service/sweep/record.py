"""What a run leaves behind while it goes on: its findings, its repairs, its rails."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol
from uuid import UUID

from repair_service.ledger.records.base import Base
from repair_service.repair.diagnosis import Diagnosis
from repair_service.store.append import Also


class Record(Protocol):
    """Where a run's findings and repairs go."""

    @property
    def run_id(self) -> UUID | None:
        """The run in the ledger; None where nothing is kept."""

    def quarantined(self, thread_ids: Sequence[str]) -> frozenset[str]:
        """Those of the threads that were repaired so often that they are not repaired again."""

    def found(self, diagnosis: Diagnosis) -> None:
        """Take one head that is not healthy, with its outcome."""

    def too_often(self, diagnosis: Diagnosis) -> bool:
        """Whether a thread was repaired too often for these faults."""

    def repairing(self, diagnosis: Diagnosis) -> AbstractContextManager[Also | None]:
        """Around the write of one patch: gives what belongs to its transaction."""

    def not_final(self, base: Base, after: str | None) -> Iterator[str]:
        """The threads that a base left unfinished, in order, behind one of them."""


class NoRecord:
    """A run of which nothing is kept."""

    run_id = None

    def quarantined(self, thread_ids: Sequence[str]) -> frozenset[str]:
        """None of them: nobody counted."""
        return frozenset()

    def too_often(self, diagnosis: Diagnosis) -> bool:
        """No: nobody counted."""
        return False

    def found(self, diagnosis: Diagnosis) -> None:
        """Keeps nothing."""

    def not_final(self, base: Base, after: str | None) -> Iterator[str]:
        """None of them: nobody kept any."""
        return iter(())

    @contextmanager
    def repairing(self, diagnosis: Diagnosis) -> Iterator[Also | None]:
        """Adds nothing to the transaction."""
        yield None
