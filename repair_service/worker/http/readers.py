"""Database work beside the event loop: in a few threads, each for a bounded time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from repair_service.worker.http.problems import Problem

THREADS = 4
"""As many connections at most, since each thread uses one at a time: a status page has few
readers, and the database is the application's."""

PATIENCE = 5.0
"""Seconds that a request waits for a thread."""

SECONDS = 15.0
"""Seconds that a request waits for its answer; its statements end after STATEMENT_SECONDS."""

STATEMENT_SECONDS = 10.0
"""Seconds that one statement of a request may take at the server."""

Answer = TypeVar("Answer")


class Readers:
    """A few threads for work that blocks; more requests wait for a moment, then are refused."""

    def __init__(self, threads: int = THREADS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="http-reader")
        # Made where it is first waited for: one belongs to one event loop.
        self._free = asyncio.Semaphore(threads)

    def close(self) -> None:
        """Let go of the threads; work that goes on ends by its own bounds."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[[], Answer], seconds: float = SECONDS) -> Answer:
        """Do some work in a thread.

        Args:
            work: What to do; it has to bound its own statements, for a thread cannot be stopped.
            seconds: How long to wait for it.

        Raises:
            Problem: 503 where no thread came free, 504 where the work takes too long. The thread
                counts as taken until the work has really ended.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                await self._free.acquire()
        except TimeoutError:
            raise Problem(
                503,
                "The worker is busy with other requests. Try again.",
                (("Retry-After", "5"),),
            ) from None
        loop = asyncio.get_running_loop()
        doing = loop.run_in_executor(self._pool, work)
        doing.add_done_callback(self._done)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(doing)
        except TimeoutError:
            raise Problem(
                504,
                "The database did not answer in time. Try again at a quieter time, or ask with the "
                "command, which waits longer.",
                (("Retry-After", "30"),),
            ) from None

    def _done(self, doing: "asyncio.Future[Answer]") -> None:
        self._free.release()
        if not doing.cancelled():
            doing.exception()  # nobody may be waiting for it any more
