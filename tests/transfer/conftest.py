"""Two stores, and a copy from one to the other."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.store.connection import Bounds, StoreConnection
from repair_service.transfer.copy import Copying, CopyTotals
from repair_service.transfer.lane import Fate, Forms, Lane, Opened
from repair_service.transfer.seal import as_it_is
from repair_service.transfer.store import CopiedStore, Source
from tests.conftest import Database, Server

AS_IT_IS = Forms(as_it_is, as_it_is)


@dataclass(slots=True)
class Copied:
    """What a copy did."""

    fates: dict[str, Fate] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    totals: CopyTotals = field(default_factory=CopyTotals)


def opened(database: Database, *, read_only: bool = False) -> StoreConnection:
    """A connection to a store."""
    return StoreConnection(database.url, database.schema, "test", Bounds(60_000), read_only)


def copy(
    source: Database,
    target: Database,
    forms: Forms = AS_IT_IS,
    *,
    threads: tuple[str, ...] = (),
    shard: tuple[int, int] | None = None,
    since: float | None = None,
    **options: Any,
) -> Copied:
    """Copy threads from one database to another."""
    with closing(opened(source, read_only=True)) as reading, closing(opened(target)) as writing:
        store = CopiedStore(reading)
        work = one_lane(store, reading.reading, CopiedStore(writing), forms, **options)
        return done(work, threads, shard, since)


def one_lane(
    source: Source,
    reading: Opened,
    target: CopiedStore,
    forms: Forms,
    moved: Callable[[CopyTotals], None] = lambda totals: None,
    **options: Any,
) -> Copying:
    """A copy over one connection to each store."""
    lane = Lane(source, reading, target, forms, **options)
    return Copying(source, reading, [lane], moved=moved)


def done(
    work: Copying,
    threads: tuple[str, ...] = (),
    shard: tuple[int, int] | None = None,
    since: float | None = None,
) -> Copied:
    """Run a copy to its end."""
    copied = Copied()
    for thread, fate, reason in work.run(threads, shard, since):
        assert thread not in copied.fates
        copied.fates[thread] = fate
        copied.reasons[thread] = reason
    copied.totals = work.totals
    return copied


@pytest.fixture
def target(empty_database: Database) -> Database:
    """A second store, empty."""
    with PostgresSaver.from_conn_string(empty_database.url) as saver:
        saver.setup()
    return empty_database


Emptied = Callable[[], Database]


@pytest.fixture
def another(server: Server) -> Iterator[Emptied]:
    """Makes further empty stores."""

    def fill(connection: Any) -> None:
        PostgresSaver(connection).setup()

    with ExitStack() as names:
        yield lambda: server.fresh("transfer", fill, names)
