"""A run's record in the ledger: findings in batches, a row for each patch, the quarantine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from repair_service.errors import Drifted, RepairFailed, UsageError
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.pattern import pattern_of
from repair_service.ledger.records.finding import Finding
from repair_service.ledger.records.repair import NewRepair, RemovedMessage
from repair_service.ledger.records.run import NewRun
from repair_service.repair.diagnosis import Diagnosis
from repair_service.store.encryption import encrypt
from repair_service.sweep.record import Also


class RunRecord:
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
        self._ledger = ledger
        self._run = run
        self._most_repairs = most_repairs
        self._writes = writes
        self._aes_key = aes_key
        self._findings = ledger.findings.recorder(run.id)

    def quarantined(self, thread_ids: Sequence[str]) -> frozenset[str]:
        """Those of the threads that are in quarantine."""
        return self._ledger.quarantine.among(self._run.store.key, thread_ids)

    def found(self, diagnosis: Diagnosis) -> None:
        """Take one head that is not healthy; recorded in batches."""
        self._findings.add(Finding.of(diagnosis))

    def flush(self) -> None:
        """Record what was taken so far."""
        self._findings.flush()

    def too_often(self, diagnosis: Diagnosis) -> bool:
        """Whether a thread was repaired too often for these faults; a sweep quarantines it then."""
        key, pattern = self._run.store.key, pattern_of(diagnosis.faults)
        count = self._ledger.quarantine.count_repairs(key, diagnosis.thread_id, pattern)
        if count < self._most_repairs:
            return False
        if self._writes:
            self._ledger.quarantine.add(
                key, diagnosis.thread_id, diagnosis.checkpoint_ns, pattern, count
            )
        return True

    @contextmanager
    def repairing(self, diagnosis: Diagnosis) -> Iterator[Also | None]:
        """Around the write of one patch: gives what belongs to its transaction."""
        repair = NewRepair.of(
            diagnosis, self._run.id, self._run.store.key, removed=self._removed(diagnosis)
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
        except (Drifted, RepairFailed, UsageError):
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
