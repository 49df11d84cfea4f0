"""What a crash left open between two databases: patches of which nobody said whether they stand."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from repair_service.errors import Drifted
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.run import StoreIdentity
from repair_service.store.gateway import Store

OLD_ENOUGH = timedelta(minutes=5)
"""Age of an intent that no live run is about to write: a write takes seconds."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of open intents.

    Attributes:
        written: How many patches are in the store.
        never_written: How many are not.
        left: How many are left open: too young, or a worker is at their thread.
    """

    written: int
    never_written: int
    left: int


def settle_intents(
    store: Store, ledger: Ledger, identity: StoreIdentity, *, age: timedelta = OLD_ENOUGH
) -> Settled:
    """Ask the store about each open intent, and tell the ledger.

    Where the ledger is in the store's own database there are none.

    Args:
        store: The store.
        ledger: The ledger.
        identity: The store as the ledger knows it.
        age: Only intents older than this.

    Raises:
        StoreError, LedgerError: One of the two cannot be used; what was settled stays so.
    """
    if identity.shared:
        return Settled(0, 0, 0)
    before = datetime.now(UTC) - age
    written, never_written = 0, 0
    while intents := ledger.repairs.open_intents(identity.key, before=before):
        there: list[UUID] = []
        gone: list[UUID] = []
        for intent in intents:
            place = (intent.thread_id, intent.checkpoint_ns, intent.to_checkpoint_id)
            with suppress(Drifted):
                (there if store.has_checkpoint(*place) else gone).append(intent.id)
        settlement = ledger.repairs.settle(there)
        written += len(settlement.settled)
        never_written += len(settlement.abandoned) + ledger.repairs.abandon(gone)
        if not there and not gone:
            break
    return Settled(written, never_written, len(ledger.repairs.open_intents(identity.key)))
