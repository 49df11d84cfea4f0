"""The one write: a new checkpoint behind a head, or nothing."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors
from psycopg.types.json import Jsonb

from repair_service.checkpoint.digest import writes_digest as digest_of
from repair_service.checkpoint.rows import BlobRow, CheckpointRow, ThreadRows, WriteRow
from repair_service.errors import Drifted, RepairFailed, StoreForbidden
from repair_service.repair.diagnosis import Carried
from repair_service.store.activity import active_among
from repair_service.store.connection import StoreConnection
from repair_service.store.encryption import encrypt
from repair_service.store.history import History
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


NEEDS_INSERT = (
    "The role may not insert what a patch is made of. Run `repair-service doctor`: it names the "
    "missing GRANT."
)
NEEDS_WRITES = (
    "A migration takes pending writes with it, so it needs a right that a repair does not. As the "
    "tables' owner, run GRANT INSERT ON checkpoint_writes TO role; nothing was written."
)

Part = tuple[CheckpointRow, BlobRow | WriteRow | None]
"""A row to be inserted: what belongs to a checkpoint, or, with None, the checkpoint itself."""


@dataclass(frozen=True, slots=True)
class NewRows:
    """The rows of one patch."""

    row: CheckpointRow
    blobs: tuple[BlobRow, ...]
    writes: tuple[WriteRow, ...] = ()
    below: tuple[Carried, ...] = ()

    @property
    def has_writes(self) -> bool:
        """Whether any of them is a pending write."""
        return bool(self.writes) or any(carried.writes for carried in self.below)

    def parts(self) -> Iterator[Part]:
        """The rows one by one, each checkpoint behind its values and before its writes."""
        heads = [(self.row, self.blobs, self.writes)]
        heads += [(each.row, each.blobs, each.writes) for each in self.below]
        for row, blobs, writes in heads:
            yield from ((row, blob) for blob in blobs)
            yield row, None
            yield from ((row, write) for write in writes)


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
        new: NewRows,
        head_id: str,
        writes_digest: str,
        check: Check,
        depth: int,
        also_heads: Mapping[str, str],
        also: Also | None,
        active_query: str | None,
        notice: Notice | None,
    ) -> None:
        """Compares, inserts, reads back, judges and commits, in one transaction."""
        row = new.row
        stored = [(part, self._stored_bytes(part)) for part in new.parts()]
        with self._connection.writing():
            try:
                lock_thread(self._connection, row.thread_id)
                self._compare(new, head_id, writes_digest, also_heads)
                for part, data in stored:
                    self._insert(part, data)
                self._judge(row, check, depth)
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
            except errors.InsufficientPrivilege:
                raise StoreForbidden(NEEDS_WRITES if new.has_writes else NEEDS_INSERT) from None
            except REFUSED as refusal:
                raise RepairFailed(
                    f"The database refused the patch (SQLSTATE {refusal.sqlstate}), by a limit, a "
                    "constraint or a trigger; nothing was written. The server's log says more."
                ) from None

    def _compare(
        self, new: NewRows, head_id: str, writes_digest: str, also_heads: Mapping[str, str]
    ) -> None:
        thread_id, namespace = new.row.thread_id, new.row.checkpoint_ns
        heads = {
            place.checkpoint_ns: place.checkpoint_id for place in self._loader.heads([thread_id])
        }
        if heads.get(namespace) != head_id:
            raise Drifted("The thread has a newer checkpoint than was diagnosed; nothing written.")
        for name, expected in also_heads.items():
            if heads.get(name) != expected:
                raise Drifted(
                    "The graph around the sub-graph has a newer checkpoint than was diagnosed; "
                    "nothing was written."
                )
        for carried in new.below:
            if heads.get(carried.from_namespace) != carried.from_id:
                raise Drifted(
                    "A sub-graph below has a newer checkpoint than was diagnosed; nothing was "
                    "written."
                )
        places = [Place(thread_id, namespace, head_id)]
        places += [Place(thread_id, each.from_namespace, each.from_id) for each in new.below]
        expected_digests = [writes_digest, *(each.from_digest for each in new.below)]
        found = self._loader.writes(places)
        if [digest_of(found[index]) for index in range(len(places))] != expected_digests:
            raise Drifted("The head's pending writes are not those diagnosed; nothing was written.")

    def _insert(self, part: Part, data: bytes | None) -> None:
        row, new = part
        if isinstance(new, BlobRow):
            self._insert_blob(row, new, data)
        elif isinstance(new, WriteRow):
            self._insert_write(row, new, data)
        else:
            self._insert_checkpoint(row)

    def _insert_write(self, row: CheckpointRow, write: WriteRow, data: bytes | None) -> None:
        statement = "insert_write" if self._loader.task_path else "insert_write_without_path"
        inserted = self._connection.change(
            statement,
            {
                "thread_id": row.thread_id,
                "checkpoint_ns": row.checkpoint_ns,
                "checkpoint_id": row.checkpoint_id,
                "task_id": write.task_id,
                "idx": write.idx,
                "channel": write.channel,
                "type": _stored_type(write),
                "blob": data,
                "task_path": write.task_path,
            },
        )
        if inserted != 1:
            raise Drifted("A pending write meant for the patch is there already; nothing written.")

    def _insert_blob(self, row: CheckpointRow, blob: BlobRow, data: bytes | None) -> None:
        inserted = self._connection.change(
            "insert_blob",
            {
                "thread_id": row.thread_id,
                "checkpoint_ns": row.checkpoint_ns,
                "channel": blob.channel,
                "version": blob.version,
                "type": _stored_type(blob),
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

    def _judge(self, row: CheckpointRow, check: Check, depth: int) -> None:
        """Reads the thread back, with the patch in it, and lets `check` judge it."""
        thread = self._history.threads([row.thread_id], depth)[row.thread_id]
        if thread.heads[row.checkpoint_ns].row.checkpoint_id != row.checkpoint_id:
            # A live run went on in the meantime and wins; the patch would be an unused sibling.
            raise Drifted("The thread went on while it was being patched; nothing was written.")
        if reason := check(thread):
            raise RepairFailed(f"The patch did not read back as healthy; rolled back: {reason}")

    def _stored_bytes(self, part: Part) -> bytes | None:
        value = part[1]
        if value is None or value.blob is None or value.cipher is None:
            return None if value is None else value.blob
        return encrypt(value.cipher, value.blob, self._aes_key)


def _stored_type(value: BlobRow | WriteRow) -> str:
    return value.type if value.cipher is None else f"{value.type}+{value.cipher}"


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
