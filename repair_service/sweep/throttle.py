"""When a run waits for a server that has other things to do, and for how long."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from repair_service.sweep.totals import Totals

ASK_EVERY = 1.0
"""Seconds for which a server's answer holds: asking before each write would be work of its own."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
"""Seconds before it is asked again: longer each time, short against what is waited for."""

TICK = 0.1
"""Seconds between two looks whether a signal came."""

Clock = Callable[[], float]


class Load(Protocol):
    """What a server is asked; store/load.py says what each answer means."""

    def replica_lag(self) -> float | None:
        """Seconds."""
        ...

    def active_sessions(self) -> int:
        """Sessions at work."""
        ...

    def says_wait(self, query: str) -> bool:
        """Whether the query asks to wait."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run leaves to others; None for no limit.

    Attributes:
        rate: Heads a second.
        max_lag: Seconds that a replica may be behind.
        max_active: Sessions of others that may be at work.
        throttle_query: The operator's query that asks to wait.
        pause_file: A file that asks to wait for as long as it is there.
    """

    rate: float | None = None
    max_lag: float | None = None
    max_active: int | None = None
    throttle_query: str | None = None
    pause_file: Path | None = None

    @property
    def asks_servers(self) -> bool:
        """Whether a server has to be asked."""
        return (self.max_lag, self.max_active, self.throttle_query) != (None, None, None)

    def shared_by(self, processes: int) -> "Limits":
        """The limits of one of several processes that keep these together."""
        rate = None if self.rate is None else self.rate / processes
        return Limits(rate, self.max_lag, self.max_active, self.throttle_query, self.pause_file)


class Throttle:
    """Lets a run wait, as its limits ask.

    Attributes:
        most: Heads that a batch may have, so that a rate is kept within a second or so; None for
            any number.
        blind: Whether `max_lag` is asked for and no server shows a replica.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        limits: Limits,
        servers: Sequence[Load] = (),
        *,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Nothing is asked yet.

        Args:
            limits: The limits.
            servers: Those that are worked on, the primary first: its is the query. A limit holds
                for each.
            clock: Seconds that only grow.
            sleep: Waits for some seconds.
        """
        self.most = None if limits.rate is None else max(1, int(limits.rate))
        self.blind = False
        self._limits = limits
        self._servers = servers
        self.clock = clock
        self._sleep = sleep
        self._asked: float | None = None
        self._free_at = clock()

    def check(self) -> None:
        """Ask each server once, so that what cannot be asked is said at once.

        Raises:
            UsageError, StoreError: It cannot be.
        """
        if self._limits.asks_servers:
            self._of_servers()

    def looked_at(self, heads: int) -> None:
        """So many heads were looked at since the last wait."""
        if self._limits.rate is not None:
            # What was not used up is not saved: behind a pause it goes on at the same rate.
            self._free_at = max(self._free_at, self.clock()) + heads / self._limits.rate

    def wait(
        self, totals: Totals, moved: Callable[[Totals], None], until: float | None = None
    ) -> bool:
        """Return as soon as nothing asks to wait any more.

        Args:
            totals: Take the cause while it waits, and the time waited.
            moved: Called with them again and again meanwhile; what it raises ends the wait.
            until: When to return in any case, by the clock; None for never.

        Returns:
            Whether nothing asks to wait: False where the time was over before.

        Raises:
            UsageError, StoreError: A server could not be asked.
        """
        pause = FIRST_PAUSE
        try:
            while cause := self._cause():
                if self._is_over(until):
                    return False
                totals.waiting_for = cause
                self._pause(pause, totals, moved, until)
                pause = min(pause * 1.5, LONGEST_PAUSE)
                self._asked = None
            totals.waiting_for = None
            # A rate is no matter of the server's: it is named with the rate itself (progress).
            while (left := self._free_at - self.clock()) > 0:
                if self._is_over(until):
                    return False
                self._pause(min(left, ASK_EVERY), totals, moved, until)
            return True
        finally:
            totals.waiting_for = None

    def _is_over(self, until: float | None) -> bool:
        return until is not None and self.clock() >= until

    def _pause(
        self,
        seconds: float,
        totals: Totals,
        moved: Callable[[Totals], None],
        until: float | None,
    ) -> None:
        """Wait, looking up now and then."""
        end = self.clock() + seconds
        while True:
            before = self.clock()
            if before >= end or self._is_over(until):
                return
            self._sleep(min(TICK, end - before))
            totals.throttled_seconds += self.clock() - before
            moved(totals)

    def _cause(self) -> str | None:
        """What asks to wait now, in words; None where nothing does."""
        pause_file = self._limits.pause_file
        if pause_file is not None and os.path.lexists(pause_file):
            return f"the file {pause_file} is there (--pause-file)"
        if not self._limits.asks_servers:
            return None
        now = self.clock()
        if self._asked is not None and now - self._asked < ASK_EVERY:
            return None
        cause = self._of_servers()
        self._asked = self.clock()
        return cause

    def _of_servers(self) -> str | None:
        limits = self._limits
        if limits.max_active is not None:
            active = max(server.active_sessions() for server in self._servers)
            if active > limits.max_active:
                return f"{active} active sessions, --max-active is {limits.max_active}"
        if limits.max_lag is not None:
            lags = [server.replica_lag() for server in self._servers]
            seen = [lag for lag in lags if lag is not None]
            self.blind = not seen
            if seen and max(seen) > limits.max_lag:
                return f"a replica is {max(seen):.1f} s behind, --max-lag is {limits.max_lag:g} s"
        if limits.throttle_query is not None and self._servers[0].says_wait(limits.throttle_query):
            return "--throttle-query asks for it"
        return None


NO_LIMITS = Limits()
"""A run that waits for nobody."""
