"""Ctrl-C and SIGTERM: stop between two heads, so that what was done is still reported."""

import signal
import sys
from types import FrameType, TracebackType
from typing import Self


class Stopped(BaseException):
    """A signal asked the run to stop; the exit code is 128 plus its number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class Stop:
    """Takes the two signals while it is entered.

    The first signal is kept until `check`, which a run calls between two heads; the second one
    stops at once. Outside `between_heads` the first one does.
    """

    def __init__(self) -> None:
        self._asked: int | None = None
        self._patient = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # as signal() gave it

    def between_heads(self) -> None:
        """From now on the first signal waits for `check`."""
        self._patient = True

    def at_once(self) -> None:
        """From now on the first signal stops at once."""
        self._patient = False

    def check(self) -> None:
        """Stop here if a signal came.

        Raises:
            Stopped: One did.
        """
        if self._asked is not None:
            raise Stopped(self._asked)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if not self._patient or self._asked is not None:
            raise Stopped(number)
        self._asked = number
        print("\nStopping between two heads; once more stops at once.", file=sys.stderr)
