"""Reading one item ahead, so that the server works on the next batch while this one is judged."""

import sys
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar

Item = TypeVar("Item")

PATIENCE = 2.0
"""Seconds that a reader has to end after its statement was cancelled; a server that does not answer
must not keep the process from ending."""

TURN = 50e-6
"""Seconds that a thread keeps the interpreter while another waits for it. A result comes in pieces
of a socket's buffer, and with Python's 5 ms the reader would wait so long for each."""


class _End:
    """Behind the last item; the error that ended the reading, if one did."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Reader(threading.Thread, Generic[Item]):
    """Runs an iterator, one item a permit."""

    def __init__(self, items: Iterator[Item]) -> None:
        super().__init__(name="repair-service-reader", daemon=True)
        self.permits = threading.Semaphore(1)
        self.read: SimpleQueue[Item | _End] = SimpleQueue()
        self.stopped = False
        self._items = items

    def run(self) -> None:
        error: BaseException | None = None
        try:
            while True:
                self.permits.acquire()
                if self.stopped:
                    break
                self.read.put(next(self._items))
        except StopIteration:
            pass
        except BaseException as raised:  # noqa: BLE001  # raised again in the consumer
            error = raised
        self.read.put(_End(error))


def read_ahead(items: Iterator[Item], cancel: Callable[[], None]) -> Iterator[Item]:
    """Yields what an iterator yields; it runs in a thread of its own, one item ahead.

    Args:
        items: The iterator. What it uses must not be used by anybody else meanwhile.
        cancel: Makes it end soon; called where the consumer stops early.

    Raises:
        Exception: What the iterator raises.
    """
    reader = _Reader(items)
    turn = sys.getswitchinterval()
    sys.setswitchinterval(min(turn, TURN))
    reader.start()
    try:
        while not isinstance(item := reader.read.get(), _End):
            reader.permits.release()
            yield item
            del item
        if item.error is not None:
            raise item.error
    finally:
        reader.stopped = True
        reader.permits.release()
        if reader.is_alive():
            cancel()
            reader.join(PATIENCE)
        sys.setswitchinterval(turn)
