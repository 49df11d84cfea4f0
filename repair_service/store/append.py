"""The one write: a new checkpoint behind a head, or nothing."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import errors
from psycopg.types.json import Jsonb

from repair_service.checkpoint.digest import writes_digest as digest_of
from repair_service.checkpoint.rows import BlobRow, CheckpointRow, ThreadRows
from repair_service.errors import Drifted, RepairFailed
from repair_service.store.activity import active_among
from repair_service.store.connection import StoreConnection
from repair_service.store.encryption import encrypt
from repair_service.store.history import HISTORY_DEPTH, History
from repair_service.store.loading import Loader, Place
from repair_service.store.notice import Notice

LOCK_SPACE = 0x52504152
"""First key of our advisory locks ("RPAR"), so that they do not meet the application's."""

RUNS_NOW = "The application says that the thread runs now (--active-query); nothing was written."

REFUSED = (
    errors.IntegrityError,
    errors.DataError,
    errors.ProgramLimitExceeded,
    errors.RaiseException,
)
"""What the database says against one row, and not against the next thread's."""

Check = Callable[[ThreadRows], str | None]

Also = Callable[["psycopg.Connection[Any]"], None]
"""What else belongs to the transaction of an append: a row of a ledger in the same database."""


class Appending:
    """Appends one checkpoint over a connection; see Store.append."""

    def __init__(
        self,
        connection: StoreConnection,
        loader: Loader,
        history: History,
        aes_key: bytes | None,
    ) -> None:
        self._connection = connection
        self._loader = loader
        self._history = history
        self._aes_key = aes_key

    def append(
        self,
        row: CheckpointRow,
        blobs: Sequence[BlobRow],
        head_id: str,
        writes_digest: str,
        check: Check,
        also_heads: Mapping[str, str],
        also: Also | None,
        active_query: str | None,
        notice: Notice | None,
    ) -> None:
        """Compares, inserts, reads back, judges and commits, in one transaction."""
        stored = [(blob, self._stored_bytes(blob)) for blob in blobs]
        with self._connection.writing():
            try:
                lock_thread(self._connection, row.thread_id)
                self._compare(row, head_id, writes_digest, also_heads)
                for blob, data in stored:
                    self._insert_blob(row, blob, data)
                self._insert_checkpoint(row)
                self._judge(row, check)
                # The last thing before the commit: a run may have begun since it was asked first.
                if active_query and active_among(self._connection, active_query, [row.thread_id]):
                    raise Drifted(RUNS_NOW)
                if also is not None:
                    self._connection.hand_over(also)
                if notice is not None:
                    self._connection.notify(notice)
            except errors.LockNotAvailable:
                raise Drifted(
                    "A table is locked by somebody else (a migration?), for longer than "
                    "--lock-timeout; nothing was written. Try again when it has ended."
                ) from None
            except REFUSED as refusal:
                raise RepairFailed(
                    f"The database refused the patch (SQLSTATE {refusal.sqlstate}), by a limit, a "
                    "constraint or a trigger; nothing was written. The server's log says more."
                ) from None

    def _compare(
        self, row: CheckpointRow, head_id: str, writes_digest: str, also_heads: Mapping[str, str]
    ) -> None:
        heads = {
            place.checkpoint_ns: place.checkpoint_id
            for place in self._loader.heads([row.thread_id])
        }
        if heads.get(row.checkpoint_ns) != head_id:
            raise Drifted("The thread has a newer checkpoint than was diagnosed; nothing written.")
        for namespace, expected in also_heads.items():
            if heads.get(namespace) != expected:
                raise Drifted(
                    "The graph around the sub-graph has a newer checkpoint than was diagnosed; "
                    "nothing was written."
                )
        head = Place(row.thread_id, row.checkpoint_ns, head_id)
        if digest_of(self._loader.writes([head])[0]) != writes_digest:
            raise Drifted("The head's pending writes are not those diagnosed; nothing was written.")

    def _insert_blob(self, row: CheckpointRow, blob: BlobRow, data: bytes | None) -> None:
        inserted = self._connection.change(
            "insert_blob",
            {
                "thread_id": row.thread_id,
                "checkpoint_ns": row.checkpoint_ns,
                "channel": blob.channel,
                "version": blob.version,
                "type": blob.type if blob.cipher is None else f"{blob.type}+{blob.cipher}",
                "blob": data,
            },
        )
        if inserted != 1:
            raise Drifted(
                f"The channel {blob.channel} has a value of the version meant for the patch; "
                "nothing was written."
            )

    def _insert_checkpoint(self, row: CheckpointRow) -> None:
        inserted = self._connection.change(
            "insert_checkpoint",
            {
                "thread_id": row.thread_id,
                "checkpoint_ns": row.checkpoint_ns,
                "checkpoint_id": row.checkpoint_id,
                "parent_checkpoint_id": row.parent_checkpoint_id,
                "checkpoint": Jsonb(row.checkpoint),
                "metadata": Jsonb(row.metadata),
            },
        )
        if inserted != 1:
            raise Drifted("A checkpoint of the patch's id is there already; nothing was written.")

    def _judge(self, row: CheckpointRow, check: Check) -> None:
        """Reads the thread back, with the patch in it, and lets `check` judge it."""
        # With as much of its history as it was diagnosed by.
        thread = self._history.threads([row.thread_id], HISTORY_DEPTH)[row.thread_id]
        if thread.heads[row.checkpoint_ns].row.checkpoint_id != row.checkpoint_id:
            # A live run went on in the meantime and wins; the patch would be an unused sibling.
            raise Drifted("The thread went on while it was being patched; nothing was written.")
        if reason := check(thread):
            raise RepairFailed(f"The patch did not read back as healthy; rolled back: {reason}")

    def _stored_bytes(self, blob: BlobRow) -> bytes | None:
        if blob.blob is None or blob.cipher is None:
            return blob.blob
        return encrypt(blob.cipher, blob.blob, self._aes_key)


def lock_thread(connection: StoreConnection, thread_id: str) -> None:
    """Excludes our other workers from a thread until the open transaction ends.

    Raises:
        Drifted: Another worker is at it.
    """
    keys = {"space": LOCK_SPACE, "thread": lock_key(connection.schema, thread_id)}
    if not connection.rows("try_lock_thread", keys)[0].locked:
        raise Drifted(
            "Another worker is at this thread; nothing was written. Look at it again later."
        )


def lock_key(schema: str, thread_id: str) -> int:
    """The second key of a thread's advisory lock: 32 bits of a hash, signed as an integer is."""
    hashed = hashlib.blake2b(f"{schema}\0{thread_id}".encode(), digest_size=4).digest()
    return int.from_bytes(hashed, "big", signed=True)
