"""Whether the stores can be worked with, asked now and then by a thread of its own."""

import threading

import structlog

from repair_service.errors import RepairServiceError
from repair_service.ledger.gateway import Ledger
from repair_service.store.gateway import Store
from repair_service.worker.configuration import StoreConfiguration
from repair_service.worker.state import StoreState

ASK_SECONDS = 60.0
"""Between two questions to stores that can be worked with: each costs a connection for a moment."""

ASK_AGAIN_SECONDS = 10.0
"""Where one could not: whoever mends it wants to see that it is mended."""

_log = structlog.get_logger("repair_service.worker")


class Stores:
    """What is known of the stores; safe to ask from any thread."""

    def __init__(self, stores: tuple[StoreConfiguration, ...], ledger: Ledger) -> None:
        """Nothing is known yet.

        Args:
            stores: The stores of the settings.
            ledger: Says how it knows each.
        """
        self._stores = stores
        self._ledger = ledger
        self._known = tuple(
            StoreState(store.name, store.target, None, "It was not asked yet.") for store in stores
        )
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, name="stores", daemon=True)

    def states(self) -> tuple[StoreState, ...]:
        """What was found last."""
        return self._known

    def start(self) -> None:
        """Ask from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._end.set()

    def _ask_on(self) -> None:
        pause = 0.0
        while not self._end.wait(pause):
            before = {state.name: state for state in self._known}
            self._known = tuple(self._asked(store, before[store.name]) for store in self._stores)
            for state in self._known:
                if state.problem != before[state.name].problem:
                    _say(state)
            usable = all(state.problem is None for state in self._known)
            pause = ASK_SECONDS if usable else ASK_AGAIN_SECONDS

    def _asked(self, store: StoreConfiguration, before: StoreState) -> StoreState:
        key, problem = before.key, None
        try:
            with Store.connect(
                store.address,
                schema=store.schema,
                application_name="repair-service worker",
                read_only=True,
            ) as opened:
                opened.check_understood()
            if key is None:
                key = self._ledger.identify(store.address, store.schema).key
        except RepairServiceError as error:
            problem = str(error)
        return StoreState(store.name, store.target, key, problem)


def _say(state: StoreState) -> None:
    if state.problem is None:
        _log.info("a store can be worked with", store=state.name, target=state.target)
    else:
        _log.warning("a store cannot be worked with", store=state.name, problem=state.problem)
