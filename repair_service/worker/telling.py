"""Sends what is due in the outbox now and then: also what a receiver did not take at first."""

import threading
from collections.abc import Callable

import structlog

from repair_service.errors import RepairServiceError
from repair_service.ledger.gateway import Ledger
from repair_service.worker.delivery import Delivery
from repair_service.worker.webhook import Webhook

LOOK_SECONDS = 5.0
"""Between two looks into the outbox; a run sends at its own end what it wrote."""

_log = structlog.get_logger("repair_service.worker")


class Telling:
    """A thread that tells the application, on the replica that leads."""

    def __init__(self, ledger_address: str, webhook: Webhook, leads: Callable[[], bool]) -> None:
        """Nothing is sent yet.

        Args:
            ledger_address: The ledger with the outbox. Secret.
            webhook: Where to.
            leads: Whether this replica leads.
        """
        self._ledger_address = ledger_address
        self._webhook = webhook
        self._leads = leads
        self._end = threading.Event()
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._tell_on, name="telling", daemon=True)

    def start(self) -> None:
        """Send from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no further batch."""
        self._end.set()

    def _tell_on(self) -> None:
        with Ledger(self._ledger_address) as ledger:
            delivery = Delivery(ledger, self._webhook)
            while not self._end.wait(LOOK_SECONDS):
                if self._leads():
                    self._tell(delivery)

    def _tell(self, delivery: Delivery) -> None:
        try:
            done = delivery.run_once(lambda: self._end.is_set() or not self._leads())
        except RepairServiceError as error:
            self._say(str(error))
            return
        if done.sent or done.given_up:
            _log.info("the application was told", sent=done.sent, given_up=done.given_up)
        self._say(done.problem)

    def _say(self, problem: str | None) -> None:
        if problem is not None and problem != self._problem:
            _log.warning("the webhook takes no events", problem=problem)
        self._problem = problem
