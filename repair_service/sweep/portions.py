"""How many threads are held in whole at once: by what they weigh, not by their number alone."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from repair_service.checkpoint.rows import HeadRows, ScannedHead, ThreadRows

MOST_THREADS = 50
MOST_BYTES = 16 * 1024 * 1024
"""Of values. A thread's history is the largest thing in memory; one thread alone may be larger."""

DOCUMENT = 4 * 1024
"""Bytes that a checkpoint's own document and metadata are taken for, once they are read."""


class Portions:
    """Cuts suspects into portions of whole threads, by what those before them weighed."""

    def __init__(self) -> None:
        """Nothing was weighed yet."""
        # How many times what a scan holds of a thread all of its rows weigh.
        self._history = 2.0

    def cut(self, suspects: Sequence[ScannedHead]) -> Iterator[list[ScannedHead]]:
        """Portions of suspects, each to be loaded, weighed and let go of before the next.

        Args:
            suspects: Heads of a scan, those of a thread together.
        """
        portion: list[ScannedHead] = []
        threads, size = 0, 0.0
        for _, group in groupby(suspects, lambda head: head.thread_id):
            heads = list(group)
            expected = sum(map(weight, heads)) * self._history
            if portion and (threads == MOST_THREADS or size + expected > MOST_BYTES):
                yield portion
                portion, threads, size = [], 0, 0.0
            portion += heads
            threads, size = threads + 1, size + expected
        if portion:
            yield portion

    def weighed(self, suspects: Iterable[ScannedHead], threads: Iterable[ThreadRows]) -> None:
        """Learn from a portion that was loaded.

        Args:
            suspects: The portion.
            threads: Its threads in whole.
        """
        scanned = sum(map(weight, suspects))
        whole = sum(
            weight(rows)
            for thread in threads
            for rows in (
                *thread.heads.values(),
                *(each for chain in thread.ancestors.values() for each in chain),
            )
        )
        if scanned:
            # What was learned is forgotten slowly: large threads stand together in many stores.
            self._history = max(whole / scanned, self._history * 0.8, 1.0)


def weight(rows: HeadRows | ScannedHead) -> int:
    """Bytes of the values of a head or of an ancestor."""
    values = sum(len(blob.blob or b"") for blob in rows.blobs.values())
    writes = sum(len(write.blob or b"") for write in rows.writes)
    return DOCUMENT + values + writes
