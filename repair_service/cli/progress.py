"""Progress on stderr: one line that moves on a terminal, a line each 30 s elsewhere."""

import shutil
import sys
import time
from collections.abc import Callable

from repair_service.cli.times import say_duration
from repair_service.repair.verdict import Verdict
from repair_service.sweep.totals import Totals

ON_TERMINAL = 0.1
"""Seconds between two states of the line: faster is not seen, and costs."""

ELSEWHERE = 30.0
"""Seconds between two lines: a log stays readable, and its reader sees that it goes on."""

_CLEAR = "\r\x1b[K"


class Progress:
    """Says how far a run is.

    The number of heads is not known beforehand (counting them would read the whole index), so it
    is how many were looked at and how fast, not a share.
    """

    def __init__(self, verb: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Start counting time.

        Args:
            verb: The verb, for the start of a line.
            clock: Seconds that only grow.
        """
        self._verb = verb
        self._clock = clock
        self._moving = sys.stderr.isatty()
        self._started = clock()
        self._last = self._started
        self._shown = False

    def update(self, totals: Totals) -> None:
        """Say the totals so far, if it is time to."""
        now = self._clock()
        if now - self._last < (ON_TERMINAL if self._moving else ELSEWHERE):
            return
        self._last = now
        line = self._line(totals, now - self._started)
        if self._moving:
            room = shutil.get_terminal_size().columns - 1  # a line that wraps cannot be cleared
            print(f"{_CLEAR}{line[:room]}", end="", file=sys.stderr, flush=True)
            self._shown = True
        else:
            print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the moving line away, before something else is printed."""
        if self._shown:
            print(_CLEAR, end="", file=sys.stderr, flush=True)
            self._shown = False

    def _line(self, totals: Totals, seconds: float) -> str:
        rate = totals.heads / seconds if seconds > 0 else 0.0
        counts = [
            f"{totals.verdicts[verdict]} {verdict.value}"
            for verdict in Verdict
            if verdict is not Verdict.HEALTHY and totals.verdicts[verdict]
        ]
        found = ", ".join(counts) or "all healthy so far"
        heads = "1 head" if totals.heads == 1 else f"{totals.heads} heads"
        return f"{self._verb}: {heads}, {rate:.0f}/s, {say_duration(seconds)}: {found}"
