"""The outbox: what the application is to be told by its webhook, at least once, thread by thread.

Events come in with the repairs they are about (`Repairs`). Of a thread, only the first that is not
sent yet can be claimed, so they are sent in order; a claim ends by itself, so that what a sender
that died had claimed is sent again, under the same id. Each method is one short transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from repair_service.ledger.database import Database
from repair_service.ledger.records.event import DeadLetter, Event, OutboxCounts
from repair_service.ledger.statements import outbox

SENT_KEPT = timedelta(days=7)
"""As long as somebody may ask whether the application was told."""

DEAD_KEPT = timedelta(days=90)
"""As long as somebody may want them sent after all."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Events that are one sender's to send for a while.

    Attributes:
        id: What the sender shows to say what became of them.
        events: At most one of each thread.
    """

    id: UUID
    events: tuple[Event, ...]


class Outbox:
    """The outbox in the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, limit: int, lasts: timedelta) -> Claim:
        """Take events that are due, so that nobody else sends them for a while.

        Args:
            limit: How many at most.
            lasts: Until when; longer than sending takes.
        """
        claim = uuid4()
        with self._database.transaction() as connection:
            ids = connection.scalars(outbox.claim_due(claim, lasts, limit)).all()
            rows = connection.execute(outbox.with_repairs(ids)).all() if ids else []
        return Claim(claim, tuple(outbox.event_of(row) for row in rows))

    def sent(self, event: Event, claim: UUID) -> None:
        """Say that an event was taken; nothing where the claim has gone to somebody else."""
        with self._database.transaction() as connection:
            connection.execute(outbox.mark_sent(event.id, claim))

    def failed(self, event: Event, claim: UUID, problem: str, wait: timedelta | None) -> None:
        """Say that an attempt failed.

        Args:
            event: The event.
            claim: The claim under which it was sent.
            problem: What happened, without any content.
            wait: How long until the next attempt; None to give it up.
        """
        with self._database.transaction() as connection:
            connection.execute(outbox.mark_failed(event.id, claim, problem, wait))

    def counts(self) -> OutboxCounts:
        """How much is in it."""
        return outbox.counts_of(self._database.rows(outbox.counts()))

    def dead_letters(self, limit: int = 50) -> list[DeadLetter]:
        """Events that were given up, the latest first."""
        rows = self._database.rows(outbox.dead_letters(limit))
        return [outbox.dead_letter_of(row) for row in rows]

    def retry(self, event_ids: Sequence[UUID] = ()) -> int:
        """Make events that were given up due again; all of them if none is named.

        Returns:
            How many.
        """
        return self._database.write(None, outbox.retry_dead(event_ids))

    def let_go(self) -> None:
        """Delete events that ended long ago."""
        with self._database.transaction() as connection:
            connection.execute(outbox.delete_ended("sent", SENT_KEPT))
            connection.execute(outbox.delete_ended("dead", DEAD_KEPT))
