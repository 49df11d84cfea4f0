"""Copies threads from store to store, batch by batch, in several lanes at once."""

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue

from repair_service.checkpoint.identifiers import first_id, is_surely_older
from repair_service.store.pace import Pace
from repair_service.store.scan import Shard
from repair_service.transfer.lane import CopiedBatch, Fate, Lane, Opened
from repair_service.transfer.store import Source, in_shard


@dataclass(slots=True)
class CopyTotals:
    """What was counted.

    Attributes:
        threads: Threads by what became of them.
        rows: Rows that were written.
        bytes: Their size as COPY sends them.
    """

    threads: Counter[Fate] = field(default_factory=Counter)
    rows: int = 0
    bytes: int = 0

    def add(self, done: CopiedBatch) -> None:
        """Take a batch in."""
        self.threads.update(fate for _, fate, _ in done.outcomes)
        self.rows += done.rows
        self.bytes += done.bytes


class Copying:
    """One run of `migrate copy`.

    Attributes:
        totals: What was counted so far.
    """

    def __init__(
        self,
        source: Source,
        reading: Opened,
        lanes: Sequence[Lane],
        *,
        moved: Callable[[CopyTotals], None] = lambda totals: None,
    ) -> None:
        """Nothing is read yet.

        Args:
            source: Where the threads are found.
            reading: Opens a transaction there.
            lanes: What copies them: one, which may use the same connection, or several with
                connections of their own.
            moved: Called after each batch; raises where the copy is to stop.
        """
        self.totals = CopyTotals()
        self._source = source
        self._reading = reading
        self._lanes = lanes
        self._moved = moved

    def run(
        self,
        threads: Sequence[str] = (),
        shard: Shard | None = None,
        since: float | None = None,
    ) -> Iterator[tuple[str, Fate, str]]:
        """Copy threads; each is there as a whole, or not at all.

        Args:
            threads: Only these; all of the source where empty.
            shard: Only those of one shard: its number, from 0, and how many there are.
            since: Only those with a head that is not older than this, seconds since 1970, or whose
                id tells no time.

        Yields:
            Each thread that exists, with what became of it, and why it is not copied.

        Raises:
            StoreError: A store was lost, or the rows read back are not those that were written.
        """
        batches = self._batches(threads, shard, since)
        with closing(self._done(batches)) as done:
            for batch in done:
                self.totals.add(batch)
                yield from batch.outcomes
                self._moved(self.totals)

    def _done(self, batches: Iterator[list[str]]) -> Generator[CopiedBatch, None, None]:
        """The batches as they were copied, in order."""
        if len(self._lanes) == 1:
            yield from map(self._lanes[0].copied, batches)
            return
        free: SimpleQueue[Lane] = SimpleQueue()
        for lane in self._lanes:
            free.put(lane)

        def copied(batch: list[str]) -> CopiedBatch:
            lane = free.get()
            try:
                return lane.copied(batch)
            finally:
                free.put(lane)

        running: deque[Future[CopiedBatch]] = deque()
        with ThreadPoolExecutor(len(self._lanes), "repair-service-copy") as pool:
            try:
                for batch in batches:
                    running.append(pool.submit(copied, batch))
                    if len(running) > len(self._lanes):
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
            finally:
                self._end(running)

    def _end(self, running: Sequence["Future[CopiedBatch]"]) -> None:
        """Wait for what is under way, and count it; a second signal ends it at once."""
        for future in running:
            future.cancel()
        try:
            for future in running:
                if not future.cancelled():
                    with suppress(Exception):  # the first failure is told
                        self.totals.add(future.result())
        except BaseException:
            for lane in self._lanes:
                lane.cancel()
            raise

    def _batches(
        self, threads: Sequence[str], shard: Shard | None, since: float | None
    ) -> Iterator[list[str]]:
        pace = Pace()
        seen, after = 0, None
        while True:
            if threads:
                batch = list(threads[seen : seen + pace.size])
            else:
                batch = self._source.next_threads(after, pace.size)
            if not batch:
                return
            pace.begin()
            yield self._newer(in_shard(batch, shard), since)
            pace.end(len(batch))
            seen, after = seen + len(batch), batch[-1]

    def _newer(self, threads: list[str], since: float | None) -> list[str]:
        if since is None or not threads:
            return threads
        first = first_id(since)
        with self._reading():
            heads = self._source.heads(threads)
            newer = {thread for thread, head in heads if not is_surely_older(head, first)}
        return [each for each in threads if each in newer]
