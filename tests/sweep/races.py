"""Many repairers at once on the same threads, while live LangGraph runs go on in some of them.

`python -m tests.sweep.races` runs it at full size on a server of its own (`make race`).
"""

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.postgres import start_postgres
from repair_service.demo.programs import EARLIER, LINES, build, quiet_tracing, said, thread
from repair_service.demo.witness import PATIENCE, WitnessSaver
from repair_service.ledger import migrate
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.run import NewRun
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.run_record import RunRecord
from repair_service.sweep.selection import Selection

NOW = Policy(min_idle=0)
"""Takes every live run for dead, which no operator should: the worst case."""

PATTERN = "live-0"
"""The live run whose rows, as they are while it is in the tool, the dead threads are copies of."""

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")

ANSWER = "The tools said: fast call_2_1 / slow finished / fast call_2_3"


@dataclass(slots=True)
class Live:
    """The runs that are alive: each waits in its tool until it is let go."""

    url: str
    runs: list["Future[Any]"] = field(default_factory=list)
    let_go: list[threading.Event] = field(default_factory=list)

    def start(self, pool: ThreadPoolExecutor, count: int) -> None:
        """Start them, and wait until each is in its tool with its siblings' results on disk."""
        waiting = []
        for index in range(count):
            in_the_tool, let_go = threading.Event(), threading.Event()
            waiting.append(in_the_tool)
            self.let_go.append(let_go)
            self.runs.append(pool.submit(self._run, f"live-{index}", in_the_tool, let_go))
        for event in waiting:
            assert event.wait(PATIENCE * 4)

    def _run(self, name: str, in_the_tool: threading.Event, let_go: threading.Event) -> None:
        with WitnessSaver.connect(self.url) as saver:

            def slow(after: int) -> str:
                assert saver.wait_for(after)
                in_the_tool.set()
                assert let_go.wait(PATIENCE * 10)
                return "slow finished"

            graph = build("create_agent", saver, slow)
            graph.invoke(said(EARLIER), thread(name), durability="sync")
            graph.invoke(said(LINES["three-calls"]), thread(name), durability="sync")


@dataclass(frozen=True, slots=True)
class Raced:
    """What came of a race.

    Attributes:
        outcomes: What each repairer said of each head.
        seconds: How long the repairers took.
    """

    outcomes: tuple[tuple[Diagnosis, ...], ...]
    seconds: float

    def of(self, verdict: Verdict) -> Counter[tuple[str, str]]:
        """How often each head (thread and checkpoint) had that outcome."""
        return Counter(
            (each.thread_id, each.checkpoint_id)
            for outcome in self.outcomes
            for each in outcome
            if each.verdict is verdict
        )


def race(url: str, *, threads: int, live: int, repairers: int) -> Raced:
    """Let repairers race each other and live runs, and check what is left.

    Args:
        url: A database with LangGraph's tables, the ledger's, and no thread.
        threads: Damaged threads.
        live: How many more are live runs.
        repairers: How many sweeps at once.

    Raises:
        AssertionError: A thread was written twice, a live run's result is not the head, the ledger
            and the store disagree, or something is left to repair.
    """
    running = Live(url)
    start = threading.Barrier(repairers + 1)
    with ThreadPoolExecutor(live + repairers) as pool:
        try:
            running.start(pool, live)
            copy_threads(url, threads)
            before = counted(url)
            sweeps = [pool.submit(sweep, url, start) for _ in range(repairers)]
            start.wait(PATIENCE)
            began = time.monotonic()
            # Half of the runs end while the repairers are at work, the others when they are done.
            for event in running.let_go[::2]:
                event.set()
            outcomes = tuple(each.result() for each in sweeps)
            seconds = time.monotonic() - began
        finally:
            start.abort()
            for event in running.let_go:
                event.set()
        for run in running.runs:
            run.result()
    raced = Raced(outcomes, seconds)
    assert_each_was_written_once(url, raced, before, threads)
    assert_live_runs_won(url, live)
    return raced


