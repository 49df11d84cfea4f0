"""How far a scan is: nobody counts the threads beforehand, for that would read the whole index."""

import time
from collections.abc import Callable

from repair_service.store.gateway import Store
from repair_service.sweep.selection import Selection

ASK_EVERY = 2.0
"""Seconds between two questions: a bar that moves every two seconds moves."""


class Position:
    """The share of a selection that a scan has passed.

    Where threads are named it is their number. Else a scan goes through the thread ids in order,
    and the server's own statistics say which share of the checkpoints stands before one.
    """

    def __init__(
        self,
        store: Store,
        selection: Selection,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is asked yet.

        Args:
            store: The store that is scanned.
            selection: What is scanned.
            clock: Seconds that only grow.
        """
        self._load = store.load()
        self._named = len(set(selection.threads))
        self._clock = clock
        self._asked = clock()
        self._share: float | None = None

    def behind(self, thread_id: str, seen: int) -> float | None:
        """The share, 0 to 1, behind a thread; None where it cannot be said.

        Args:
            thread_id: The last thread of a batch.
            seen: How many threads were seen.

        Raises:
            StoreUnreachable: The connection was lost.
        """
        if self._named:
            return min(1.0, seen / self._named)
        now = self._clock()
        if now - self._asked >= ASK_EVERY:
            self._asked = now
            self._share = self._load.share_before(thread_id)
        return self._share
