"""An incremental run finds what a full one would, whatever happened between two runs.

REPAIR_INCREMENTAL_SEEDS=200 tries more histories than the tests do.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command as Resume

from repair_service.demo.model import ProviderRefusal
from repair_service.demo.programs import EARLIER, LINES, Graph, build, quiet_tracing, said, thread
from repair_service.ledger import migrate
from repair_service.ledger.records import base
from tests.acceptance.service import audit as full_audit
from tests.cli.conftest import Command, command  # noqa: F401  # a fixture
from tests.conftest import Database

SEEDS = int(os.environ.get("REPAIR_INCREMENTAL_SEEDS", "3"))
STEPS = 16

quiet_tracing()


class Broken(Exception):
    """A tool breaks off, as it does when its process dies."""


class History:
    """A store with a ledger, and what may happen to it."""

    def __init__(self, database: Database, saver: PostgresSaver, run: Command, seed: int) -> None:
        self.database = database
        self.random = Random(seed)
        self.threads: dict[str, str] = {}
        self._saver = saver
        self._run = run
        self._breaks = True

        def slow(after: int) -> str:
            if self._breaks:
                raise Broken
            return "slow finished"

        self._graph: Graph = build("create_agent", saver, slow)

    def command(self, *words: str) -> Any:
        return self._run(*words, "--database-url", self.database.url)

    def some(self, kind: str) -> str | None:
        """A thread of a kind."""
        found = sorted(name for name, each in self.threads.items() if each == kind)
        return self.random.choice(found) if found else None

    def healthy(self) -> None:
        self._graph.invoke(said(EARLIER), thread(self._new("healthy")))

    def damaged(self) -> None:
        with pytest.raises(Broken):
            self._graph.invoke(
                said(LINES["three-calls"]), thread(self._new("damaged")), durability="sync"
            )

    def damaged_again(self) -> None:
        if name := self.some("healthy"):
            self.threads[name] = "damaged"
            with pytest.raises((Broken, ProviderRefusal)):
                self._graph.invoke(said(LINES["one-call"]), thread(name), durability="sync")

    def waiting(self) -> None:
        self._graph.invoke(said(LINES["waiting"]), thread(self._new("waiting")))

    def answered(self) -> None:
        if name := self.some("waiting"):
            self.threads[name] = "healthy"
            self._graph.invoke(Resume(resume="yes"), thread(name))

    def answered_on_disk(self) -> None:
        """The answer is written, and the process dies before anything else is."""
        if name := self.some("waiting"):
            self.threads[name] = "damaged"
            with self.database.connect() as connection:
                connection.execute(
                    "INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id,"
                    " task_id, idx, channel, type, blob)"
                    " SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, -4, '__resume__',"
                    " 'msgpack', '\\x91a3796573' FROM checkpoint_writes"
                    " WHERE thread_id = %s AND channel = '__interrupt__'",
                    [name],
                )

    def went_on(self) -> None:
        if name := self.some("damaged"):
            self._breaks = False
            try:
                # One that a message has overtaken is refused, and stays as it is.
                with suppress(ProviderRefusal):
                    self._graph.invoke(None, thread(name))
                    self.threads[name] = "healthy"
            finally:
                self._breaks = True

    def overtaken(self) -> None:
        if name := self.some("damaged"):
            with pytest.raises((ProviderRefusal, ValueError, Broken)):
                self._graph.invoke(said("Hello?"), thread(name))

    def repaired(self) -> None:
        if name := self.some("damaged"):
            ran = self.command("repair", name, "--min-idle", "0")
            if ran.code == 0:
                self.threads[name] = "repaired"

    def swept(self) -> None:
        assert self.command("sweep", "--yes", "--min-idle", "0").code in (0, 2)
        for name, kind in self.threads.items():
            if kind == "damaged":
                self.threads[name] = "repaired"

    def undone(self) -> None:
        if name := self.some("repaired"):
            self.threads[name] = "damaged"
            self.command("undo", name, "--yes")

    def deleted(self) -> None:
        if self.threads:
            name = self.random.choice(sorted(self.threads))
            del self.threads[name]
            self._saver.delete_thread(name)

    def updated(self) -> None:
        """An old checkpoint is forked, which makes a new head."""
        if name := self.some("healthy"):
            states = list(self._graph.get_state_history(thread(name)))
            config = self.random.choice([each for each in states if not each.next]).config
            self._graph.update_state(config, said("And then?"), as_node="__start__")

    def late(self) -> None:
        """A process of before a repair writes the real result, under the head that was mended."""
        if name := self.some("repaired"):
            with self.database.connect() as connection:
                connection.execute(
                    "INSERT INTO checkpoint_writes SELECT w.thread_id, w.checkpoint_ns,"
                    " w.checkpoint_id, w.task_id, 7, 'late', w.type, w.blob"
                    " FROM checkpoint_writes AS w JOIN checkpoints AS c"
                    " ON c.thread_id = w.thread_id AND c.parent_checkpoint_id = w.checkpoint_id"
                    " WHERE w.thread_id = %s AND c.metadata ? 'repair_service' LIMIT 1"
                    " ON CONFLICT DO NOTHING",
                    [name],
                )

    def _new(self, kind: str) -> str:
        name = f"{kind}-{self.random.randrange(10**6)}"
        self.threads[name] = kind
        return name


HAPPENINGS: tuple[Callable[[History], None], ...] = (
    History.healthy,
    History.damaged,
    History.damaged,
    History.damaged_again,
    History.waiting,
    History.answered,
    History.answered_on_disk,
    History.went_on,
    History.overtaken,
    History.repaired,
    History.swept,
    History.undone,
    History.deleted,
    History.updated,
    History.late,
)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_it_finds_what_a_full_run_finds(
    seed: int,
    database: Database,
    command: Command,  # noqa: F811  # the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    # Everything here happens by one clock, and within the minutes that clocks are allowed.
    monkeypatch.setattr(base, "CLOCKS", timedelta(0))
    migrate.upgrade(database.url)
    incremental = 0
    with PostgresSaver.from_conn_string(database.url) as saver:
        history = History(database, saver, command, seed)
        for _ in range(STEPS):
            for _ in range(history.random.randrange(1, 4)):
                history.random.choice(HAPPENINGS)(history)
            ran = history.command("audit", "--min-idle", "0", "--format", "json")
            incremental += "Looks at what has changed since" in ran.err
            found = {
                (item["thread_id"], item["checkpoint_ns"], item["verdict"], item["reason"])
                for item in ran.document["items"]
            }
            expected = {
                (item.thread_id, item.checkpoint_ns, item.verdict.value, item.reason)
                for item in full_audit(database)
            }
            assert found == expected
    assert incremental >= STEPS - 1


def test_threads_that_did_not_change_are_not_read(
    database: Database,
    command: Command,  # noqa: F811  # the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    monkeypatch.setattr(base, "CLOCKS", timedelta(0))
    migrate.upgrade(database.url)
    with PostgresSaver.from_conn_string(database.url) as saver:
        history = History(database, saver, command, 0)
        for _ in range(5):
            history.healthy()
        history.damaged()

        def heads(*flags: str) -> int:
            ran = history.command("audit", "--min-idle", "0", "--format", "json", *flags)
            return int(ran.document["totals"]["heads"])

        assert heads() == 6
        assert heads() == 1
        history.healthy()
        assert heads() == 2
        assert heads("--full") == 7


def test_another_policy_looks_at_every_head(
    database: Database,
    command: Command,  # noqa: F811  # the fixture
) -> None:
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    migrate.upgrade(database.url)
    address = ("--database-url", database.url)
    assert "no earlier run" in command("audit", *address).err
    assert "has changed since" in command("audit", *address).err
    assert "another policy" in command("audit", "--client-tool", "browser", *address).err
    assert command("audit", "--full", *address).err == ""


def test_without_a_ledger_it_says_that_it_is_full(
    database: Database,
    command: Command,  # noqa: F811  # the fixture
) -> None:
    said_of_it = command("audit", "--database-url", database.url).err
    assert "It looks at every head" in said_of_it
