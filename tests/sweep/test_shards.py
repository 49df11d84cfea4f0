"""Shards and jobs: every thread is in exactly one, and together they do what one run does."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repair_service.ledger.records.base import END, Base, Earlier, JobCursors
from repair_service.repair.verdict import Policy
from repair_service.store.gateway import Store
from repair_service.store.scan import shard_of
from repair_service.sweep.record import NoRecord
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from repair_service.sweep.shard import Shard
from tests.conftest import Corpus, Database
from tests.corpus import loader

LoadCorpus = Callable[[str], Corpus]

POLICY = Policy(min_idle=0)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 12), st.integers(1, 6))
def test_a_thread_is_in_one_part_and_in_one_part_of_it(
    thread_id: str, count: int, jobs: int
) -> None:
    shards = [Shard(index, count) for index in range(1, count + 1)]
    (mine,) = [shard for shard in shards if is_in(thread_id, shard)]
    assert sum(is_in(thread_id, mine.part(index, jobs)) for index in range(1, jobs + 1)) == 1


def is_in(thread_id: str, shard: Shard) -> bool:
    index, count = shard.of_store()
    return shard_of(thread_id, count) == index


def test_shards_are_about_as_large_as_one_another() -> None:
    sizes = Counter(shard_of(f"user-{number:06}", 4) for number in range(4_000))
    assert all(800 < size < 1_200 for size in sizes.values())


@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_the_shards_of_a_scan_are_the_whole_scan(load_corpus: LoadCorpus, batch_size: int) -> None:
    database = load_corpus("python-1.2.24").database
    with Store.connect(database.url, schema=database.schema) as store:
        whole = places(store)
        parts = [
            place
            for index in range(3)
            for place in places(store, shard=(index, 3), batch_size=batch_size)
        ]
    assert sorted(parts) == sorted(whole)


def places(store: Store, **selection: Any) -> list[tuple[str, str]]:
    found = [head for batch in store.scan(**selection) for head in batch]
    return [(row.thread_id, row.checkpoint_ns) for row in found]


def written(database: Database) -> list[tuple[Any, ...]]:
    """The heads of all threads, and how many rows each has."""
    with database.connect() as connection:
        return connection.execute(
            "SELECT thread_id, checkpoint_ns, max(checkpoint_id), count(*) FROM checkpoints"
            " GROUP BY 1, 2 ORDER BY 1, 2"
        ).fetchall()


def test_several_shards_at_once_write_what_one_sweep_writes(load_corpus: LoadCorpus) -> None:
    """Processes that know nothing of each other; two are killed among their writes, begun anew,
    and one of them begun twice."""
    alone, shared = (load_corpus("python-1.2.24").database for _ in range(2))
    for database in (alone, shared):
        with database.connect() as connection:
            loader.multiply(connection, 12)
    with Store.connect(alone.url, schema=alone.schema) as store:
        list(Sweep(store, POLICY, Selection()).repair())
    with shared.connect() as listening:
        listening.execute("LISTEN repair_service")
        started = [start(shared, "--shard", f"{index}/3") for index in (1, 2, 3)]
        for shard in first_patches(listening, shared, {0, 2}):
            started[shard].kill()
    assert [process.wait() for process in started] == [-9, 2, -9]
    assert 0 < patches(shared) < patches(alone)
    again = [start(shared, "--shard", shard) for shard in ("1/3", "3/3", "3/3")]
    assert {process.wait() for process in again} == {2}
    assert patches(shared) == patches(alone)
    assert written(shared) == written(alone)


def test_shards_that_are_killed_at_any_moment_write_what_one_sweep_writes(
    load_corpus: LoadCorpus,
) -> None:
    """Each shard by two processes at once that know nothing of each other, killed again and again,
    while they begin, scan, write or end."""
    alone, shared = (load_corpus("python-1.2.24").database for _ in range(2))
    for database in (alone, shared):
        with database.connect() as connection:
            loader.multiply(connection, 8)
    began = time.monotonic()
    assert start(alone).wait() == 2
    most = 2 * (time.monotonic() - began)

    def run(number: int) -> int:
        moments = random.Random(number)
        shard = ("--shard", f"{number % 2 + 1}/2")
        return sum(killed(start(shared, *shard), moments.uniform(0, most)) for _ in range(4))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(run, range(4))) > 4
    for shard in ("1/2", "2/2"):
        assert start(shared, "--shard", shard).wait() == 2
    assert patches(shared) == patches(alone)
    assert written(shared) == written(alone)


def killed(process: "subprocess.Popen[bytes]", after: float) -> bool:
    """Kill a process after some seconds; whether it had not ended by then."""
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.kill()
    return process.wait() == -signal.SIGKILL


def first_patches(
    listening: "psycopg.Connection[Any]", database: Database, shards: set[int]
) -> Iterator[int]:
    """Some shards of three, each as soon as a patch is written in it."""
    for notice in listening.notifies(timeout=60):
        told = json.loads(notice.payload)
        shard = shard_of(told["thread_id"], 3)
        if told["schema"] == database.schema and shard in shards:
            shards.remove(shard)
            yield shard
        if not shards:
            return
    raise AssertionError("No patch was written within a minute.")


def patches(database: Database) -> int:
    with database.connect() as connection:
        row = connection.execute(
            "SELECT count(*) FROM checkpoints WHERE metadata ? 'repair_service'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_jobs_write_what_one_sweep_writes(load_corpus: LoadCorpus) -> None:
    alone, shared = (load_corpus("python-1.2.24").database for _ in range(2))
    assert start(alone).wait() == 2
    assert start(shared, "--jobs", "3").wait() == 2
    assert written(shared) == written(alone)


def start(database: Database, *flags: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "repair_service", "sweep", "--yes", "--min-idle", "0"),
            *("--schema", database.schema, *flags),
        ],
        env=os.environ | {"DATABASE_URL": database.url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


class LeftAll(NoRecord):
    """Knows of threads that they were not final."""

    def __init__(self, threads: list[str]) -> None:
        self.threads = threads

    def not_final(self, base: Base, after: str | None) -> Iterator[str]:
        return iter(self.threads)


def test_a_part_that_came_to_its_end_is_not_looked_at_again(load_corpus: LoadCorpus) -> None:
    database = load_corpus("python-1.2.24").database
    now = datetime.now(UTC)
    earlier = Earlier((uuid4(),), now, JobCursors((END, None)))
    selection = Selection(earlier=earlier, base=Base((uuid4(),), now, now.timestamp()))
    with Store.connect(database.url, schema=database.schema) as store:
        left = LeftAll(sorted({thread_id for thread_id, _ in places(store)}))
        parts = [selection.of_job(index, 2) for index in (1, 2)]
        done, anew = (Sweep(store, POLICY, part, record=left) for part in parts)
        assert list(done.audit()) == []
        assert (done.totals.heads, done.complete) == (0, True)
        assert {shard_of(each.thread_id, 2) for each in anew.audit()} == {1}
