"""The worker over a store on which live LangGraph runs go on and get killed, for some minutes.

`python -m tests.worker.soak --minutes 30` (`make soak`) runs it on a server of its own, and prints
what came of it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.postgres import start_postgres
from repair_service.demo.programs import LINES, build, quiet_tracing, said, thread
from repair_service.demo.witness import KILLED
from repair_service.ledger import migrate
from tests.acceptance.nursery import Nursery
from tests.acceptance.service import never_again, results

MIN_IDLE = 4.0
"""Seconds. Longer than a live run's tool takes, as an operator chooses it."""

TOOL_SECONDS = 1.0
LIVE_RUNS = 3
GOES_ON = "The tools said: "
EVERY = 3

SETTINGS = f"""
min_idle = "{MIN_IDLE:.0f}s"
[worker]
listen = "127.0.0.1:0"
look = "1s"
[schedules.often]
verb = "sweep"
every = "{EVERY}s"
"""


@dataclass(slots=True)
class Soaked:
    """What came of it.

    Attributes:
        killed: Threads whose process was killed in a tool.
        repaired: Those of them that have one patch.
        went_on: Those that then went on to an answer, with every result that was on disk.
        live: Turns of live runs that came to their answer.
        disturbed: Turns of live runs in which the service wrote to the thread.
        memory: Of the worker's process, in MB, over the time.
        peaks: The largest run's, in MB, over the time.
        connections: Of the service to the database, over the time.
    """

    killed: int = 0
    repaired: int = 0
    went_on: int = 0
    live: int = 0
    disturbed: int = 0
    memory: list[float] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)
    connections: list[int] = field(default_factory=list)

    def table(self) -> str:
        """The figures, a line each."""
        half = len(self.memory) // 2
        rows = [
            ("threads killed in a tool", f"{self.killed}"),
            ("repaired, once each", f"{self.repaired}"),
            ("went on with all results", f"{self.went_on}"),
            ("turns of live runs, all answered", f"{self.live}"),
            ("live threads written to", f"{self.disturbed}"),
            (
                "memory of the worker, first and second half",
                f"{max(self.memory[:half]):.0f} MB, {max(self.memory[half:]):.0f} MB",
            ),
            ("memory of a run, most", f"{max(self.peaks, default=0):.0f} MB"),
            ("connections, most", f"{max(self.connections)}"),
        ]
        return "\n".join(f"{name:<45}{value:>16}" for name, value in rows)


class Soak:
    """One soak over a database with LangGraph's tables and a ledger."""

    def __init__(self, url: str, nursery: Nursery) -> None:
        self.soaked = Soaked()
        self._url = url
        self._nursery = nursery
        self._end = threading.Event()
        self._counted = threading.Lock()

    def run(self, minutes: float) -> Soaked:
        """Kill, live and watch for so long; then let what is left be repaired, and look."""
        until = time.monotonic() + minutes * 60
        with self._worker() as worker:
            others = [threading.Thread(target=self._live, args=[n]) for n in range(LIVE_RUNS)]
            others.append(threading.Thread(target=self._watch, args=[worker]))
            for each in others:
                each.start()
            try:
                while time.monotonic() < until:
                    name = f"killed-{self.soaked.killed}"
                    kind = ("create_agent", "react_v2")[self.soaked.killed % 2]
                    code = self._nursery.run("scenario", f"{kind}:three-calls", self._url, name)
                    assert code == KILLED
                    self.soaked.killed += 1
                    self._end.wait(0.5)
                self._settled()
            finally:
                self._end.set()
                for each in others:
                    each.join()
        self._count()
        return self.soaked

    @contextmanager
    def _worker(self) -> Iterator["subprocess.Popen[bytes]"]:
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "repair-service.toml").write_text(SETTINGS)
            kept = {name: value for name, value in os.environ.items() if "REPAIR" not in name}
            root = str(Path(__file__).parents[2])
            path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
            worker = subprocess.Popen(
                [sys.executable, "-m", "repair_service", "serve"],
                cwd=directory,
                env={**kept, "DATABASE_URL": self._url, "PYTHONPATH": path},
                stderr=subprocess.DEVNULL,
            )
            try:
                yield worker
            finally:
                worker.terminate()
                assert worker.wait(60) == 0

    def _live(self, number: int) -> None:
        """A conversation that goes on and on, a new one each ten turns."""
        turn = 0
        with PostgresSaver.from_conn_string(self._url) as saver:

            def slow(after: int) -> str:
                self._end.wait(TOOL_SECONDS)
                return "slow finished"

            graph = build("create_agent", saver, slow)
            while not self._end.is_set():
                name = f"live-{number}-{turn // 10}"
                done = graph.invoke(said(LINES["three-calls"]), thread(name), durability="sync")
                assert done["messages"][-1].text.startswith(GOES_ON)
                turn += 1
                with self._counted:
                    self.soaked.live += 1

    def _watch(self, worker: "subprocess.Popen[bytes]") -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._end.wait(1.0):
                self.soaked.memory.append(_memory(worker.pid))
                self.soaked.peaks += [_memory(child) for child in _children(worker.pid)]
                row = connection.execute(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE application_name LIKE 'repair-service%' AND datname ="
                    " current_database()"
                ).fetchone()
                assert row is not None
                self.soaked.connections.append(row[0])

    def _settled(self) -> None:
        """Wait until every killed thread is repaired."""
        until = time.monotonic() + 60
        while len(self._patched()) < self.soaked.killed:
            assert time.monotonic() < until, "some thread was not repaired"
            time.sleep(0.5)

    def _patched(self) -> dict[str, int]:
        with psycopg.connect(self._url) as connection:
            return dict(
                connection.execute(
                    "SELECT thread_id, count(*) FROM checkpoints"
                    " WHERE metadata ->> 'source' = 'update' AND metadata ? 'repair_service'"
                    " AND checkpoint_id = metadata -> 'repair_service' ->> 'checkpoint_id'"
                    " GROUP BY thread_id"
                ).fetchall()
            )

    def _count(self) -> None:
        """Look at every thread, and let each killed one go on."""
        patched = self._patched()
        self.soaked.disturbed = sum(name.startswith("live-") for name in patched)
        with PostgresSaver.from_conn_string(self._url) as saver:
            graphs = [build(kind, saver, never_again) for kind in ("create_agent", "react_v2")]
            for number in range(self.soaked.killed):
                name = f"killed-{number}"
                self.soaked.repaired += patched.get(name) == 1
                messages: list[Any] = graphs[number % 2].invoke(None, thread(name))["messages"]
                found = results(messages)
                kept = [found.get(f"call_1_{call}") == f"fast call_1_{call}" for call in (1, 3)]
                self.soaked.went_on += all(kept) and messages[-1].text.startswith(GOES_ON)


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in listed for child in path.read_text().split()]


def _memory(pid: int) -> float:
    """Resident memory in MB; 0 for a process that is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    kilobytes = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")]
    return int(kilobytes[0]) / 1000 if kilobytes else 0.0


def main(arguments: list[str] | None = None) -> int:
    """Soak a worker on a server of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args(arguments)
    quiet_tracing()
    with ExitStack() as stack:
        url = stack.enter_context(start_postgres()).url
        with PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
        migrate.upgrade(url)
        nursery = Nursery()
        stack.callback(nursery.close)
        soaked = Soak(url, nursery).run(options.minutes)
    print(soaked.table())
    whole = soaked.killed == soaked.repaired == soaked.went_on
    return 0 if whole and not soaked.disturbed else 1


if __name__ == "__main__":
    sys.exit(main())
