"""One run over a selection of heads: the audit, and the sweep that writes."""

import time
from collections.abc import Callable, Iterator, Sequence

from repair_service.checkpoint.rows import CheckpointRow, ScannedHead
from repair_service.ledger.records.base import Cursor
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.fleet import FleetSample
from repair_service.sweep.judging import judge_of
from repair_service.sweep.portions import Portions
from repair_service.sweep.position import Position
from repair_service.sweep.record import NoRecord, Record
from repair_service.sweep.selection import Selection
from repair_service.sweep.throttle import NO_LIMITS, Throttle
from repair_service.sweep.totals import Totals
from repair_service.sweep.walk import Walk
from repair_service.sweep.write import held_back, is_held_back, without_patch, write_patch
from repair_service.transcript.write import MARK

LEFT_TO_A_RUN = (Verdict.REPAIRABLE, Verdict.MANUAL)
"""What is looked at again once a run has ended; the other verdicts stay what they are."""

RUNS_NOW = "the application says that it runs now (--active-query)"


class Sweep:
    """A run over a store.

    Memory is bounded by one batch of heads and the rows of a portion of their threads.

    Attributes:
        totals: What was counted so far.
        stopped_by: The bound that kept repairable heads from being written; None where none did.
        refused: Whether that bound refused the whole run, so that nothing was written.
        complete: Whether every head of the selection was looked at, or is still to be.
        cursor: Where the next run may go on; None where this one is complete, or keeps no place.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        selection: Selection,
        *,
        now: Callable[[], float] = time.time,
        on_progress: Callable[[Totals], None] | None = None,
        record: Record | None = None,
        max_repairs: int | None = None,
        max_ratio: float | None = None,
        active_query: str | None = None,
        replica: Store | None = None,
        throttle: Throttle | None = None,
        run_time: float | None = None,
    ) -> None:
        """Prepare a run; nothing is read yet.

        Args:
            store: An open store.
            policy: What the operator allows and declares.
            selection: The heads to look at.
            now: The clock, seconds since 1970.
            on_progress: Called after each batch with the totals so far.
            record: Where findings and repairs go; nowhere by default.
            max_repairs: Patches that this run may write; None for any number.
            max_ratio: The share of the heads it sees, 0 to 1, that it may write; None for all. With
                it a run looks at every head before it writes the first.
            active_query: The operator's query for the threads that run now.
            replica: A replica of the store, to look for suspects in; they are judged by what the
                store itself has.
            throttle: Lets the run wait between batches and before each write; by default it never
                does.
            run_time: Seconds behind which no further batch is begun, and nothing is waited for;
                None for any time.
        """
        self.totals = Totals()
        self._met = 0
        self.stopped_by: str | None = None
        self.refused = False
        self.complete = True
        self.cursor: Cursor | None = None
        self._store = store
        self._policy = policy
        self._judge = judge_of(policy)
        self._selection = selection
        self._now = now
        self._on_progress = on_progress
        self._fleet = FleetSample(store)
        self._record = record or NoRecord()
        self._max_repairs = max_repairs
        self._max_ratio = max_ratio
        self._active_query = active_query
        self._scanned = replica or store
        self._throttle = throttle or Throttle(NO_LIMITS)
        # The shares of the whole at which this look at the heads begins and ends.
        self._from, self._to = 0.0, 1.0
        self._run_time = run_time
        self._until: float | None = None
        # Where the next run goes on if this one ends among the heads at hand.
        self._start: Cursor | None = None
        self._is_over = False
        self._portions = Portions()

    def audit(self) -> Iterator[Diagnosis]:
        """Judge every selected head, and yield those that are not healthy. Writes nothing."""
        for diagnosis in self._judged():
            self.totals.count(diagnosis)
            if diagnosis.verdict is not Verdict.HEALTHY:
                self._record.found(diagnosis)
                yield diagnosis

    def repair(self) -> Iterator[Diagnosis]:
        """Judge every selected head, write the patch of each repairable one, and yield the outcome.

        Every head that is not healthy is yielded, a written one as `repaired`, `drifted` or
        `failed`.
        """
        self._weigh()
        for diagnosis in self._judged():
            outcome = self._write(diagnosis)
            self.totals.count(outcome)
            if outcome.verdict is not Verdict.HEALTHY:
                self._record.found(outcome)
                yield outcome
            if self._is_over:
                return

    def _judged(self) -> Iterator[Diagnosis]:
        if self._active_query:
            # A query that cannot be asked is said at once, not when the first suspect turns up.
            self._store.active_threads(self._active_query, ())
        walk = Walk(self._scanned, self._selection, self._record, most=self._throttle.most)
        if self._run_time is not None:
            self._until = self._throttle.clock() + self._run_time
        if not self._wait():
            self._cut_short(walk.cursor)
            return
        last_thread: str | None = None
        position = Position(self._scanned, self._selection)
        for number, batch in enumerate(walk.batches()):
            if number and self._until is not None and self._throttle.clock() >= self._until:
                self._cut_short(walk.cursor)
                return
            self._start = walk.cursor
            suspects = self._suspects(batch)
            self.totals.heads += len(batch)
            for head in batch:
                if head.thread_id != last_thread:
                    self.totals.threads += 1
                    last_thread = head.thread_id
            self.totals.verdicts[Verdict.HEALTHY] += len(batch) - len(suspects)
            yield from self._examined(suspects)
            share = position.behind(walk.last, self.totals.threads) if walk.last else None
            if share is not None:
                self.totals.share = self._from + share * (self._to - self._from)
            self._progressed()
            self._throttle.looked_at(len(batch))
            if not self._wait():
                self._cut_short(walk.behind)
                return
        self.totals.share = self._to
        self._met = walk.met

    def _cut_short(self, cursor: Cursor | None) -> None:
        self.complete = False
        self.cursor = cursor
        self.stopped_by = "--run-time"

    def _wait(self) -> bool:
        """Wait where something asks for it; whether to go on then."""
        return self._throttle.wait(self.totals, lambda totals: self._progressed(), self._until)

    def _progressed(self) -> None:
        if self._on_progress:
            self._on_progress(self.totals)

    def rest(self) -> Iterator[Diagnosis]:
        """What is still done when a run is stopped: nothing, all of it happens in this process."""
        return iter(())

    def _suspects(self, batch: Sequence[ScannedHead]) -> list[ScannedHead]:
        """The heads of a batch that are not clean by themselves, in order."""
        suspects = [head for head in batch if not self._judge.is_clean(head)]
        # A head without any list of messages is clean only if nothing in it is a list cut short.
        unsure = [head for head in suspects if any(b.left_out for b in head.blobs.values())]
        found = self._scanned.in_whole(unsure) if unsure else []
        whole = {_place(rows.row): rows for rows in found}
        clean = {place for place, rows in whole.items() if self._judge.reads_clean(rows)}
        # A patched one is clean as long as nothing was written late at the head that it mended.
        patched = [head for head in suspects if MARK in head.metadata]
        for some in self._portions.cut(patched):
            mended = self._scanned.writes_of_parents(some)
            for head, writes in zip(some, mended, strict=True):
                rows = whole.get(_place(head)) or head.rows()
                if self._judge.reads_settled(rows, writes):
                    clean.add(_place(head))
        return [head for head in suspects if _place(head) not in clean]

    def _examined(self, suspects: Sequence[ScannedHead]) -> Iterator[Diagnosis]:
        """Judge suspects with the whole rows of their threads."""
        for some in self._portions.cut(suspects):
            ids = list(dict.fromkeys(head.thread_id for head in some))
            threads = self._store.threads(ids)
            self._portions.weighed(some, threads.values())
            quarantined = self._record.quarantined(ids)
            running: frozenset[str] = frozenset()
            if self._active_query:
                running = self._store.active_threads(self._active_query, ids)
            for head in some:
                thread_id = head.thread_id
                thread = threads.get(thread_id)
                if thread is None or head.checkpoint_ns not in thread.heads:
                    self.totals.heads -= 1
                    continue
                diagnosis = self._judge.diagnose(
                    thread, head.checkpoint_ns, self._now(), self._fleet
                )
                if thread_id in running and diagnosis.verdict in LEFT_TO_A_RUN:
                    yield without_patch(diagnosis, Verdict.ACTIVE, RUNS_NOW)
                elif is_held_back(diagnosis, self._policy, self._record, quarantined):
                    yield held_back(diagnosis)
                else:
                    yield diagnosis

    def _weigh(self) -> None:
        """Look at every head first where only a share of them may be written."""
        if self._max_ratio is None:
            return
        kept, self.totals = self.totals, Totals()
        self._to = 0.5
        found = sum(diagnosis.verdict is Verdict.REPAIRABLE for diagnosis in self._judged())
        kept.throttled_seconds, kept.share = self.totals.throttled_seconds, 0.5
        # Of an incremental run those too that it passed by: else what is left looks like all.
        heads = max(self.totals.heads, self._met)
        self.totals = kept
        self._from, self._to = 0.5, 1.0
        if found > self._max_ratio * heads:
            self.refused = True
            self.stopped_by = (
                f"--max-ratio {self._max_ratio:g}: {found} of {heads} heads "
                f"({found / heads:.0%}) would be written"
            )

    def _write(self, diagnosis: Diagnosis) -> Diagnosis:
        """Write a repairable head's patch, as long as no bound stands against it."""
        written = self.totals.verdicts[Verdict.REPAIRED]
        bound = self._max_repairs
        if diagnosis.verdict is not Verdict.REPAIRABLE or self.refused:
            return diagnosis
        if bound is not None and written >= bound:
            self.stopped_by = f"--max-repairs {bound}"
            return diagnosis
        if not self._wait():
            self._cut_short(self._start)
            self._is_over = True
            return diagnosis
        return write_patch(
            self._store, diagnosis, self._policy, self._record, active_query=self._active_query
        )


def _place(head: ScannedHead | CheckpointRow) -> tuple[str, str]:
    return head.thread_id, head.checkpoint_ns
