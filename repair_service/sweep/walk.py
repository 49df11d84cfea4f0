"""The way of a run over a store: which heads, in which order, and where to go on another time.

A full run walks over all threads. An incremental one passes those by of which no head is newer than
its base, by their ids alone, and then looks at what was not final then. What has no newer id and
was healthy is not seen by it: see `--full` in the command's help.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from repair_service.checkpoint.identifiers import first_id, is_surely_older
from repair_service.checkpoint.rows import ScannedHead
from repair_service.ledger.records.base import END, Base, Cursor
from repair_service.store.gateway import Store
from repair_service.store.loading import storable
from repair_service.store.scan import Wanted
from repair_service.sweep.record import Record
from repair_service.sweep.selection import Selection
from repair_service.sweep.shard import WHOLE

THREADS_AT_ONCE = 200
"""Threads of the second look that are asked for at once."""


class Walk:
    """The heads of a selection.

    Attributes:
        met: How many heads were met, those that were passed by too.
        last: The last thread that the walk met.
        cursor: Where to go on; None before the first batch is done, and where it cannot be said.
        behind: The same behind the batch at hand.
    """

    def __init__(
        self, store: Store, selection: Selection, record: Record, *, most: int | None = None
    ) -> None:
        """Nothing is read yet.

        Args:
            store: The store to look in.
            selection: The heads to look at.
            record: Knows what was not final.
            most: Heads of a batch at most.
        """
        self.met = 0
        self.last: str | None = None
        start = selection.earlier.cursor if selection.earlier else None
        # Those of several processes are each one's own (Selection.of_job).
        self.cursor: Cursor | None = start if isinstance(start, Cursor) else None
        self.behind = self.cursor
        self._store = store
        self._selection = selection
        self._record = record
        self._most = most
        self._shard = None if selection.shard == WHOLE else selection.shard.of_store()

    def batches(self) -> Iterator[list[ScannedHead]]:
        """Whole threads, a batch at a time; a batch may be empty. The cursor stands behind those
        batches that the caller has come back from.

        Raises:
            StoreError, LedgerError: One of the two cannot be used.
        """
        base, start = self._selection.base, self.cursor
        if start == END:
            return
        if start is None or start.part == "walk":
            yield from self._all(start.after if start else None)
            start = None
        if base is not None:
            yield from self._again(base, start.after if start else None)

    def _all(self, after: str | None) -> Iterator[list[ScannedHead]]:
        selection = self._selection
        wanted = Wanted(
            threads=storable(selection.threads) if selection.threads else None,
            namespace=selection.namespace,
            since=selection.since,
            shard=self._shard,
            changed_since=selection.base.since if selection.base else None,
        )
        for walked in self._store.walk(wanted, after=after, most=self._most):
            self.met, self.last = self.met + walked.met, walked.last
            if not selection.threads:
                self.behind = Cursor("walk", walked.last)
            yield walked.heads
            self.cursor = self.behind

    def _again(self, base: Base, after: str | None) -> Iterator[list[ScannedHead]]:
        """What was not final, but for the threads that the walk took for changed."""
        first = first_id(base.since)
        threads = self._record.not_final(base, after)
        while some := list(islice(threads, THREADS_AT_ONCE)):
            wanted = Wanted(threads=storable(some), shard=self._shard)
            for walked in self._store.walk(wanted, most=self._most):
                self.behind = Cursor("again", walked.last)
                yield _without_changed(walked.heads, first)
                self.cursor = self.behind
            self.cursor = self.behind = Cursor("again", some[-1])


def _without_changed(heads: Sequence[ScannedHead], first: str) -> list[ScannedHead]:
    changed = {each.thread_id for each in heads if not is_surely_older(each.checkpoint_id, first)}
    return [each for each in heads if each.thread_id not in changed]
