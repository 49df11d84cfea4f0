"""One way from store to store: its own connections, and a batch of threads at a time."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from enum import StrEnum

from repair_service.errors import AlreadyThere, StoreError, Unreadable
from repair_service.transfer.digest import Digests
from repair_service.transfer.seal import Change
from repair_service.transfer.store import Chosen, CopiedStore, Source
from repair_service.transfer.tables import COPIED_TABLES, CopiedTable

RACES = 3
"""Tries of a batch of which somebody else wrote a thread meanwhile."""


DIFFERENT = "it is there already with other rows; delete it there first to have it copied"
"""Why a thread is left, and what can be done."""


class Fate(StrEnum):
    """What became of a thread."""

    COPIED = "copied"
    """It is in the other store now; in a dry run, it would be."""

    SAME = "same"
    """It was there before, row by row."""

    DIFFERS = "differs"
    """It was there before, and is not the same; nothing of it was written."""

    UNREADABLE = "unreadable"
    """A value of it cannot be brought into the form that is asked for; nothing was written."""


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms that a row takes on its way.

    Attributes:
        compared: What the digests of both sides are made of.
        written: What is written, of a row that was read.
    """

    compared: Change
    written: Change


Opened = Callable[[], AbstractContextManager[None]]
"""Opens a transaction that sees one moment of the source."""


@dataclass(slots=True)
class CopiedBatch:
    """What became of a batch of threads.

    Attributes:
        outcomes: Each thread that exists, with what became of it, and why it is not copied.
        rows: Rows that were written.
        bytes: Their size as COPY sends them.
    """

    outcomes: list[tuple[str, Fate, str]] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0


class Lane:
    """Copies batches, each in a transaction, and compares both sides before it is committed.

    Memory: a row, and a digest for each thread of a batch.
    """

    def __init__(
        self,
        source: Source,
        reading: Opened,
        target: CopiedStore,
        forms: Forms,
        *,
        heads_only: bool = False,
        dry_run: bool = False,
    ) -> None:
        """Nothing is read yet.

        Args:
            source: Where the threads are.
            reading: Opens a transaction there.
            target: Where they are to be.
            forms: What is compared, and what is written.
            heads_only: Copy what the newest checkpoint of each namespace needs, and no more.
            dry_run: Write nothing.
        """
        self._source = source
        self._reading = reading
        self._target = target
        self._forms = forms
        self._heads_only = heads_only
        self._dry_run = dry_run

    def copied(self, threads: Sequence[str]) -> CopiedBatch:
        """Copy threads; each is there as a whole then, or not at all.

        Raises:
            StoreError: A store was lost, or the rows read back are not those that were written.
        """
        done = CopiedBatch()
        if threads:
            self._each(threads, done)
        return done

    def cancel(self) -> None:
        """End what runs in both stores; may be called from another thread."""
        self._source.cancel()
        self._target.cancel()

    def _each(self, threads: Sequence[str], done: CopiedBatch) -> None:
        """Copy a batch; where one of its threads cannot be read, each by itself."""
        try:
            fates = self._copy(threads, done)
        except Unreadable as problem:
            if len(threads) == 1:
                done.outcomes.append((threads[0], Fate.UNREADABLE, str(problem)))
                return
            for each in threads:
                self._each([each], done)
            return
        for each in threads:
            if each in fates:
                reason = DIFFERENT if fates[each] is Fate.DIFFERS else ""
                done.outcomes.append((each, fates[each], reason))

    def _copy(self, threads: Sequence[str], done: CopiedBatch) -> dict[str, Fate]:
        for attempt in range(RACES):
            try:
                with self._reading():
                    return self._copy_once(threads, done)
            except AlreadyThere:
                # Another copy, or the application, wrote one of them: look at what is there now.
                if attempt + 1 == RACES:
                    raise
        raise AssertionError("unreachable")

    def _copy_once(self, threads: Sequence[str], done: CopiedBatch) -> dict[str, Fate]:
        with self._target.connection.reading():
            known = self._target.known(threads)
            there = self._digests_of_target(known)
        here = Digests()
        if known:
            self._each_row(self._chosen(sorted(known)), here)
        differing = here.differing(there, known)
        fates = {
            each: Fate.DIFFERS if each in differing else Fate.SAME
            for each in known
            if here.of(each)[1]
        }
        missing = [each for each in threads if each not in known]
        if missing:
            for each in self._write(missing, done):
                fates[each] = Fate.COPIED
        return fates

    def _write(self, threads: Sequence[str], done: CopiedBatch) -> list[str]:
        """Copy threads that are not there; gives those that exist."""
        chosen = self._chosen(threads)
        here = Digests()
        if self._dry_run:
            self._each_row(chosen, here)
        else:
            rows, size = 0, 0
            with self._target.connection.writing():
                for table in COPIED_TABLES:
                    # A COPY that is left open would keep the source's transaction from ending.
                    with closing(self._changed(table, chosen, here)) as changed:
                        counted = _Counted(changed)
                        self._target.write(table, counted)
                    rows, size = rows + counted.rows, size + counted.bytes
                if wrong := here.differing(self._digests_of_target(threads), threads):
                    raise StoreError(
                        f"{len(wrong)} threads did not read back as they were written, so their "
                        "batch was rolled back. Do triggers change rows in the other store?"
                    )
            done.rows += rows
            done.bytes += size
        return [each for each in threads if here.of(each)[1]]

    def _chosen(self, threads: Sequence[str]) -> Chosen:
        return self._source.choose(threads, heads_only=self._heads_only)

    def _changed(
        self, table: CopiedTable, chosen: Chosen, here: Digests
    ) -> Generator[bytes, None, None]:
        compared, written = self._forms.compared, self._forms.written
        for row in self._source.rows(table, chosen):
            here.add(table, compared(table, row))
            yield written(table, row)

    def _each_row(self, chosen: Chosen, here: Digests) -> None:
        for table in COPIED_TABLES:
            for _ in self._changed(table, chosen, here):
                pass

    def _digests_of_target(self, threads: Sequence[str] | frozenset[str]) -> Digests:
        there = Digests()
        if threads:
            for table in COPIED_TABLES:
                for row in self._target.rows(table, Chosen(sorted(threads))):
                    there.add(table, self._forms.compared(table, row))
        return there


class _Counted:
    """Rows on their way, and how much of them went by."""

    def __init__(self, rows: Iterator[bytes]) -> None:
        self.rows = 0
        self.bytes = 0
        self._rows = rows

    def __iter__(self) -> Iterator[bytes]:
        for row in self._rows:
            self.rows += 1
            self.bytes += len(row)
            yield row
