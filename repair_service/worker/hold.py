"""A replica's hold on the lease, by a clock of its own: what it may still do, and when it may not.

The lease is counted from before the database was asked for it, so that it ends here no later than
there. A clock that also runs while the machine sleeps is asked: a replica that wakes up must not
think that it leads.
"""

import threading
import time
from collections.abc import Callable

RENEWED_AT = 1 / 3
"""The share of the lease after which it is renewed: two attempts may fail."""

GIVEN_UP_AT = 2 / 3
"""The share after which a lease that could not be renewed is given up, and runs are stopped."""

KILLED_AT = 0.9
"""The share after which what has not stopped is killed: nothing may run when another one leads."""


def boot_clock() -> float:
    """Seconds that only grow, and also while the machine sleeps where the system tells."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class Hold:
    """A replica's own lease; safe to ask from any thread."""

    def __init__(self, seconds: float, clock: Callable[[], float] = boot_clock) -> None:
        """Nothing is held yet.

        Args:
            seconds: How long a lease lasts.
            clock: Seconds that only grow.
        """
        self.seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._since: float | None = None

    def now(self) -> float:
        """The clock's time, to be taken before the lease is asked for."""
        return self._clock()

    def take(self, asked_at: float) -> None:
        """The lease is ours.

        Args:
            asked_at: What `now` said before the database was asked.
        """
        with self._lock:
            self._since = asked_at

    def let_go(self) -> None:
        """The lease is not ours."""
        with self._lock:
            self._since = None

    def leads(self) -> bool:
        """Whether anything may be begun, or go on."""
        return self._share() < GIVEN_UP_AT

    def must_be_still(self) -> bool:
        """Whether nothing may run any more."""
        return self._share() >= KILLED_AT

    def _share(self) -> float:
        """The share of the lease that has passed; 1 where none is held."""
        with self._lock:
            since = self._since
        return 1.0 if since is None else (self._clock() - since) / self.seconds
