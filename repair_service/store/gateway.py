"""The door to a checkpoint store: scans its heads, loads threads, appends one checkpoint."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType

from repair_service.checkpoint.rows import (
    BlobRow,
    CheckpointRow,
    HeadRows,
    ScannedHead,
    ThreadRows,
    WriteRow,
)
from repair_service.errors import StoreForbidden, StoreNotUnderstood, StoreUnreachable
from repair_service.repair.diagnosis import Carried
from repair_service.store.activity import active_among
from repair_service.store.ahead import read_ahead
from repair_service.store.append import Also, Appending, NewRows, lock_thread
from repair_service.store.connection import Bounds, StoreConnection
from repair_service.store.encryption import check_key
from repair_service.store.facts import StoreFacts
from repair_service.store.history import HISTORY_DEPTH, History
from repair_service.store.inspection import inspect, sample_percent
from repair_service.store.load import ServerLoad
from repair_service.store.loading import Loader, Place, storable
from repair_service.store.notice import Notice
from repair_service.store.removal import Removing, WrittenPatch
from repair_service.store.replica import check_replica
from repair_service.store.scan import HeadScan, Shard, Walked, Wanted

BOUNDS = Bounds()

SAMPLED_BLOCKS = 512
"""Blocks of `checkpoints` that recent_threads looks at: 4 MB, some thousand checkpoints."""


class Store:
    """One checkpoint store, read and appended to over one connection, scanned over a second.

    A context manager. Every batch and every append is a transaction of its own. Not for use by
    several threads at once.
    """

    def __init__(self, connection: StoreConnection, aes_key: bytes | None) -> None:
        self._connection = connection
        self._aes_key = aes_key
        self._facts: StoreFacts | None = None

    @classmethod
    def connect(
        cls,
        database_url: str,
        *,
        schema: str = "public",
        aes_key: bytes | None = None,
        bounds: Bounds = BOUNDS,
        application_name: str = "repair-service",
        read_only: bool = False,
    ) -> "Store":
        """Opens a store.

        Args:
            database_url: Address of the database, a URL or libpq's `name=value` text.
            schema: The schema of the checkpoint tables, unquoted.
            aes_key: The key of encrypted rows, 16, 24 or 32 bytes; None where there is none.
            bounds: How long the server may take for a statement and for a lock.
            application_name: The name that the server shows for the connection.
            read_only: Refuse to append.

        Raises:
            UsageError: The address or the key cannot be meant.
            StoreUnreachable: There is no connection.
        """
        check_key(aes_key)
        return cls(
            StoreConnection(database_url, schema, application_name, bounds, read_only), aes_key
        )

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; an open transaction is undone."""
        self._connection.close()

    def inspect(self) -> StoreFacts:
        """Looks the store over: server, rights, tables, layout, types in use.

        Raises:
            StoreUnreachable: The connection was lost.
        """
        self._facts = inspect(self._connection)
        return self._facts

    def check_understood(self) -> StoreFacts:
        """Refuses a store that cannot be read as it is. Every other method asks this first.

        Raises:
            StoreNotUnderstood: A table is missing or its layout is not known.
            StoreForbidden: The role may not read one of the tables.
        """
        facts = self._facts or self.inspect()
        if facts.refusal is not None:
            raise StoreNotUnderstood(facts.refusal)
        unread = [name for name, table in facts.tables.items() if not table.may_select]
        if unread:
            raise StoreForbidden(
                f"The role {facts.role} may not read {', '.join(unread)} in {facts.target}. "
                f"Run as their owner: {' '.join(facts.rights_to_read())}"
            )
        return facts

    def check_writable(self, *, migrates: bool = False) -> StoreFacts:
        """Refuses a store that can be read and not written; for verbs that write.

        Args:
            migrates: Whether pending writes are inserted too, as a migration does.

        Raises:
            StoreNotUnderstood, StoreForbidden: As check_understood; or the role may not insert, or
                the server is a standby.
        """
        facts = self.check_understood()
        if facts.missing_rights:
            raise StoreForbidden(
                f"The role {facts.role} may not write in {facts.target}. "
                f"Run as the tables' owner: {' '.join(facts.missing_rights)}"
            )
        if migrates and (grant := facts.right_to_migrate()) is not None:
            raise StoreForbidden(
                f"A migration takes pending writes with it, and the role {facts.role} may not "
                f"insert them in {facts.target}. Run as the tables' owner: {grant}"
            )
        if facts.read_only:
            raise StoreForbidden(
                f"Nothing can be written in {facts.target}: it is a standby. "
                "Give the address of the primary."
            )
        return facts

    def check_replica(self, replica: "Store") -> None:
        """Refuses another store that is to be read in place of this one.

        Raises:
            UsageError: It is neither a replica of this one nor the same server.
            StoreError: One of them cannot be asked.
        """
        check_replica(self._connection, replica._connection)

    def load(self) -> ServerLoad:
        """What else the server has to do."""
        return ServerLoad(self._connection)

    def scan(
        self,
        *,
        threads: Sequence[str] = (),
        namespace: str | None = None,
        since: float | None = None,
        shard: Shard | None = None,
        batch_size: int | None = None,
        most: int | None = None,
    ) -> Iterator[list[ScannedHead]]:
        """The heads of the store, in batches, by thread and then by namespace.

        Args:
            threads, namespace, since, shard, batch_size, most: As for `walk`.

        Raises:
            StoreError: The store is not understood, forbidden, or the connection was lost.
        """
        asked = storable(threads) if threads else None
        wanted = Wanted(asked, namespace, since, shard)
        for walked in self.walk(wanted, batch_size=batch_size, most=most):
            if walked.heads:
                yield walked.heads
            del walked

    def walk(
        self,
        wanted: Wanted,
        *,
        after: str | None = None,
        batch_size: int | None = None,
        most: int | None = None,
    ) -> Iterator[Walked]:
        """The heads of the store, in batches, by thread and then by namespace.

        No history is read: the heads are found by a skip scan over the primary key. A batch holds
        whole threads, and more than `batch_size` heads only for a thread that has more alone.
        Large values that are no lists of messages are left out; `in_whole` fetches them. Where all
        threads are wanted, a second connection reads one batch ahead.

        Args:
            wanted: Which heads.
            after: Begin behind this thread; not asked where threads are named.
            batch_size: Heads a batch; None for as many as are read in about half a second.
            most: Of these, so many at most.

        Raises:
            StoreError: The store is not understood, forbidden, or the connection was lost.
        """
        self.check_understood()
        reading = self._second_connection() if wanted.threads is None else None
        if reading is None:
            scan = HeadScan(self._connection, self._loader(), wanted)
            yield from scan.walk(batch_size, after, most)
            return
        try:
            scan = HeadScan(reading, self._loader(reading), wanted)
            yield from read_ahead(scan.walk(batch_size, after, most), reading.cancel)
        finally:
            reading.close()

    def in_whole(self, heads: Sequence[ScannedHead]) -> list[HeadRows]:
        """Heads of a scan again, with every value; without those that are gone.

        Raises:
            StoreError: The store is not understood, forbidden, or the connection was lost.
        """
        self.check_understood()
        places = [Place(each.thread_id, each.checkpoint_ns, each.checkpoint_id) for each in heads]
        loader = self._loader()
        return self._connection.read(lambda: loader.head_rows(places))

    def writes_of_parents(self, heads: Sequence[ScannedHead]) -> list[tuple[WriteRow, ...]]:
        """For each head of a scan the pending writes of its parent; none where it has no parent.

        Raises:
            StoreError: The store is not understood, forbidden, or the connection was lost.
        """
        self.check_understood()
        places = [
            Place(each.thread_id, each.checkpoint_ns, each.parent_checkpoint_id or "")
            for each in heads
        ]
        loader = self._loader()
        return list(self._connection.read(lambda: loader.writes(places)).values())

    def threads(self, ids: Sequence[str], *, depth: int = HISTORY_DEPTH) -> dict[str, ThreadRows]:
        """Threads as a whole: every head with its ancestors, nearest first.

        Args:
            ids: The threads.
            depth: Ancestors a head at most. A delta channel's history is never cut off: where its
                stored value stands further back, the walk goes on to it.

        Returns:
            By id, the threads that exist.

        Raises:
            StoreError: The store is not understood, forbidden, or the connection was lost.
        """
        self.check_understood()
        wanted = storable(ids)
        if not wanted:
            return {}
        history = self._history()
        return self._connection.read(lambda: history.threads(wanted, depth))

    def recent_threads(self, limit: int) -> list[str]:
        """Ids of threads spread over the store, the most recently used first.

        The same store gives the same threads. Reads a bounded number of blocks.

        Raises:
            StoreError: The store is not understood, forbidden, or the connection was lost.
        """
        self.check_understood()

        def recent() -> list[str]:
            percent = sample_percent(self._connection, "checkpoints", SAMPLED_BLOCKS)
            rows = self._connection.rows("recent_threads", {"percent": percent, "limit": limit})
            return [row.thread_id for row in rows]

        return self._connection.read(recent)

    def active_threads(self, query: str, ids: Sequence[str]) -> frozenset[str]:
        """Those of the threads that run now, as the operator's own query names them.

        Args:
            query: A query whose first column is a thread's id; it cannot write.
            ids: The threads; none to see whether the query can be asked at all.

        Raises:
            UsageError: The query failed.
            StoreError: The connection was lost.
        """
        with self._connection.reading():
            return active_among(self._connection, query, ids)

    def append(
        self,
        row: CheckpointRow,
        blobs: Sequence[BlobRow],
        *,
        head_id: str,
        writes_digest: str,
        check: Callable[[ThreadRows], str | None],
        depth: int = HISTORY_DEPTH,
        also_heads: Mapping[str, str] | None = None,
        writes: Sequence[WriteRow] = (),
        below: Sequence[Carried] = (),
        also: Also | None = None,
        active_query: str | None = None,
        notice: Notice | None = None,
    ) -> None:
        """Adds one checkpoint behind a head, in one transaction, or changes nothing at all.

        Args:
            row: The new row of `checkpoints`.
            blobs: Its new rows of `checkpoint_blobs`, plain; one with a `cipher` is encrypted.
            head_id: The head that was diagnosed; it must still be the head.
            writes_digest: checkpoint.digest.writes_digest of the head's pending writes.
            check: Judges the thread as it reads with the new row in it; a text is the reason why it
                must not stay.
            depth: Ancestors a head that `check` asks for, as for `threads`.
            also_heads: By namespace, further heads of the thread that must still be heads.
            writes: Its new rows of `checkpoint_writes`, plain as the blobs are.
            below: The heads of sub-graphs that go with it into other namespaces.
            also: Run on the open connection before the commit; what it raises undoes all.
            active_query: As for `active_threads`: the thread must not be among them.
            notice: Told to who listens in the store's database, if and when it is committed.

        Raises:
            Drifted: The thread is not as it was diagnosed, runs, or another worker holds it.
            UsageError: `active_query` failed.
            RepairFailed: `check` gave a reason.
            Unreadable: A blob is to be encrypted and cannot be.
            StoreError: The store is not understood, forbidden, or the connection was lost. Then the
                rows are all there or none of them.
        """
        self.check_understood()
        new = NewRows(row, tuple(blobs), tuple(writes), tuple(below))
        Appending(self._connection, self._loader(), self._history(), self._aes_key).append(
            new, head_id, writes_digest, check, depth, also_heads or {}, also, active_query, notice
        )

    def take_back(
        self,
        patch: WrittenPatch,
        *,
        dry_run: bool = False,
        also: Also | None = None,
        active_query: str | None = None,
        notice: Notice | None = None,
    ) -> None:
        """Deletes the rows of one patch, in one transaction, while nothing stands on them.

        Args:
            patch: The keys of the rows that the patch wrote.
            dry_run: Only ask; delete nothing.
            also: Run on the open connection before the commit; what it raises undoes all.
            active_query: As for `active_threads`: the thread must not be among them.
            notice: Told to who listens in the store's database, if and when it is committed.

        Raises:
            UsageError: `active_query` failed.
            PatchGone: The patch is not in the store.
            Drifted: The thread has moved on, or another worker is at it.
            StoreError: The store is not understood, forbidden, or the connection was lost.
        """
        self.check_understood()
        Removing(self._connection, self._loader()).remove(
            patch, also, active_query, notice, dry_run=dry_run
        )

    def has_checkpoint(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> bool:
        """Whether a checkpoint is in the store, asked while none of our workers is at the thread.

        Raises:
            Drifted: A worker is at it, so the answer may change.
            StoreError: The store is not understood, forbidden, or the connection was lost.
        """
        self.check_understood()
        keys = {
            "thread_id": thread_id,
            "checkpoint_ns": checkpoint_ns,
            "checkpoint_id": checkpoint_id,
        }
        with self._connection.looking():
            lock_thread(self._connection, thread_id)
            return bool(self._connection.rows("checkpoint_exists", keys)[0].found)

    def _loader(self, connection: StoreConnection | None = None) -> Loader:
        facts = self.check_understood()
        return Loader(
            connection or self._connection, task_path=facts.has_task_path, aes_key=self._aes_key
        )

    def _second_connection(self) -> StoreConnection | None:
        """One to read ahead on; None where the server has no more of them for us."""
        try:
            return self._connection.another()
        except StoreUnreachable:
            return None

    def _history(self) -> History:
        return History(self._connection, self._loader())
