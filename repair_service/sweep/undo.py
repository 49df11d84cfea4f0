"""Taking patches back: the newest first, each while its thread has not moved on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import psycopg

from repair_service.errors import Drifted, PatchGone
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.repair import Repair
from repair_service.ledger.records.run import StoreIdentity
from repair_service.store.gateway import Store
from repair_service.store.notice import Notice
from repair_service.store.removal import WrittenPatch


@dataclass(frozen=True, slots=True)
class Undone:
    """What became of one patch.

    Attributes:
        thread_id, checkpoint_ns: Where it stood.
        from_checkpoint_id: The head that it was written behind, which is the head again.
        to_checkpoint_id: Its checkpoint.
        outcome: `undone`, or `kept` where something stands on it.
        reason: What stands on it, or that it was gone already; else empty.
    """

    thread_id: str
    checkpoint_ns: str
    from_checkpoint_id: str
    to_checkpoint_id: str
    outcome: Literal["undone", "kept"]
    reason: str = ""


def undo(
    store: Store,
    ledger: Ledger,
    identity: StoreIdentity,
    *,
    by: str,
    thread_id: str | None = None,
    of_run: UUID | None = None,
    run_id: UUID | None = None,
    dry_run: bool = False,
    active_query: str | None = None,
) -> Iterator[Undone]:
    """Take back the patches of a thread, or of a run.

    A run that has loaded a patch and written nothing yet cannot be seen in the rows: only the
    application's own word keeps such a thread as it is.

    In a dry run a patch below another is said to be kept, for the other stands on it still.

    Args:
        store: The store, open for writing.
        ledger: The ledger that recorded them.
        identity: The store as the ledger knows it.
        by: Who takes them back.
        thread_id: Those of this thread.
        of_run: Those that this run wrote.
        run_id: The run that takes them back.
        dry_run: Change nothing.
        active_query: The operator's query for the threads that run now; those are kept.

    Raises:
        UsageError: The query failed.
        StoreError, LedgerError: One of the two cannot be used; what was done so far stays done.
    """
    for repair in ledger.repairs.what_to_undo(identity.key, thread_id=thread_id, run_id=of_run):
        yield _undo_one(store, ledger, identity, repair, by, run_id, active_query, dry_run=dry_run)


def _undo_one(
    store: Store,
    ledger: Ledger,
    identity: StoreIdentity,
    repair: Repair,
    by: str,
    run_id: UUID | None,
    active_query: str | None,
    *,
    dry_run: bool,
) -> Undone:
    patch = WrittenPatch(
        repair.thread_id,
        repair.checkpoint_ns,
        repair.to_checkpoint_id,
        repair.from_checkpoint_id,
        tuple((blob.channel, blob.version) for blob in repair.blobs),
        repair.written,
        tuple(
            WrittenPatch(
                repair.thread_id,
                below.checkpoint_ns,
                below.checkpoint_id,
                None,
                tuple((blob.channel, blob.version) for blob in below.blobs),
                below.written,
            )
            for below in repair.below
        ),
    )

    def mark(connection: "psycopg.Connection[Any] | None") -> None:
        ledger.repairs.mark_undone(connection, repair, by=by, run_id=run_id)

    outcome: Literal["undone", "kept"] = "undone"
    reason = ""
    try:
        store.take_back(
            patch,
            dry_run=dry_run,
            also=mark if identity.shared else None,
            active_query=active_query,
            notice=Notice(
                "thread.repair_undone",
                repair.thread_id,
                repair.checkpoint_ns,
                repair.from_checkpoint_id,
                run_id,
            ),
        )
        if not dry_run and not identity.shared:
            mark(None)
    except PatchGone as gone:
        # The thread was deleted, or a process died between the store and a ledger elsewhere.
        reason = str(gone)
        if not dry_run:
            mark(None)
    except Drifted as drift:
        outcome, reason = "kept", str(drift)
    return Undone(
        repair.thread_id,
        repair.checkpoint_ns,
        repair.from_checkpoint_id,
        repair.to_checkpoint_id,
        outcome,
        reason,
    )
