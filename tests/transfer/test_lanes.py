"""Several lanes copy what one does, and end together whatever becomes of one of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from repair_service.errors import RepairServiceError, StoreUnreachable
from repair_service.transfer.copy import Copying, CopyTotals
from repair_service.transfer.lane import Fate, Lane
from repair_service.transfer.store import CopiedStore
from tests.conftest import Corpus, Database
from tests.corpus import loader
from tests.transfer.conftest import AS_IT_IS, done, opened

COPIES = 9
"""Of each thread: several batches."""


class Stopped(BaseException):
    """Somebody wants the copy to end."""


@pytest.fixture
def source(load_corpus: Callable[[str], Corpus]) -> Database:
    database = load_corpus("python-1.2.24").database
    with database.connect() as connection:
        loader.multiply(connection, COPIES)
    return database


Begin = Callable[[Callable[[CopyTotals], None]], Copying]


@pytest.fixture
def begin(source: Database, target: Database) -> Iterator[Begin]:
    """A copy in two lanes."""
    with ExitStack() as stack:

        def side(database: Database, *, read_only: bool) -> CopiedStore:
            connection = opened(database, read_only=read_only)
            stack.callback(connection.close)
            return CopiedStore(connection)

        def copying(moved: Callable[[CopyTotals], None]) -> Copying:
            found = side(source, read_only=True)
            lanes = []
            for _ in range(2):
                store = side(source, read_only=True)
                into = side(target, read_only=False)
                lanes.append(Lane(store, store.connection.reading, into, AS_IT_IS))
            return Copying(found, found.connection.reading, lanes, moved=moved)

        yield copying


def threads_in(database: Database) -> list[str]:
    with database.connect() as connection:
        rows = connection.execute("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1")
        return [thread for (thread,) in rows]


def test_all_threads_are_copied_in_order(begin: Begin, source: Database, target: Database) -> None:
    batches: list[int] = []
    copied = done(begin(lambda totals: batches.append(totals.threads.total())))
    assert list(copied.fates) == threads_in(source) == threads_in(target)
    assert set(copied.fates.values()) == {Fate.COPIED}
    assert len(batches) > 3
    assert batches[-1] == copied.totals.threads[Fate.COPIED] == 43 * (COPIES + 1)


def test_a_copy_that_is_stopped_counts_what_was_under_way(begin: Begin, target: Database) -> None:
    def stop(totals: CopyTotals) -> None:
        raise Stopped

    work = begin(stop)
    with pytest.raises(Stopped):
        list(work.run())
    assert 0 < work.totals.threads[Fate.COPIED] < 43 * (COPIES + 1)
    assert len(threads_in(target)) == work.totals.threads[Fate.COPIED]


def test_a_thread_that_the_other_store_refuses_ends_the_copy_of_both_lanes(
    begin: Begin, target: Database
) -> None:
    with target.connect() as connection:
        connection.execute(
            "ALTER TABLE checkpoints ADD CONSTRAINT refuses CHECK (thread_id <> 'agent_three-7')"
        )
    work = begin(lambda totals: None)
    with pytest.raises(RepairServiceError):
        list(work.run())
    there = threads_in(target)
    assert "agent_three-7" not in there
    assert len(there) == work.totals.threads[Fate.COPIED]
    with target.connect() as connection:
        connection.execute("ALTER TABLE checkpoints DROP CONSTRAINT refuses")
    again = done(begin(lambda totals: None))
    assert again.totals.threads == {Fate.SAME: len(there), Fate.COPIED: 430 - len(there)}


def test_connections_that_are_cut_in_the_middle_end_the_copy_and_it_is_run_again(
    begin: Begin, target: Database
) -> None:
    def cut(totals: CopyTotals) -> None:
        with target.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'test' AND datname = current_database()"
                " AND pid <> pg_backend_pid()"
            )

    work = begin(cut)
    with pytest.raises(StoreUnreachable):
        list(work.run())
    again: Any = done(begin(lambda totals: None))
    assert again.totals.threads.total() == 430
    assert again.totals.threads[Fate.SAME] + again.totals.threads[Fate.COPIED] == 430
