"""How many heads a batch has: so many as are read in about half a second."""

import time
from collections.abc import Callable

SECONDS = 0.5
"""A batch's time: long against a round trip, short for a signal to wait and a snapshot to live."""

FIRST = 50
FEWEST, MOST = 10, 300
"""Threads. Before anything is known of a store, lists of a few hundred KB must fit; and where they
are small, the rows of more no longer fit a processor's cache, and cost a third more each."""


class Pace:
    """Sizes batches by the time that the last ones took."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, most: int = MOST) -> None:
        """Start with a small batch.

        Args:
            clock: Seconds that only grow.
            most: The largest batch.
        """
        self._most = most
        self.size = min(FIRST, most)
        self._clock = clock
        self._began = clock()

    def begin(self) -> None:
        """A batch is asked for now."""
        self._began = self._clock()

    def end(self, threads: int) -> None:
        """A batch of so many threads was read."""
        took = self._clock() - self._began
        fitting = threads * SECONDS / took if took > 0 else self._most
        # In steps of two at most, so that one slow moment does not make all that follows slow.
        self.size = int(min(max(fitting, self.size / 2, FEWEST), self.size * 2, self._most))
