"""Sends what is in the outbox to the webhook: at least once, and in order by thread."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from repair_service.ledger.gateway import Ledger
from repair_service.ledger.outbox import Claim
from repair_service.ledger.records.event import Event
from repair_service.worker.webhook import WHOLE_SECONDS, Answer, Webhook, new_client, send

AT_ONCE = 16
"""Requests that are under way at a time, each of another thread."""

CLAIM = timedelta(seconds=3 * WHOLE_SECONDS)
"""A batch is sent in one attempt's time and said of in a moment; what is older lost its sender."""

FIRST_WAIT = timedelta(seconds=10)
LONGEST_WAIT = timedelta(hours=6)
GROWTH = 3.0
"""10 s, 30 s, 90 s, ... up to 6 h."""

MOST_ATTEMPTS = 12
"""Between 14 and 28 hours with these waits: longer than an outage that nobody has seen."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one pass over the outbox did.

    Attributes:
        sent: Events that were taken.
        failed: Those that were not, and are sent again.
        given_up: Those that were not, and are sent no more unless somebody asks for it.
        problem: What the last failure was; None where there was none.
    """

    sent: int = 0
    failed: int = 0
    given_up: int = 0
    problem: str | None = None


def wait_before(attempts: int, draw: Callable[[], float] = random.random) -> timedelta | None:
    """How long to wait after an attempt that failed; None to give up.

    Args:
        attempts: How many there were.
        draw: A number from 0 to 1, so that not all come again at the same time: half of the wait is
            left to it.
    """
    if attempts >= MOST_ATTEMPTS:
        return None
    growth: float = GROWTH ** (attempts - 1)
    return min(FIRST_WAIT * growth, LONGEST_WAIT) * (0.5 + draw() / 2)


class Delivery:
    """Sends events, from one process or from several at once.

    Of a thread only one event is under way anywhere. A sender that dies between sending and saying
    so has its events sent again, by anybody, under the same id.
    """

    def __init__(self, ledger: Ledger, webhook: Webhook) -> None:
        """Nothing is sent yet.

        Args:
            ledger: The ledger with the outbox.
            webhook: Where to.
        """
        self._outbox = ledger.outbox
        self._webhook = webhook

    def run_once(self, stopped: Callable[[], bool] = lambda: False) -> Delivered:
        """Send all that is due, and come back.

        A receiver that answers none of a batch is left alone until the next call: what is due waits
        in the outbox, and has lost no attempt.

        Args:
            stopped: Asked between two batches whether to come back early.

        Raises:
            LedgerError: The ledger was lost; what was sent and not said is sent again.
        """
        self._outbox.let_go()
        claim = self._outbox.claim(AT_ONCE, CLAIM)
        if not claim.events:
            return Delivered()  # most often; a client costs more than the question
        return asyncio.run(self._send_from(claim, stopped))

    async def _send_from(self, claim: Claim, stopped: Callable[[], bool]) -> Delivered:
        """Send a batch and those behind it. The ledger is asked while nothing is under way."""
        done = Delivered()
        async with new_client() as client:
            while claim.events:
                answers = await asyncio.gather(
                    *(send(client, self._webhook, event) for event in claim.events)
                )
                for event, answer in zip(claim.events, answers, strict=True):
                    done = self._say(done, event, claim, answer)
                if stopped() or not any(answer.answered for answer in answers):
                    break
                claim = self._outbox.claim(AT_ONCE, CLAIM)
        return done

    def _say(self, done: Delivered, event: Event, claim: Claim, answer: Answer) -> Delivered:
        if answer.problem is None:
            self._outbox.sent(event, claim.id)
            return replace(done, sent=done.sent + 1)
        wait = None if answer.final else wait_before(event.attempts)
        self._outbox.failed(event, claim.id, answer.problem, wait)
        if wait is None:
            return replace(done, given_up=done.given_up + 1, problem=answer.problem)
        return replace(done, failed=done.failed + 1, problem=answer.problem)
