"""The rows of a store as they travel between the rooms: plain values, blobs already decrypted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from repair_service.checkpoint.document import read_document


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """One row of `checkpoints`. `checkpoint` and `metadata` are the decoded JSON objects."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BlobRow:
    """One row of `checkpoint_blobs`.

    Attributes:
        channel: The channel.
        version: The version as text.
        type: The serialization type without a cipher's suffix (`msgpack`, `json`, `null`, `empty`).
        blob: The bytes; None where the row has none, or where they were not fetched.
        cipher: The cipher the stored bytes were encrypted with (`aes`), None for plain ones.
        problem: Why the bytes cannot be used (no key, wrong key), None where they can.
        left_out: Whether there are bytes that were not fetched because they do not begin as a list
            of messages does. Only a scan leaves any out.
    """

    channel: str
    version: str
    type: str
    blob: bytes | None
    cipher: str | None = None
    problem: str | None = None
    left_out: bool = False


@dataclass(frozen=True, slots=True)
class WriteRow:
    """One row of `checkpoint_writes`; `problem` and `cipher` as in BlobRow."""

    checkpoint_id: str
    task_id: str
    idx: int
    channel: str
    type: str
    blob: bytes
    task_path: str = ""
    cipher: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class HeadRows:
    """All that belongs to one checkpoint.

    Attributes:
        row: Its row.
        blobs: By channel, the blob of the version that the row names. A channel whose version has
            no row in `checkpoint_blobs` is missing here (inline value, or a blob that was lost).
        writes: Its pending writes, ordered by task_path, task_id, idx.
        parent_writes: The writes of its parent on `__pregel_tasks`, which is where layouts before
            version 4 keep the scheduled Sends; empty otherwise.
    """

    row: CheckpointRow
    blobs: Mapping[str, BlobRow]
    writes: tuple[WriteRow, ...] = ()
    parent_writes: tuple[WriteRow, ...] = ()


@dataclass(slots=True)
class ScannedHead:
    """A head as a scan meets it: most are passed over without being taken apart.

    Attributes:
        thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id: As in CheckpointRow.
        checkpoint, metadata: The JSON objects, as text.
        blobs, writes, parent_writes: As in HeadRows; of `blobs` large values may be left out.
        plain: Whether the documents are surely well formed, of format 4 of the Python library, and
            nothing is noted in them that the quick look cannot judge (checkpoint/quick.py).
    """

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    checkpoint: str
    metadata: str
    plain: bool
    blobs: dict[str, BlobRow]
    writes: tuple[WriteRow, ...] = ()
    parent_writes: tuple[WriteRow, ...] = ()

    def rows(self) -> HeadRows:
        """The same, taken apart."""
        row = CheckpointRow(
            thread_id=self.thread_id,
            checkpoint_ns=self.checkpoint_ns,
            checkpoint_id=self.checkpoint_id,
            parent_checkpoint_id=self.parent_checkpoint_id,
            checkpoint=read_document(self.checkpoint),
            metadata=read_document(self.metadata),
        )
        return HeadRows(row, self.blobs, self.writes, self.parent_writes)


@dataclass(frozen=True, slots=True)
class ThreadRows:
    """What is loaded of a thread once one of its heads looks damaged.

    Attributes:
        heads: The head of each namespace of the thread, by namespace.
        ancestors: By namespace, the checkpoints from the head's parent back along
            `parent_checkpoint_id`, nearest first. Their `blobs` hold at most the transcript
            channels that delta history needs; their `writes` are complete.
        pruned: The namespaces whose chain of ancestors breaks off at a parent that has no row.
    """

    heads: Mapping[str, HeadRows]
    ancestors: Mapping[str, tuple[HeadRows, ...]] = field(default_factory=dict)
    pruned: frozenset[str] = frozenset()
