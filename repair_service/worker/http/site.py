"""What every view works with: the worker, its settings, and the ledger read in few threads."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from repair_service.errors import LedgerError
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.summary import StoreSummary
from repair_service.worker.http.problems import Problem
from repair_service.worker.http.readers import SECONDS, STATEMENT_SECONDS, Readers
from repair_service.worker.http.settings import HttpSettings, StoreDoor
from repair_service.worker.state import StoreState, Worker

FRESH_SECONDS = 15.0
"""How long summaries are said again before the ledger is asked anew: one scrape's interval."""

REST = 20
"""They are kept so many times as long as they took to read, so that reading them never is more than
a twentieth of one connection's time, however the ledger has grown."""

Answer = TypeVar("Answer")


class Site:
    """What the views work with. Made once, closed at the end.

    Attributes:
        worker: The worker.
        settings: What the HTTP side is told.
        readers: The threads in which databases are asked.
    """

    def __init__(self, worker: Worker, settings: HttpSettings, ledger_url: str) -> None:
        """Nothing is connected yet.

        Raises:
            UsageError: The ledger's address cannot be read.
        """
        self.worker = worker
        self.settings = settings
        self.readers = Readers()
        self._ledger = Ledger(ledger_url, statement_seconds=STATEMENT_SECONDS)
        self._doors = {door.name: door for door in settings.stores}
        self._reading = asyncio.Lock()
        self._summaries: Mapping[str, StoreSummary] | None = None
        self._fresh_until = 0.0

    def close(self) -> None:
        """Let go of the threads and connections."""
        self.readers.close()
        self._ledger.close()

    async def ledger(self, ask: Callable[[Ledger], Answer], seconds: float = SECONDS) -> Answer:
        """Ask the ledger, in a thread, and wait so many seconds for the answer.

        Raises:
            LedgerError: It cannot be asked.
            Problem: It does not answer in time.
        """
        return await self.readers.run(lambda: ask(self._ledger), seconds)

    def store(self, name: str) -> tuple[StoreDoor, StoreState]:
        """A store of the settings.

        Raises:
            Problem: 404 where there is none of that name.
        """
        for state in self.worker.state().stores:
            if state.name == name and name in self._doors:
                return self._doors[name], state
        raise Problem(404, "There is no store of that name; /api/v1/stores lists them.")

    async def summaries(self) -> Mapping[str, StoreSummary] | None:
        """What the ledger says of each store, not older than some seconds; None where it is lost.

        However many ask, the ledger is asked once; where that failed, not again for a while.
        """
        async with self._reading:
            if time.monotonic() < self._fresh_until:
                return self._summaries
            began = time.monotonic()
            stores = self.worker.state().stores
            keys = {store.name: store.key for store in stores if store.key is not None}
            try:
                self._summaries = await self.ledger(
                    lambda ledger: {name: ledger.summaries.of(key) for name, key in keys.items()}
                )
            except (LedgerError, Problem):
                self._summaries = None
            ended = time.monotonic()
            self._fresh_until = ended + max(FRESH_SECONDS, REST * (ended - began))
            return self._summaries
