"""The walk over a store's heads, batch by batch."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from repair_service.checkpoint.identifiers import first_id, timestamp
from repair_service.checkpoint.rows import ScannedHead
from repair_service.store.connection import StoreConnection
from repair_service.store.loading import Loader, Place
from repair_service.store.pace import MOST, Pace

MOST_WALKED = 5_000
"""Threads that are walked over at once where few are loaded."""

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
        changed_since: Only threads of which a head is not older than this, with all of their heads;
            not asked where threads are named.
    """

    threads: Sequence[str] | None = None
    namespace: str | None = None
    since: float | None = None
    shard: Shard | None = None
    changed_since: float | None = None

    def takes(self, place: Place) -> bool:
        if self.namespace not in (None, place.checkpoint_ns):
            return False
        if self.since is None:
            return True
        moment = timestamp(place.checkpoint_id)
        return moment is None or moment >= self.since


@dataclass(frozen=True, slots=True)
class Walked:
    """A batch of heads, and how far the walk has come with it.

    Attributes:
        heads: The heads of whole threads; empty where all that were met are left out.
        last: The last thread that was met. A walk that begins behind it misses nothing.
        met: How many heads were met; of a shard its share of them, give or take.
    """

    heads: list[ScannedHead]
    last: str
    met: int


@dataclass(frozen=True, slots=True)
class _Page:
    """The threads to be loaded, the last one met, and how many heads were met, where counted."""

    threads: list[str]
    last: str
    met: int | None = None


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
        self._most = MOST

    def walk(
        self, batch_size: int | None, after: str | None = None, most: int | None = None
    ) -> Iterator[Walked]:
        """The heads, by thread and then by namespace; whole threads in each batch.

        Args:
            batch_size: Heads a batch; None for so many as are read in about half a second.
            after: Begin behind this thread; of named threads all are taken.
            most: Threads of a batch at most; None for as many as may be. More may be walked over.
        """
        skims = self._wanted.threads is None and self._wanted.changed_since is not None
        self._most = MOST if most is None else min(most, MOST)
        pace = Pace(most=MOST_WALKED if skims else self._most)
        seen = 0
        while True:
            size = batch_size or pace.size
            pace.begin()
            found = self._connection.read(partial(self._next, seen, after, size))
            if found is None:
                return
            page, places, batches, heads = found
            del found
            pace.end(size)
            left = len(places) if page.met is None else page.met
            for number, batch in enumerate(batches, start=1):
                if number > 1:
                    heads = self._connection.read(partial(self._load, batch))
                if number == len(batches):
                    yield Walked(heads, page.last, left)
                else:
                    left -= len(batch)
                    yield Walked(heads, batch[-1].thread_id, len(batch))
                del heads
            seen, after = seen + size, page.last

    def _load(self, places: Sequence[Place]) -> list[ScannedHead]:
        return self._loader.scanned(places) if places else []

    def _next(
        self, seen: int, after: str | None, size: int
    ) -> tuple[_Page, list[Place], list[list[Place]], list[ScannedHead]] | None:
        """The next threads, their heads in batches, and the rows of the first; None at the end."""
        page = self._next_page(seen, after, size)
        if page is None:
            return None
        places = self._places(page.threads)
        batches = list(_whole_threads(places, min(size, self._most))) or [[]]
        return page, places, batches, self._load(batches[0])

    def _places(self, threads: Sequence[str]) -> list[Place]:
        if not threads:
            return []
        return [place for place in self._loader.heads(threads) if self._wanted.takes(place)]

    def _next_page(self, seen: int, after: str | None, size: int) -> _Page | None:
        """The next threads of the shard; None behind the end."""
        shard, changed_since = self._wanted.shard, self._wanted.changed_since
        if self._wanted.threads is not None:
            met = list(self._wanted.threads[seen : seen + size])
        elif changed_since is not None:
            return self._next_changed(after, size, changed_since)
        else:
            # As many as it takes for `size` of this shard, give or take.
            limit = size if shard is None else size * shard[1]
            found = self._connection.rows("next_threads", {"after": after, "limit": limit})
            met = [row.thread_id for row in found]
        return _Page(self._of_shard(met), met[-1]) if met else None

    def _next_changed(self, after: str | None, size: int, since: float) -> _Page | None:
        values = {"after": after, "limit": size, "first_id": first_id(since)}
        (found,) = self._connection.rows("changed_threads", values)
        if found.last is None:
            return None
        shards = 1 if self._wanted.shard is None else self._wanted.shard[1]
        return _Page(self._of_shard(found.changed), found.last, found.heads // shards)

    def _of_shard(self, threads: list[str]) -> list[str]:
        shard = self._wanted.shard
        if shard is None:
            return threads
        return [thread for thread in threads if shard_of(thread, shard[1]) == shard[0]]


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