def sweep(url: str, start: threading.Barrier) -> tuple[Diagnosis, ...]:
    """One repairer: a sweep of everything, with its record in the ledger."""
    with Store.connect(url) as store, Ledger(url) as ledger:
        run = NewRun(
            verb="sweep",
            store=ledger.identify(url, "public"),
            selection={},
            policy={},
            whole_store=True,
            actor="racer",
            version="0",
            host="here",
        )
        ledger.runs.open(run)
        record = RunRecord(ledger, run, most_repairs=3)
        start.wait(PATIENCE)
        done = tuple(Sweep(store, NOW, Selection(), record=record).repair())
        record.flush()
        return done


def copy_threads(url: str, count: int) -> None:
    """Damaged threads: the rows of a run that is in its tool, as its death would leave them."""
    with psycopg.connect(url, autocommit=True) as connection:
        for table in TABLES:
            names = [
                str(row[0])
                for row in connection.execute(
                    "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
                    " AND table_schema = 'public' AND column_name <> 'thread_id'",
                    [table],
                )
            ]
            columns = ", ".join(names)
            connection.execute(
                f"INSERT INTO {table} (thread_id, {columns}) SELECT 'dead-' || i, {columns}"
                f" FROM {table}, generate_series(1, %s) AS i WHERE thread_id = %s".encode(),
                [count, PATTERN],
            )


def counted(url: str) -> dict[str, int]:
    """Checkpoints by thread."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT thread_id, count(*) FROM checkpoints GROUP BY 1")
        return {str(row[0]): int(row[1]) for row in found}


def assert_each_was_written_once(
    url: str, raced: Raced, before: dict[str, int], threads: int
) -> None:
    """A head is written by one repairer at most, and the ledger has what the store has."""
    written = raced.of(Verdict.REPAIRED)
    assert not raced.of(Verdict.FAILED)
    assert set(written.values()) == {1}
    dead = {name for name, _ in written if name.startswith("dead-")}
    assert len(dead) == threads
    after = counted(url)
    assert all(after[name] == before[name] + 1 for name in dead)
    with psycopg.connect(url, autocommit=True) as connection:
        patches = {
            (str(row[0]), str(row[1]))
            for row in connection.execute(
                "SELECT thread_id, checkpoint_id FROM checkpoints AS c"
                " WHERE metadata ? 'repair_service' AND NOT EXISTS (SELECT FROM checkpoints AS p"
                " WHERE p.thread_id = c.thread_id AND p.checkpoint_id = c.parent_checkpoint_id"
                " AND p.metadata ? 'repair_service')"
            )
        }
        repairs = [
            (str(row[0]), str(row[1]), str(row[2]))
            for row in connection.execute(
                "SELECT thread_id, to_checkpoint_id, state FROM repair_service.repairs"
            )
        ]
    assert {state for _, _, state in repairs} == {"settled"}
    assert sorted((name, patch) for name, patch, _ in repairs) == sorted(patches)
    assert len(patches) == len(written)


def assert_live_runs_won(url: str, live: int) -> None:
    """Each live run's own result is the head, as if nobody had swept; nothing is left to repair."""
    with PostgresSaver.from_conn_string(url) as saver:
        graph = build("create_agent", saver, lambda after: "unused")
        for index in range(live):
            state = graph.get_state(thread(f"live-{index}"))
            assert state.metadata is not None
            assert state.metadata["source"] == "loop"
            assert state.next == ()
            assert state.values["messages"][-1].text == ANSWER
    with Store.connect(url) as store:
        assert list(Sweep(store, NOW, Selection()).audit()) == []


@contextmanager
def own_database() -> Iterator[str]:
    """A server with a database that has both kinds of tables."""
    with ExitStack() as stack:
        server = stack.enter_context(start_postgres())
        with PostgresSaver.from_conn_string(server.url) as saver:
            saver.setup()
        migrate.upgrade(server.url)
        yield server.url


def main() -> int:
    """Race at full size, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--live", type=int, default=20)
    parser.add_argument("--repairers", type=int, default=8)
    asked = parser.parse_args()
    quiet_tracing()
    with own_database() as url:
        raced = race(url, threads=asked.threads, live=asked.live, repairers=asked.repairers)
    drifted = raced.of(Verdict.DRIFTED).total()
    print(
        f"{asked.repairers} repairers, {asked.threads} damaged threads, {asked.live} live runs: "
        f"{len(raced.of(Verdict.REPAIRED))} heads written, each once, in {raced.seconds:.1f} s; "
        f"{drifted} times a repairer came second and wrote nothing; every live run's result is "
        "the head."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
