"""Progress on stderr: a bar that moves on a terminal, a line each 30 s elsewhere, and each wait."""

import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from repair_service.cli.bar import Bar
from repair_service.cli.times import say_duration
from repair_service.repair.verdict import Verdict
from repair_service.sweep.totals import Totals

ON_TERMINAL = 0.1
"""Seconds between two states of the bar: faster is not seen, and costs."""

ELSEWHERE = 30.0
"""Seconds between two lines: a log stays readable, and its reader sees that it goes on."""

SOONEST = 3.0
"""Seconds before it is said how long a run will take: what is measured in less says little."""


class Progress:
    """Says how far a run is, and what it waits for; a context manager.

    A thread of its own says it, also while a batch or a wait takes long.
    """

    def __init__(
        self,
        verb: str,
        *,
        rate: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        every: float = ELSEWHERE,
    ) -> None:
        """Start counting time.

        Args:
            verb: The verb, for the start of a line.
            rate: The bound on heads a second, where there is one.
            clock: Seconds that only grow.
            every: Seconds between two lines.
        """
        self._verb = verb
        self._rate = rate
        self._clock = clock
        self._every = every
        self._started = clock()
        self._totals = Totals()
        self._bar = Bar() if _moves() else None
        self._drawn = self._started
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._teller: threading.Thread | None = None
        self._wait: float | None = None
        self._said: float | None = None
        self._announced = False

    def __enter__(self) -> Self:
        if self._bar is None:
            self._teller = threading.Thread(target=self._tell, daemon=True)
            self._teller.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self.clear()
        if self._teller is not None:
            self._teller.join()

    def update(self, totals: Totals) -> None:
        """Take the totals so far, and show them if it is time to."""
        self._totals = totals
        self._say_wait(totals.waiting_for)
        now = self._clock()
        if self._bar is not None and now - self._drawn >= ON_TERMINAL:
            self._drawn = now
            self._bar.show(self._verb, totals.share, self._counts(totals, now - self._started))

    def clear(self) -> None:
        """Take the bar away, before something else is printed."""
        if self._bar is not None:
            self._bar.hide()

    def _tell(self) -> None:
        """Say a line now and then, for as long as the run goes on."""
        while not self._ended.wait(self._every):
            seconds = self._clock() - self._started
            self._print(f"{self._verb}: {', '.join(self._counts(self._totals, seconds))}")

    def _say_wait(self, cause: str | None) -> None:
        """Say when a wait begins, each 30 s, and when it ends; no pair of lines more often."""
        now = self._clock()
        if cause is not None:
            if self._wait is None:
                self._wait = now
            if self._said is None or now - self._said >= ELSEWHERE:
                long = now - self._wait
                since = f" for {say_duration(long)}" if long >= ELSEWHERE else ""
                self._said, self._announced = now, True
                self._print(f"Waiting{since}: {cause}.")
        elif self._wait is not None:
            long, self._wait = now - self._wait, None
            if self._announced:
                self._said, self._announced = now, False
                self._print(f"Going on after {say_duration(long)}.")

    def _print(self, line: str) -> None:
        with self._lock:
            self.clear()
            print(line, file=sys.stderr, flush=True)

    def _counts(self, totals: Totals, seconds: float) -> list[str]:
        """What is known of a run, the most telling first."""
        share = totals.share
        known = share is not None and 0 < share < 1
        said = [f"~{share:.0%}"] if known and share is not None else []
        said.append("1 head" if totals.heads == 1 else f"{totals.heads} heads")
        rate = f"{totals.heads / seconds if seconds > 0 else 0.0:.0f}/s"
        said.append(rate if self._rate is None else f"{rate} (--rate {self._rate:g})")
        if known and share is not None and seconds >= SOONEST:
            said.append(f"~{say_duration(seconds * (1 - share) / share)} left")
        else:
            said.append(say_duration(seconds))
        found = [
            f"{totals.verdicts[verdict]} {verdict.value}"
            for verdict in Verdict
            if verdict is not Verdict.HEALTHY and totals.verdicts[verdict]
        ]
        return said + (found or (["all healthy so far"] if totals.heads else []))


def _moves() -> bool:
    """Whether stderr is a terminal on which a line can be written over."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
