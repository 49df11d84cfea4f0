"""Rows of the database as the dataclasses that travel between the rooms."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from repair_service.checkpoint.quick import is_plain
from repair_service.checkpoint.rows import (
    BlobRow,
    CheckpointRow,
    HeadRows,
    ScannedHead,
    WriteRow,
)
from repair_service.checkpoint.triggers import SENDS
from repair_service.store.arrays import text_array
from repair_service.store.connection import StoreConnection
from repair_service.store.encryption import decrypt, split_type

_WRITE_ORDER = attrgetter("task_path", "task_id", "idx")

LARGE = 1024
"""Bytes. What is smaller is fetched without being looked at (queries/scanned.sql)."""


class Place(NamedTuple):
    """Where a checkpoint stands: its primary key."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str


def storable(texts: Iterable[str]) -> list[str]:
    """Those of some ids that Postgres can hold, once each: no NUL, no half of a surrogate pair.

    An id that is left out cannot be in the store.
    """
    return [text for text in dict.fromkeys(texts) if "\0" not in text and _is_text(text)]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Loader:
    """Reads rows in the transaction that is open on a connection, many places a statement."""

    def __init__(
        self, connection: StoreConnection, *, task_path: bool, aes_key: bytes | None
    ) -> None:
        self._connection = connection
        self._task_path = task_path
        self._aes_key = aes_key
        self._lists: set[str] = set()

    @property
    def task_path(self) -> bool:
        """Whether `checkpoint_writes` has that column."""
        return self._task_path

    def heads(self, threads: Sequence[str]) -> list[Place]:
        """The heads of some threads, by thread as asked, then by namespace."""
        namespaces: dict[str, list[Place]] = {thread: [] for thread in threads}
        for row in self._connection.rows("heads", {"threads": text_array(threads)}):
            namespaces[row.thread_id].append(Place(*row))
        # The walk goes down through the namespaces of a thread.
        return [place for places in namespaces.values() for place in reversed(places)]

    def scanned(self, places: Sequence[Place]) -> list[ScannedHead]:
        """What a scan needs of some heads, in their order; without those that are gone.

        Large values that are no lists of messages are left out.
        """
        found: dict[int, ScannedHead] = {}
        blobs: dict[int, dict[str, BlobRow]] = defaultdict(dict)
        values = {"lists": text_array(self._lists), **_keys(places)}
        for position, checkpoint, metadata, parent, channel, *blob in self._connection.tuples(
            "scanned", values
        ):
            if channel is not None:
                blobs[position][channel] = self._scanned_blob(channel, *blob)
                continue
            place = places[position - 1]
            plain = is_plain(checkpoint, metadata, place.checkpoint_id)
            of_head = blobs[position]
            found[position] = ScannedHead(
                place.thread_id,
                place.checkpoint_ns,
                place.checkpoint_id,
                parent,
                checkpoint,
                metadata,
                plain,
                of_head,
            )
        for index, writes in self.writes(places).items():
            if writes and index + 1 in found:
                found[index + 1].writes = writes
        # A plain head has its Sends itself.
        others = {places[index - 1]: head for index, head in found.items() if not head.plain}
        sends = self._parents_sends([head.rows().row for head in others.values()])
        for place, writes in sends.items():
            others[place].parent_writes = writes
        return [head for _, head in sorted(found.items())]

    def head_rows(self, places: Sequence[Place]) -> list[HeadRows]:
        """All that belongs to some checkpoints, in their order; without those that are gone."""
        keys = _keys(places)
        rows: dict[int, CheckpointRow] = {}
        for found in self._connection.rows("checkpoints", keys):
            index = found.position - 1
            rows[index] = CheckpointRow(
                thread_id=places[index].thread_id,
                checkpoint_ns=places[index].checkpoint_ns,
                checkpoint_id=places[index].checkpoint_id,
                parent_checkpoint_id=found.parent_checkpoint_id,
                checkpoint=found.checkpoint,
                metadata=found.metadata,
            )
        blobs = self._blobs(keys, len(places))
        writes = self.writes(places)
        sends = self._parents_sends(list(rows.values()))
        return [
            HeadRows(row, blobs[index], writes[index], sends.get(places[index], ()))
            for index, row in sorted(rows.items())
        ]

    def writes(
        self, places: Sequence[Place], channel: str | None = None
    ) -> dict[int, tuple[WriteRow, ...]]:
        """The pending writes of some checkpoints, by index into them.

        Args:
            places: The checkpoints.
            channel: Only this channel's writes; None for all.

        Returns:
            For each index (also one without writes) its rows by task_path, task_id, idx: the order
            of langgraph.checkpoint.base.writes_sort_key, by code points and not by a collation.
        """
        found: dict[int, list[WriteRow]] = defaultdict(list)
        values = {"channel": channel, **_keys(places)}
        for row in self._connection.rows("writes", values, task_path=self._task_path):
            found[row.position - 1].append(self._write_row(places[row.position - 1], row))
        return {
            index: tuple(sorted(found[index], key=_WRITE_ORDER)) if index in found else ()
            for index in range(len(places))
        }

    def blob_row(
        self,
        channel: str,
        version: str,
        stored: str,
        blob: bytes | None,
        *,
        left_out: bool = False,
    ) -> BlobRow:
        """A row of `checkpoint_blobs`, decrypted where it has bytes and the key is there."""
        plain, cipher = split_type(stored)
        problem = None
        if cipher is not None and blob is not None:
            blob, problem = decrypt(cipher, blob, self._aes_key)
        return BlobRow(channel, version, plain, blob, cipher, problem, left_out)

    def _write_row(self, place: Place, row: Any) -> WriteRow:
        _, task_id, idx, channel, stored, blob, path = row
        plain, cipher = split_type(stored)
        problem = None
        if cipher is not None:
            blob, problem = decrypt(cipher, blob, self._aes_key)
        return WriteRow(
            place.checkpoint_id, task_id, idx, channel, plain, blob, path or "", cipher, problem
        )

    def _blobs(self, keys: Mapping[str, str], count: int) -> list[dict[str, BlobRow]]:
        blobs: list[dict[str, BlobRow]] = [{} for _ in range(count)]
        for position, channel, *blob in self._connection.tuples("blobs", keys):
            blobs[position - 1][channel] = self.blob_row(channel, *blob)
        return blobs

    def _scanned_blob(
        self, channel: str, version: str, stored: str, blob: bytes | None, left_out: bool
    ) -> BlobRow:
        if blob is not None and len(blob) >= LARGE:
            self._lists.add(channel)
        return self.blob_row(channel, version, stored, blob, left_out=left_out)

    def _parents_sends(self, rows: Sequence[CheckpointRow]) -> dict[Place, tuple[WriteRow, ...]]:
        """By head, its parent's scheduled Sends, for layouts that keep them there."""
        heads: list[Place] = []
        parents: list[Place] = []
        for row in rows:
            if row.parent_checkpoint_id is not None and keeps_sends_at_parent(row):
                heads.append(Place(row.thread_id, row.checkpoint_ns, row.checkpoint_id))
                parents.append(Place(row.thread_id, row.checkpoint_ns, row.parent_checkpoint_id))
        if not parents:
            return {}
        writes = self.writes(parents, channel=SENDS)
        return {head: writes[index] for index, head in enumerate(heads)}


def keeps_sends_at_parent(row: CheckpointRow) -> bool:
    """Whether scheduled Sends may be in the parent's writes: before v 4, and in LangGraph.js.

    LangGraph.js is known by its channel versions, which are numbers. A document that says nothing
    of all this may keep them there too; judging it is not the store's business.
    """
    document: Any = row.checkpoint
    if not isinstance(document, dict):
        return True
    version = document.get("v")
    if not isinstance(version, int) or version < 4:
        return True
    versions = document.get("channel_versions")
    return isinstance(versions, dict) and any(
        isinstance(each, (int, float)) for each in versions.values()
    )


def _keys(places: Sequence[Place]) -> dict[str, str]:
    """The parameters of a statement that looks up checkpoints by primary key."""
    return {
        "threads": text_array(place.thread_id for place in places),
        "namespaces": text_array(place.checkpoint_ns for place in places),
        "checkpoints": text_array(place.checkpoint_id for place in places),
    }
