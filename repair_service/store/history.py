"""Threads as a whole: heads, ancestors, and the stored values that delta history starts from."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from repair_service.checkpoint.rows import BlobRow, CheckpointRow, HeadRows, ThreadRows
from repair_service.checkpoint.triggers import SENDS
from repair_service.store.connection import StoreConnection
from repair_service.store.loading import Loader, Place, keeps_sends_at_parent

HISTORY_DEPTH = 500
"""Ancestors of a head that a thread is judged by, unless a reader asks for fewer."""


@dataclass(slots=True)
class Chain:
    """The walk from one head back along its parents, while it goes on.

    Attributes:
        head: Where it starts.
        rows: The ancestors read so far, nearest first.
        blobs: By index into `rows`, the stored values that delta history starts from.
        unseeded: The delta channels for which no stored value was met yet.
        broken: Whether the next ancestor has no row (or was met before).
    """

    head: HeadRows
    rows: list[CheckpointRow] = field(default_factory=list)
    blobs: dict[int, dict[str, BlobRow]] = field(default_factory=dict)
    unseeded: set[str] = field(default_factory=set)
    broken: bool = False

    @property
    def next_id(self) -> str | None:
        """The ancestor to be read next; None at the root and where the chain is broken."""
        last = self.rows[-1] if self.rows else self.head.row
        return None if self.broken else last.parent_checkpoint_id


class History:
    """Loads whole threads in the transaction that is open on a connection."""

    def __init__(self, connection: StoreConnection, loader: Loader) -> None:
        self._connection = connection
        self._loader = loader

    def threads(self, ids: Sequence[str], depth: int) -> dict[str, ThreadRows]:
        """The threads that exist, with at most `depth` ancestors a head.

        A walk goes on behind `depth` as long as a delta channel has not met a stored value: a
        delta history with its beginning cut off would read as a shorter list.
        """
        heads = self._loader.head_rows(self._loader.heads(ids))
        chains = [Chain(head, unseeded=_delta_channels(head)) for head in heads]
        walking = chains if depth > 0 else [chain for chain in chains if chain.unseeded]
        while walking := [chain for chain in walking if chain.next_id is not None]:
            self._walk(walking, max(depth, 1))
            walking = [chain for chain in walking if chain.unseeded]
        ancestors = self._ancestors(chains)
        found: dict[str, list[int]] = {}
        for index, chain in enumerate(chains):
            found.setdefault(chain.head.row.thread_id, []).append(index)
        return {
            thread: ThreadRows(
                heads={chains[i].head.row.checkpoint_ns: chains[i].head for i in indexes},
                ancestors={chains[i].head.row.checkpoint_ns: ancestors[i] for i in indexes},
                pruned=frozenset(
                    chains[i].head.row.checkpoint_ns for i in indexes if chains[i].broken
                ),
            )
            for thread, indexes in found.items()
        }

    def _walk(self, chains: Sequence[Chain], depth: int) -> None:
        """Reads up to `depth` more ancestors of each chain, and seeks delta values in them."""
        before = [len(chain.rows) for chain in chains]
        for found in self._connection.rows(
            "ancestors",
            {
                "threads": [chain.head.row.thread_id for chain in chains],
                "namespaces": [chain.head.row.checkpoint_ns for chain in chains],
                "checkpoints": [chain.next_id for chain in chains],
                "depth": depth,
            },
        ):
            row = chains[found.position - 1].head.row
            chains[found.position - 1].rows.append(
                CheckpointRow(
                    thread_id=row.thread_id,
                    checkpoint_ns=row.checkpoint_ns,
                    checkpoint_id=found.checkpoint_id,
                    parent_checkpoint_id=found.parent_checkpoint_id,
                    checkpoint=found.checkpoint,
                    metadata=found.metadata,
                )
            )
        for chain, known in zip(chains, before, strict=True):
            _cut_at_circle(chain, known)
            if len(chain.rows) - known < depth and chain.next_id is not None:
                chain.broken = True
        self._seed(chains, before)

    def _seed(self, chains: Sequence[Chain], before: Sequence[int]) -> None:
        """Looks for the nearest stored value of each delta channel among the rows just read."""
        candidates: list[tuple[Chain, int, str, str]] = []
        for chain, known in zip(chains, before, strict=True):
            for channel in sorted(chain.unseeded):
                for index in range(known, len(chain.rows)):
                    if version := _version(chain.rows[index], channel):
                        candidates.append((chain, index, channel, version))
        stored: dict[tuple[int, str], list[tuple[int, str]]] = {}
        for at, _ in self._blobs(candidates, with_bytes=False):
            chain, index, channel, version = candidates[at]
            stored.setdefault((id(chain), channel), []).append((index, version))
        wanted: list[tuple[Chain, int, str, str]] = []
        for chain, known in zip(chains, before, strict=True):
            for channel in sorted(chain.unseeded):
                nearest = min(stored.get((id(chain), channel), []), default=None)
                inline = _first_inline(chain, channel, known)
                if nearest is not None and (inline is None or nearest[0] <= inline):
                    wanted.append((chain, nearest[0], channel, nearest[1]))
                if nearest is not None or inline is not None:
                    chain.unseeded.discard(channel)
        for at, blob in self._blobs(wanted, with_bytes=True):
            chain, index, channel, _ = wanted[at]
            chain.blobs.setdefault(index, {})[channel] = blob

    def _blobs(
        self, wanted: Sequence[tuple[Chain, int, str, str]], *, with_bytes: bool
    ) -> list[tuple[int, BlobRow]]:
        """Stored values by index into `wanted`; a type `empty` says that there is none."""
        if not wanted:
            return []
        rows = self._connection.rows(
            "blobs_of_versions",
            {
                "threads": [chain.head.row.thread_id for chain, _, _, _ in wanted],
                "namespaces": [chain.head.row.checkpoint_ns for chain, _, _, _ in wanted],
                "channels": [channel for _, _, channel, _ in wanted],
                "versions": [version for _, _, _, version in wanted],
                "bytes": with_bytes,
            },
        )
        found = []
        for row in rows:
            _, _, channel, version = wanted[row.position - 1]
            if row.type != "empty":
                blob = self._loader.blob_row(channel, version, row.type, row.blob)
                found.append((row.position - 1, blob))
        return found

    def _ancestors(self, chains: Sequence[Chain]) -> list[tuple[HeadRows, ...]]:
        """The ancestors of each chain with their writes."""
        places = [
            Place(row.thread_id, row.checkpoint_ns, row.checkpoint_id)
            for chain in chains
            for row in chain.rows
        ]
        writes = iter(self._loader.writes(places).values() if places else ())
        loaded: list[tuple[HeadRows, ...]] = []
        for chain in chains:
            rows = [
                HeadRows(row, chain.blobs.get(index, {}), next(writes))
                for index, row in enumerate(chain.rows)
            ]
            for index, parent in enumerate(rows[1:]):
                if keeps_sends_at_parent(rows[index].row):
                    sends = tuple(write for write in parent.writes if write.channel == SENDS)
                    rows[index] = replace(rows[index], parent_writes=sends)
            loaded.append(tuple(rows))
        return loaded


def _delta_channels(head: HeadRows) -> set[str]:
    """The delta channels of a head that have a version and no value stored with it.

    `metadata.counters_since_delta_snapshot` names them; a blob wins over an inline value, and one
    of type `empty` is none (langgraph/checkpoint/postgres/base.py, _build_delta_stage1_sql).
    """
    metadata: Any = head.row.metadata
    counters = metadata.get("counters_since_delta_snapshot") if isinstance(metadata, dict) else None
    if not isinstance(counters, dict):
        return set()
    return {
        channel
        for channel in counters
        if _version(head.row, channel) is not None
        and not _holds(head.blobs.get(channel))
        and _inline(head.row, channel) is None
    }


def _holds(blob: BlobRow | None) -> bool:
    return blob is not None and blob.type != "empty"


def _document_part(row: CheckpointRow, name: str) -> dict[str, Any]:
    document: Any = row.checkpoint
    part = document.get(name) if isinstance(document, dict) else None
    return part if isinstance(part, dict) else {}


def _inline(row: CheckpointRow, channel: str) -> Any:
    return _document_part(row, "channel_values").get(channel)


def _first_inline(chain: Chain, channel: str, start: int) -> int | None:
    """The nearest ancestor that holds the channel's value in its own document."""
    for index in range(start, len(chain.rows)):
        if _inline(chain.rows[index], channel) is not None:
            return index
    return None


def _version(row: CheckpointRow, channel: str) -> str | None:
    version = _document_part(row, "channel_versions").get(channel)
    return str(version) if isinstance(version, (str, int, float)) else None


def _cut_at_circle(chain: Chain, known: int) -> None:
    """Ends a chain that comes back to a checkpoint it has met, which would loop for ever."""
    met = {chain.head.row.checkpoint_id, *(row.checkpoint_id for row in chain.rows[:known])}
    for index in range(known, len(chain.rows)):
        if chain.rows[index].checkpoint_id in met:
            del chain.rows[index:]
            chain.broken = True
            return
        met.add(chain.rows[index].checkpoint_id)
