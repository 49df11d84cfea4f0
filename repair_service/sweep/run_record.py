"""A run's record in the ledger: findings in batches, a row for each patch, the quarantine."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import groupby
from typing import Any
from uuid import UUID

import psycopg

from repair_service.errors import Drifted, RepairFailed, Unreadable, UsageError
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.pattern import pattern_of
from repair_service.ledger.records.base import Base
from repair_service.ledger.records.finding import Finding
from repair_service.ledger.records.repair import NewRepair, RemovedMessage
from repair_service.ledger.records.run import NewRun
from repair_service.repair.diagnosis import Diagnosis
from repair_service.store.append import Also
from repair_service.store.encryption import encrypt


class Look:
    """A look before a run: knows the quarantine, and keeps nothing."""

    run_id: UUID | None = None

    def __init__(self, ledger: Ledger, store_key: str, *, most_repairs: int) -> None:
        """Nothing is asked yet.

        Args:
            ledger: The ledger.
            store_key: The store as the ledger knows it.
            most_repairs: How often a thread is repaired for one call pattern.
        """
        self._ledger = ledger
        self._store_key = store_key
        self._most_repairs = most_repairs

    def quarantined(self, thread_ids: Sequence[str]) -> frozenset[str]:
        """Those of the threads that are in quarantine."""
        return self._ledger.quarantine.among(self._store_key, thread_ids)

    def too_often(self, diagnosis: Diagnosis) -> bool:
        """Whether a thread was repaired too often for these faults."""
        return self._repairs_of(diagnosis) >= self._most_repairs

    def found(self, diagnosis: Diagnosis) -> None:
        """Keeps nothing."""

    def repairing(self, diagnosis: Diagnosis) -> AbstractContextManager[Also | None]:
        """Adds nothing to the transaction."""
        return nullcontext()

    def not_final(self, base: Base, after: str | None) -> Iterator[str]:
        """The threads that a base left unfinished, in order, behind one of them."""
        places = self._ledger.findings.not_final(base, self._store_key, after=after)
        return (thread for thread, _ in groupby(thread for thread, _ in places))

    def _repairs_of(self, diagnosis: Diagnosis) -> int:
        return self._ledger.quarantine.count_repairs(
            self._store_key, diagnosis.thread_id, pattern_of(diagnosis.faults)
        )


class RunRecord(Look):
    """A run's record in a ledger.

    A patch and its row are written in one transaction where both are in one database. Where the
    ledger is in another, the intent is recorded first, and settled or abandoned after: what a crash
    leaves open is settled by the next run (`settle.settle_intents`).
    """

    def __init__(
        self,
        ledger: Ledger,
        run: NewRun,
        *,
        most_repairs: int,
        writes: bool = True,
        aes_key: bytes | None = None,
    ) -> None:
        """Nothing is recorded yet; the run itself is opened and closed by the caller.

        Args:
            ledger: The ledger.
            run: The run, already opened.
            most_repairs: How often a thread is repaired for one call pattern before it is
                quarantined.
            writes: Whether the run writes; one that does not puts nothing into quarantine.
            aes_key: The store's key, with which removed messages of an encrypted store are kept.
        """
        super().__init__(ledger, run.store.key, most_repairs=most_repairs)
        self._run = run
        self.run_id = run.id
        self._writes = writes
        self._aes_key = aes_key
        self._findings = ledger.findings.recorder(run.id)

    def found(self, diagnosis: Diagnosis) -> None:
        """Take one head that is not healthy; recorded in batches."""
        self._findings.add(Finding.of(diagnosis))

    def flush(self) -> None:
        """Record what was taken so far."""
        self._findings.flush()

    def too_often(self, diagnosis: Diagnosis) -> bool:
        """Whether a thread was repaired too often for these faults; a sweep quarantines it then."""
        count = self._repairs_of(diagnosis)
        if count < self._most_repairs:
            return False
        if self._writes:
            thread_id, namespace = diagnosis.thread_id, diagnosis.checkpoint_ns
            pattern = pattern_of(diagnosis.faults)
            self._ledger.quarantine.add(self._store_key, thread_id, namespace, pattern, count)
        return True

    @contextmanager
    def repairing(self, diagnosis: Diagnosis) -> Iterator[Also | None]:
        """Around the write of one patch: gives what belongs to its transaction."""
        repair = NewRepair.of(
            diagnosis, self._run.id, self._store_key, removed=self._removed(diagnosis)
        )
        repairs = self._ledger.repairs
        if self._run.store.shared:

            def record(connection: "psycopg.Connection[Any]") -> None:
                repairs.record(connection, repair)

            yield record
            return
        intent = repairs.record(None, repair)
        try:
            yield None
        except (Drifted, RepairFailed, Unreadable, UsageError):
            # Each of them is said before the commit.
            repairs.abandon([intent])
            raise
        # Anything else may have come behind the commit: the intent stays open, to be looked up.
        repairs.settle([intent])

    def _removed(self, diagnosis: Diagnosis) -> tuple[RemovedMessage, ...]:
        """The messages that a patch takes out, encrypted where the store's are."""
        if diagnosis.patch is None:
            return ()
        return tuple(
            RemovedMessage(
                channel=each.channel,
                message_index=each.message_index,
                tool_call_id=each.tool_call_id,
                type=each.type if each.cipher is None else f"{each.type}+{each.cipher}",
                message=each.message
                if each.cipher is None
                else encrypt(each.cipher, each.message, self._aes_key),
            )
            for each in diagnosis.patch.removed
        )
