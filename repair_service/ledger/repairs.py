"""Repairs: the patches that were written, and what is needed to take them back."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from sqlalchemy import Insert

from repair_service.ledger.database import PAGE, Database
from repair_service.ledger.records.repair import (
    NewRepair,
    RemovedMessage,
    Repair,
    RepairState,
    Settlement,
)
from repair_service.ledger.statements import outbox, repairs


class Repairs:
    """The repairs in the ledger."""

    def __init__(self, database: Database, *, tells: bool = False) -> None:
        """Nothing is asked yet.

        Args:
            database: The ledger's database.
            tells: Whether the application is to be told: each patch that stands, and each that was
                taken back, then comes into the outbox in the same transaction.
        """
        self._database = database
        self._tells = tells

    def record(self, connection: "psycopg.Connection[Any] | None", repair: NewRepair) -> UUID:
        """Record a patch; returns the repair's id.

        Args:
            connection: The store's connection, in the transaction that writes the patch, where the
                ledger is in the same database: the row is there if the patch is. None where it is
                in another: the patch is recorded as an intent, before it is written, and is to be
                settled or abandoned after.
            repair: The patch.

        Raises:
            LedgerError: The row was refused; the open transaction cannot be committed any more.
        """
        state = RepairState.INTENDED if connection is None else RepairState.SETTLED
        statements: list[Insert] = [
            repairs.insert_repair(repair, state),
            *(
                repairs.insert_removed(repair.id, position, removed)
                for position, removed in enumerate(repair.removed)
            ),
        ]
        if self._tells and state is RepairState.SETTLED:
            statements.append(outbox.insert_event("thread.repaired", repair))
        if connection is None:
            with self._database.transaction() as ours:
                for statement in statements:
                    ours.execute(statement)
        else:
            for statement in statements:
                self._database.write(connection, statement)
        return repair.id

    def settle(self, repair_ids: Sequence[UUID]) -> Settlement:
        """Say of intents that their patches are in the store.

        An intent is abandoned instead where another repair is known to have written the very same
        checkpoint: it was left by a process that died before it wrote.
        """
        settled, abandoned = [], []
        for start in range(0, len(repair_ids), PAGE):
            some = repair_ids[start : start + PAGE]
            with self._database.transaction() as connection:
                # The newest first: had an older one written, nobody would have tried again.
                for repair_id in connection.scalars(repairs.newest_intents_first(some)).all():
                    if connection.execute(repairs.settle_intent(repair_id)).rowcount:
                        settled.append(repair_id)
                        if self._tells:
                            connection.execute(outbox.insert_event_of_settled(repair_id))
                    else:
                        connection.execute(repairs.abandon_intent(repair_id))
                        abandoned.append(repair_id)
        return Settlement(settled=tuple(settled), abandoned=tuple(abandoned))

    def abandon(self, repair_ids: Sequence[UUID]) -> int:
        """Say of intents that their patches never were written; returns how many were open."""
        with self._database.transaction() as connection:
            return sum(
                connection.execute(repairs.abandon_intent(repair_id)).rowcount
                for repair_id in repair_ids
            )

    def open_intents(
        self, store_key: str | None = None, *, before: datetime | None = None, limit: int = PAGE
    ) -> list[Repair]:
        """Intents that nobody has settled, oldest first: left by a crash, or being written now.

        Args:
            store_key: Only of this store.
            before: Only those recorded earlier, so that those of a live run are left alone.
            limit: How many at most.
        """
        rows = self._database.rows(repairs.open_intents(store_key, before, limit))
        return [repairs.repair_of(row) for row in rows]

    def of_thread(self, store_key: str, thread_id: str) -> Iterator[Repair]:
        """All repairs of a thread, newest checkpoint first."""
        return self._all(store_key=store_key, thread_id=thread_id)

    def of_run(self, run_id: UUID) -> Iterator[Repair]:
        """All repairs of a run, newest checkpoint first."""
        return self._all(run_id=run_id)

    def page_of_run(self, run_id: UUID, limit: int) -> list[Repair]:
        """The first repairs of a run, newest checkpoint first."""
        rows = self._database.rows(repairs.repairs_page(run_id=run_id, limit=limit))
        return [repairs.repair_of(row) for row in rows]

    def what_to_undo(
        self, store_key: str, *, thread_id: str | None = None, run_id: UUID | None = None
    ) -> Iterator[Repair]:
        """The patches that stand, in the order in which they can be taken back.

        Each names the rows that were written: the checkpoint, by thread, namespace and
        `to_checkpoint_id`, and its blobs. Repairs that are taken back while this is read are not
        skipped over.

        Args:
            store_key: The store.
            thread_id: Only those of this thread.
            run_id: Only those of this run.

        Raises:
            ValueError: Neither a thread nor a run is given.
        """
        if thread_id is None and run_id is None:
            raise ValueError("what is to be undone is a thread or a run")
        return self._all(store_key=store_key, thread_id=thread_id, run_id=run_id, standing=True)

    def mark_undone(
        self,
        connection: "psycopg.Connection[Any] | None",
        repair: Repair,
        *,
        by: str,
        run_id: UUID | None = None,
    ) -> bool:
        """Record that a patch was taken back.

        Args:
            connection: As for `record`: the store's, in the transaction that deletes the
                rows; None where the ledger is in another database, after they are deleted.
            repair: The patch.
            by: Who took it back.
            run_id: The run that did.

        Returns:
            False where it had been taken back before.
        """
        marked = repairs.mark_undone(repair, by, run_id)
        told = outbox.insert_event("thread.repair_undone", repair)
        if connection is not None:
            done = self._database.write(connection, marked) > 0
            if done and self._tells:
                self._database.write(connection, told)
            return done
        with self._database.transaction() as ours:
            done = ours.execute(marked).rowcount > 0
            if done and self._tells:
                ours.execute(told)
        return done

    def removed_messages(self, repair_id: UUID) -> list[RemovedMessage]:
        """The messages that a repair took out of a list. This is content."""
        return [
            repairs.removed_message_of(row)
            for row in self._database.rows(repairs.removed_of(repair_id))
        ]

    def _all(
        self,
        *,
        store_key: str | None = None,
        thread_id: str | None = None,
        run_id: UUID | None = None,
        standing: bool = False,
    ) -> Iterator[Repair]:
        pages = self._database.pages(
            lambda before: repairs.repairs_page(
                store_key=store_key,
                thread_id=thread_id,
                run_id=run_id,
                standing=standing,
                before=before,
                limit=PAGE,
            ),
            lambda row: (row.to_checkpoint_id, row.id),
        )
        return map(repairs.repair_of, pages)
