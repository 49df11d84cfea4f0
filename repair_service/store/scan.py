"""The walk over a store's heads, batch by batch."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from repair_service.checkpoint.identifiers import timestamp
from repair_service.checkpoint.rows import HeadRows
from repair_service.store.connection import StoreConnection
from repair_service.store.loading import Loader, Place
from repair_service.store.pace import Pace

Shard = tuple[int, int]
"""Which part of the threads, counted from 0, and of how many."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which heads a scan is for; all of them by default.

    Attributes:
        threads: Only these threads, in this order; None for all.
        namespace: Only heads of this namespace (the empty text is the root).
        since: Only heads whose id is not older than this, seconds since 1970. An id that tells no
            time is taken in.
        shard: Only the threads of this shard.
    """

    threads: Sequence[str] | None = None
    namespace: str | None = None
    since: float | None = None
    shard: Shard | None = None

    def takes(self, place: Place) -> bool:
        if self.namespace not in (None, place.checkpoint_ns):
            return False
        if self.since is None:
            return True
        moment = timestamp(place.checkpoint_id)
        return moment is None or moment >= self.since


def shard_of(thread_id: str, shards: int) -> int:
    """The shard of a thread, counted from 0: the same on every machine and in every release."""
    digest = hashlib.sha256(thread_id.encode()).digest()
    return int.from_bytes(digest[:8]) % shards


class HeadScan:
    """Walks over a store on one connection; every batch is a transaction of its own."""

    def __init__(self, connection: StoreConnection, loader: Loader, wanted: Wanted) -> None:
        self._connection = connection
        self._loader = loader
        self._wanted = wanted

    def batches(self, batch_size: int | None) -> Iterator[list[HeadRows]]:
        """The heads, by thread and then by namespace; whole threads in each batch.

        Args:
            batch_size: Heads a batch; None for so many as are read in about half a second.
        """
        pace = Pace()
        seen = 0
        after: str | None = None
        while True:
            size = batch_size or pace.size
            pace.begin()
            with self._connection.reading():
                threads, last = self._next_threads(seen, after, size)
                if last is None:
                    return
                batches = list(_whole_threads(self._places(threads), size))
                heads = self._loader.head_rows(batches[0], whole=False) if batches else []
            pace.end(size)
            if heads:
                yield heads
            del heads
            for places in batches[1:]:
                with self._connection.reading():
                    heads = self._loader.head_rows(places, whole=False)
                if heads:
                    yield heads
                del heads
            seen, after = seen + size, last

    def _places(self, threads: Sequence[str]) -> list[Place]:
        return [place for place in self._loader.heads(threads) if self._wanted.takes(place)]

    def _next_threads(
        self, seen: int, after: str | None, size: int
    ) -> tuple[list[str], str | None]:
        """The next threads of the shard, and the last one that was met; None behind the end."""
        shard = self._wanted.shard
        if self._wanted.threads is not None:
            met = list(self._wanted.threads[seen : seen + size])
        else:
            # As many as it takes for `size` of this shard, give or take.
            limit = size if shard is None else size * shard[1]
            found = self._connection.rows("next_threads", {"after": after, "limit": limit})
            met = [row.thread_id for row in found]
        if not met:
            return [], None
        if shard is None:
            return met, met[-1]
        return [thread for thread in met if shard_of(thread, shard[1]) == shard[0]], met[-1]


def _whole_threads(places: Sequence[Place], size: int) -> Iterator[list[Place]]:
    """Cuts heads into batches between threads, never within one."""
    batch: list[Place] = []
    for index, place in enumerate(places):
        batch.append(place)
        last = index + 1 == len(places) or places[index + 1].thread_id != place.thread_id
        if last and len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch
