"""Replicas of the worker over a damaged store: in this process, and in processes of their own."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import structlog

from repair_service.cli.worker_settings import load_worker
from repair_service.ledger.gateway import Ledger
from repair_service.worker.replica import Replica
from tests.conftest import Database, Server
from tests.sweep.crashed import TABLES, THREAD, fill_both

PATIENCE = 60.0
"""Seconds to wait for an event: far more than a loaded machine needs."""

ROOT = Path(__file__).parents[2]

SLOWLY = "SELECT 'nobody' || pg_sleep(0.25)::text"
"""An active_query by which each patch takes a quarter of a second, without a processor's time."""


@dataclass
class Events:
    """The lines of a log as they come."""

    seen: list[dict[str, Any]] = field(default_factory=list)
    _coming: "queue.Queue[dict[str, Any] | None]" = field(default_factory=queue.Queue)

    def put(self, line: dict[str, Any] | None) -> None:
        self._coming.put(line)

    def wait_for(self, event: str, **fields: Any) -> dict[str, Any]:
        """The next line that says this; those before it are passed."""
        until = time.monotonic() + PATIENCE
        while (left := until - time.monotonic()) > 0:
            try:
                line = self._coming.get(timeout=left)
            except queue.Empty:
                break
            if line is None:
                raise AssertionError(f"{event!r} never came; before it: {self.seen}")
            self.seen.append(line)
            if line.get("event") == event and fields.items() <= line.items():
                return line
        raise AssertionError(f"{event!r} did not come; before it: {self.seen}")


class Worker:
    """A replica in a process of its own."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self.events = Events()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "repair_service", "serve"],
            cwd=directory,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            # What is no line of the log, as a traceback, fails the test with its own words.
            self.events.put(json.loads(line) if line.startswith("{") else {"event": line})
        self.events.put(None)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        """Killed, and its log read to the end, which its runs may still write to."""
        self.kill()
        self._reader.join(PATIENCE)
        assert self._process.stderr is not None
        self._process.stderr.close()

    def children(self) -> list[int]:
        """The processes that it has started."""
        listed = Path(f"/proc/{self.pid}/task").glob("*/children")
        return [int(pid) for path in listed for pid in path.read_text().split()]


@dataclass
class Site:
    """A damaged store with its ledger, and the settings of the worker over it."""

    database: Database
    directory: Path
    names: ExitStack

    @property
    def url(self) -> str:
        """The address, with a password that nothing may show."""
        return f"{self.database.url}&password=s3cret-in-the-address"

    def configure(self, text: str) -> None:
        """Write the settings."""
        (self.directory / "repair-service.toml").write_text(text)

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if "REPAIR" not in name}
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        return {**kept, "DATABASE_URL": self.url, "PYTHONPATH": path}

    def start(self) -> Worker:
        """A replica in a process of its own; it is gone when the test is."""
        worker = Worker(self.directory, self.environment())
        self.names.callback(worker.close)
        return worker

    def ledger(self) -> Ledger:
        """The ledger."""
        return self.names.enter_context(Ledger(self.database.url))

    def copy(self, count: int) -> None:
        """Make so many more damaged threads of the one."""
        with self.database.connect() as connection:
            for table in TABLES:
                columns = [
                    row[0]
                    for row in connection.execute(
                        "SELECT column_name FROM information_schema.columns"
                        " WHERE table_schema = 'public' AND table_name = %s"
                        " AND column_name <> 'thread_id' ORDER BY 1",
                        [table],
                    )
                ]
                named = ", ".join(columns)
                connection.execute(
                    f"INSERT INTO {table} (thread_id, {named})"
                    f" SELECT 'copy-' || n, {named} FROM {table}, generate_series(1, %s) AS n"
                    " WHERE thread_id = %s".encode(),
                    [count, THREAD],
                )

    def asked(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        with self.database.connect() as connection:
            return connection.execute(statement.encode(), values).fetchall()


@pytest.fixture
def site(server: Server, tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as names:
        database = server.fresh("worker", fill_both, names)
        if database.schema != "public":
            pytest.skip("the ledger has one schema, so each test needs a database of its own")
        yield Site(database, tmp_path, names)


@pytest.fixture
def events() -> Iterator[Events]:
    """What replicas in this process log."""
    events = Events()

    def collect(logger: Any, level: str, event: Any) -> Any:
        events.put(dict(event))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[collect], cache_logger_on_first_use=False)
    yield events
    structlog.configure(**before)


StartReplica = Callable[[], Replica]


@pytest.fixture
def start_replica(
    site: Site, monkeypatch: pytest.MonkeyPatch, events: Events
) -> Iterator[StartReplica]:
    """Starts a replica in this process, by the settings in the site's file."""
    for name in [name for name in os.environ if "REPAIR" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DATABASE_URL", site.url)
    monkeypatch.setenv("PYTHONPATH", site.environment()["PYTHONPATH"])
    monkeypatch.chdir(site.directory)
    with ExitStack() as stack:

        def start() -> Replica:
            configuration = load_worker({})
            stop = threading.Event()
            ledger = stack.enter_context(Ledger(configuration.ledger_address))
            replica = Replica(configuration, ledger)
            thread = threading.Thread(target=replica.run, args=[stop])
            thread.start()
            stack.callback(thread.join)
            stack.callback(stop.set)
            return replica

        yield start
