"""The ledger of a call: used where it is there, and said where it is not."""

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from repair_service.cli.opening import store_address
from repair_service.cli.settings import Settings
from repair_service.cli.telling import send_due, tells, webhook_of
from repair_service.errors import LedgerError, Refused, RepairServiceError, UsageError
from repair_service.store.gateway import Store

if TYPE_CHECKING:
    from repair_service.ledger.gateway import Ledger
    from repair_service.ledger.records.run import Run, StoreIdentity

NEWEST = 100
"""Runs among which `last` is looked for."""

MIGRATING = frozenset({"migrate nodes", "migrate channels", "migrate types"})

LOOKING = frozenset({"audit", "sweep", "repair", "plan", "apply"}) | MIGRATING
"""The verbs whose runs look at heads, so that they can be reported."""

WRITING = frozenset({"sweep", "repair", "apply"}) | MIGRATING
"""The verbs whose runs may be undone."""


@dataclass(frozen=True, slots=True)
class OpenLedger:
    """A ledger that can be used, and the store as it knows it."""

    ledger: "Ledger"
    identity: "StoreIdentity"


def ledger_address(settings: Settings) -> str:
    """The address of the ledger's database: the store's own by default. Secret.

    Raises:
        UsageError: Neither is set.
    """
    secret = settings.ledger_url
    if secret is None or not secret.get_secret_value().strip():
        return store_address(settings)
    return secret.get_secret_value()


@contextmanager
def open_ledger(
    settings: Settings, store: Store, *, writes: bool, looks: bool = False
) -> Iterator[OpenLedger | None]:
    """The ledger, or None where none can be kept; then stderr says what is lost, and what to do.

    Args:
        settings: The settings.
        store: The store, for what an earlier run left open between two databases.
        writes: Whether the run writes to the store.
        looks: Whether it would be incremental with a ledger, so that it says that it is full.

    At the end of a run that writes, what is due is sent to the webhook, where one is set.

    Raises:
        UsageError: An address cannot be read, the webhook cannot be used, or the reason is missing
            that the settings require.
        Refused: The settings require a reason, and there is no ledger to keep it.
        StoreUnreachable, LedgerError: One of the two was lost while it was being opened.
    """
    check_reason(settings, writes=writes)
    if writes:
        webhook_of(settings)  # what is wrong with it is said before anything is written
    from repair_service.ledger import migrate

    url = ledger_address(settings)
    availability = migrate.available(url)
    if not availability.ready:
        if writes and settings.require_reason:
            raise Refused(f"A reason is required, and cannot be kept. {availability.why}")
        full = looks and not settings.full and selects_all(settings)
        said = " It looks at every head, for what earlier runs saw is not known." if full else ""
        print(f"Note: {availability.why}{said}", file=sys.stderr)
        if writes and tells(settings):
            print("Note: without a ledger the webhook is told of nothing.", file=sys.stderr)
        yield None
        return
    from repair_service.ledger.gateway import Ledger

    with Ledger(url, tells=tells(settings)) as ledger:
        yield known_store(settings, store, ledger)
        if writes:
            send_due(settings, ledger)


@contextmanager
def needed_ledger(settings: Settings, what: str) -> Iterator["Ledger"]:
    """The ledger, for a verb that is nothing without it.

    Args:
        settings: The settings.
        what: What needs it, for the sentence.

    Raises:
        LedgerError: There is none, or it cannot be used.
    """
    from repair_service.ledger import migrate
    from repair_service.ledger.gateway import Ledger

    url = ledger_address(settings)
    if remedy := migrate.check(url).remedy:
        raise LedgerError(f"{what} needs the ledger. {remedy}")
    with Ledger(url, tells=tells(settings)) as ledger:
        yield ledger


def selects_all(settings: Settings) -> bool:
    """Whether no head of the store, or of the shard, is left out."""
    return not settings.thread and settings.namespace is None and settings.since is None


def check_reason(settings: Settings, *, writes: bool) -> None:
    """Refuse to write without a reason where the settings require one.

    Raises:
        UsageError: It is missing.
    """
    if writes and settings.require_reason and not (settings.reason or "").strip():
        raise UsageError("--reason: the settings require one for every write (require_reason).")


def known_store(settings: Settings, store: Store, ledger: "Ledger") -> OpenLedger:
    """The ledger with the store as it knows it.

    What a crash left open between two databases is settled, and stderr says so.

    Raises:
        StoreUnreachable, LedgerError: One of the two was lost.
    """
    from repair_service.sweep.settle import settle_intents

    identity = ledger.identify(store_address(settings), settings.store_schema)
    done = settle_intents(store, ledger, identity)
    if done.written or done.never_written:
        print(
            f"An earlier run died while it wrote. Of its patches {done.written} are in the store "
            f"and {done.never_written} are not; the ledger says so now.",
            file=sys.stderr,
        )
    return OpenLedger(ledger, identity)


def find_run(ledger: "Ledger", name: str, verbs: Collection[str] = ()) -> "Run":
    """A run by its id, or the newest where the name is `last`.

    Args:
        ledger: The ledger.
        name: The id, or `last`.
        verbs: `last` is the newest run of one of these; of any verb where there are none.

    Raises:
        UsageError: The name is no id.
        RepairServiceError: There is no such run.
    """
    if name == "last":
        for run in ledger.runs.newest(NEWEST):
            if not verbs or run.verb in verbs:
                return run
        of = f" of {', '.join(sorted(verbs))}" if verbs else ""
        raise RepairServiceError(
            f"The ledger has no run{of} among its newest {NEWEST}; repair-service runs lists them."
        )
    try:
        run_id = UUID(name)
    except ValueError:
        raise UsageError(f"{name!r} is no run's id; repair-service runs lists them.") from None
    found = ledger.runs.get(run_id)
    if found is None:
        raise RepairServiceError(f"There is no run {run_id}; repair-service runs lists them.")
    return found
