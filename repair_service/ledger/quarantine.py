"""Threads that were repaired so often for one call pattern that they are not repaired again."""

from collections.abc import Iterator, Sequence

from repair_service.ledger.database import PAGE, Database
from repair_service.ledger.records.rails import Quarantined
from repair_service.ledger.statements import quarantine


class Quarantine:
    """The quarantine in the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count_repairs(self, store_key: str, thread_id: str, pattern: str) -> int:
        """In how many runs a thread was repaired for a call pattern, since it was last released.

        Args:
            store_key: The store.
            thread_id: The thread.
            pattern: The pattern of its faults (`pattern.pattern_of`).
        """
        with self._database.transaction() as connection:
            statement = quarantine.count_repairs(store_key, thread_id, pattern)
            return connection.scalar(statement) or 0

    def add(
        self, store_key: str, thread_id: str, checkpoint_ns: str, pattern: str, count: int
    ) -> None:
        """Put a thread into quarantine; one that is in stays in."""
        with self._database.transaction() as connection:
            connection.execute(
                quarantine.upsert_quarantine(store_key, thread_id, checkpoint_ns, pattern, count)
            )

    def among(self, store_key: str, thread_ids: Sequence[str]) -> frozenset[str]:
        """Those of the threads that are in quarantine."""
        with self._database.transaction() as connection:
            statement = quarantine.quarantined_among(store_key, thread_ids)
            return frozenset(connection.scalars(statement))

    def all(self, store_key: str) -> Iterator[Quarantined]:
        """What is in quarantine, by thread and pattern."""
        pages = self._database.pages(
            lambda after: quarantine.quarantine_page(store_key, after, PAGE),
            lambda row: (row.thread_id, row.pattern),
        )
        return map(quarantine.quarantined_of, pages)

    def release(self, store_key: str, thread_id: str, *, by: str) -> bool:
        """Take a thread out of quarantine; its repairs are counted anew. False if it was not in."""
        return self._database.write(None, quarantine.release(store_key, thread_id, by)) > 0
