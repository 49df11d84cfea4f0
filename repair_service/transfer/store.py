"""One side of a copy: a checkpoint store in Postgres, over one connection."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from repair_service.errors import StoreForbidden, StoreNotUnderstood
from repair_service.store.connection import StoreConnection
from repair_service.store.facts import StoreFacts
from repair_service.store.history import History
from repair_service.store.inspection import inspect
from repair_service.store.loading import Loader, Place
from repair_service.store.scan import Shard, shard_of
from repair_service.transfer.tables import COPIED_TABLES, CopiedTable
from repair_service.transfer.wire import END, HEADER, rows_of

STATEMENT_TIMEOUT = 600_000
"""Milliseconds: one thread's rows may be gigabytes, and are read by one statement."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of some threads is copied.

    Attributes:
        threads: The threads.
        places: Their checkpoints, where not all are copied.
    """

    threads: Sequence[str]
    places: Sequence[Place] | None = None


class Source(Protocol):
    """Where threads come from."""

    def next_threads(self, after: str | None, limit: int) -> list[str]:
        """The threads behind one; none at the end."""

    def heads(self, threads: Sequence[str]) -> Iterator[tuple[str, str]]:
        """For each head of some threads its thread and its id."""

    def choose(self, threads: Sequence[str], *, heads_only: bool) -> Chosen:
        """What is to be copied of some threads."""

    def rows(self, table: CopiedTable, chosen: Chosen) -> Iterator[bytes]:
        """Their rows of one table, as COPY has them."""

    def cancel(self) -> None:
        """End what runs; may be called from another thread."""


class CopiedStore:
    """A store that threads are copied out of, or into."""

    def __init__(self, connection: StoreConnection) -> None:
        """Look the store over.

        Args:
            connection: The connection; closed by its owner.

        Raises:
            StoreNotUnderstood: It is no store that is understood.
            StoreForbidden: The role may not read it.
            StoreUnreachable: The connection was lost.
        """
        self.connection = connection
        self.facts: StoreFacts = inspect(connection)
        if self.facts.refusal is not None:
            raise StoreNotUnderstood(self.facts.refusal)
        if lacking := self.facts.rights_to_read():
            raise StoreForbidden(
                f"The role {self.facts.role} may not read {self.facts.target}. "
                f"Run as the tables' owner: {' '.join(lacking)}"
            )
        self._task_path = self.facts.has_task_path

    def check_takes_rows(self) -> None:
        """Refuse a store that rows cannot be copied into.

        Raises:
            StoreForbidden: The role may not insert, or the server is a standby.
            StoreNotUnderstood: Its tables are older than the rows.
        """
        if self.facts.read_only:
            raise StoreForbidden(
                f"Nothing can be written in {self.facts.target}: it is a standby. "
                "Give the address of the primary."
            )
        for table in COPIED_TABLES:
            if not self.facts.tables[table.name].may_insert:
                raise StoreForbidden(
                    f"The role {self.facts.role} may not write {table.name} in "
                    f"{self.facts.target}; GRANT INSERT on the three tables to it."
                )
        if not self._task_path:
            raise StoreNotUnderstood(
                f"The tables in {self.facts.target} have no column task_path; bring them forward "
                "first: repair-service store upgrade."
            )

    def next_threads(self, after: str | None, limit: int) -> list[str]:
        """The threads behind one, in the order of the primary key; none at the end.

        Raises:
            StoreUnreachable: The connection was lost.
        """
        values = {"after": after, "limit": limit}
        with self.connection.reading():
            return [row.thread_id for row in self.connection.rows("next_threads", values)]

    def heads(self, threads: Sequence[str]) -> Iterator[tuple[str, str]]:
        """For each head of some threads its thread and its id; asked in the open transaction."""
        loader = Loader(self.connection, task_path=self._task_path, aes_key=None)
        for place in loader.heads(threads):
            yield place.thread_id, place.checkpoint_id

    def known(self, threads: Sequence[str]) -> frozenset[str]:
        """Those of some threads that have rows here; asked in the open transaction."""
        rows = self.connection.rows("known_threads", {"threads": list(threads)})
        return frozenset(row.thread_id for row in rows)

    def choose(self, threads: Sequence[str], *, heads_only: bool) -> Chosen:
        """What is to be copied of some threads; asked in the open transaction.

        Args:
            threads: The threads.
            heads_only: Only their heads; and for a channel whose value is kept as a history of
                changes, the checkpoints back to its last whole value.
        """
        if not heads_only:
            return Chosen(threads)
        loader = Loader(self.connection, task_path=self._task_path, aes_key=None)
        places = []
        for thread in History(self.connection, loader).threads(threads, 0).values():
            for namespace, head in thread.heads.items():
                rows = (head, *thread.ancestors.get(namespace, ()))
                places += [
                    Place(each.row.thread_id, namespace, each.row.checkpoint_id) for each in rows
                ]
        return Chosen(threads, places)

    def rows(self, table: CopiedTable, chosen: Chosen) -> Iterator[bytes]:
        """Rows of one table, read in the open transaction."""
        if chosen.places is None:
            values = {"threads": list(chosen.threads)}
            name = f"copied_{table.name}"
        else:
            values = {
                "threads": [place.thread_id for place in chosen.places],
                "namespaces": [place.checkpoint_ns for place in chosen.places],
                "checkpoints": [place.checkpoint_id for place in chosen.places],
            }
            name = f"chosen_{table.name}"
        with self.connection.copying(name, values, task_path=self._task_path) as copy:
            yield from rows_of(copy)

    def cancel(self) -> None:
        """End the statement that runs; may be called from another thread."""
        self.connection.cancel()

    def write(self, table: CopiedTable, rows: Iterable[bytes]) -> None:
        """Add rows to one table in the open transaction.

        Raises:
            psycopg.Error: As the server says it; the transaction explains it.
        """
        with self.connection.copying(f"copy_{table.name}") as copy:
            copy.write(HEADER)
            for row in rows:
                copy.write(row)
            copy.write(END)


def in_shard(threads: Sequence[str], shard: Shard | None) -> list[str]:
    """The threads of one shard: its number, from 0, and how many there are."""
    if shard is None:
        return list(threads)
    return [each for each in threads if shard_of(each, shard[1]) == shard[0]]
