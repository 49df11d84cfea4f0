"""A crash at every statement of the writing path leaves a patch whole or absent, and known.

The path is that of the command: the run's row in the ledger is there, then come the patch's
transaction, the findings and the end of the run.
"""

import contextlib
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from repair_service.demo.postgres import EmbeddedPostgres, start_postgres
from tests.acceptance.nursery import Nursery
from tests.conftest import Server, with_options
from tests.sweep.crashed import (
    Pair,
    assert_nothing_is_half_done,
    assert_the_next_sweep_ends_it,
    fill_both,
    fill_ledger,
    fill_store,
)
from tests.sweep.exchanges import counted, sweep

PLENTY = 200
"""More exchanges than a sweep of one thread has."""

FEWEST = 15
"""Fewer than that: the path was not gone through where there are not so many."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery("tests.sweep.exchanges")
    yield nursery
    nursery.close()


@pytest.fixture(params=["one database", "two databases"])
def pair(request: pytest.FixtureRequest, server: Server) -> Iterator[Pair]:
    """A damaged store and an empty ledger."""
    with ExitStack() as names:
        if server.fresh("probe", lambda connection: None, names).schema != "public":
            pytest.skip("the ledger has one schema, so each test needs a database of its own")
        if request.param == "one database":
            url = server.fresh("crash both", fill_both, names).url
            yield Pair(url, url)
        else:
            yield Pair(
                server.fresh("crash store", fill_store, names).url,
                server.fresh("crash ledger", fill_ledger, names).url,
            )


def test_a_process_killed_before_any_statement(pair: Pair, nursery: Nursery) -> None:
    before, killed = pair.rows(), 0
    for number in range(1, PLENTY):
        pair.reset(before)
        code = nursery.run("sweep_until", number, pair.store_url, pair.ledger_url)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
        pair.gone()
        assert_nothing_is_half_done(pair, before)
        assert_the_next_sweep_ends_it(pair, before)
    assert FEWEST < killed < PLENTY - 2


@pytest.mark.parametrize(
    ("pair", "how"),
    [
        ("one database", "before the server has it"),
        ("one database", "before its answer comes"),
        # A commit whose answer is lost: the ledger in the other database does not know.
        ("two databases", "before its answer comes"),
    ],
    indirect=["pair"],
)
def test_a_connection_cut_at_any_statement(pair: Pair, how: str) -> None:
    before, cut = pair.rows(), 0
    for number in range(1, PLENTY):
        pair.reset(before)
        with Between(pair.store_url) as between:
            through = Pair(
                between.url(pair.store_url),
                between.url(pair.store_url) if pair.shared else pair.ledger_url,
            )

            def at(now: int, number: int = number, between: Between = between) -> None:
                if now == number:
                    between.cut(at_once=how == "before the server has it")

            with counted(at) as count:
                sweep(through.store_url, through.ledger_url)
            if count[0] < number:
                break
            cut += 1
            pair.gone()
            assert_nothing_is_half_done(through, before)
            # By the same address: in two databases a store is known by it.
            assert_the_next_sweep_ends_it(through, before)
    assert FEWEST < cut < PLENTY - 2


class Between:
    """Stands between a client and a server, hands on every byte, and cuts when it is told to."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            host, port = connection.info.host, connection.info.port
        self._target: Any = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._mute: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> "Between":
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._hang_up()
        for thread in self._threads:
            thread.join()
        for each in (self._listening, *self._open):
            each.close()

    def url(self, url: str) -> str:
        """The address of the server by way of this."""
        port = str(self._listening.getsockname()[1])
        with psycopg.connect(url) as connection:
            name, user = connection.info.dbname, connection.info.user
            password = connection.info.password
        login = f"{user}:{password}" if password else user
        return f"postgresql://{login}@127.0.0.1:{port}/{name}?sslmode=disable"

    def cut(self, *, at_once: bool) -> None:
        """Cut the connections that there are, now or when the server next answers on one."""
        if at_once:
            self._hang_up()
        else:
            self._mute = list(self._open)

    def _hang_up(self) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                family = socket.AF_UNIX if isinstance(self._target, str) else socket.AF_INET
                server = socket.socket(family)
                server.connect(self._target)
                self._open += [client, server]
                for source, target in ((client, server), (server, client)):
                    answers = source is server
                    thread = threading.Thread(target=self._hand_on, args=(source, target, answers))
                    self._threads.append(thread)
                    thread.start()

    def _hand_on(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if answers and source in self._mute:
                    self._hang_up()
                    break
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def data_directory() -> Iterator[Path]:
    """Where a server may keep its data over its own death; the server's account can reach it."""
    with tempfile.TemporaryDirectory(prefix="repair-crash-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_a_server_stopped_immediately_before_any_statement(data_directory: Path) -> None:
    data = data_directory / "data"
    stopped = 0
    with ExitStack() as stack:
        server = stack.enter_context(start_postgres(data))
        make_database(server, "template", fill_both)
        for number in range(1, PLENTY):
            url = make_database(server, f"crash_{number}", None)
            pair = Pair(url, url)
            before = pair.rows()

            def at(now: int, number: int = number, server: EmbeddedPostgres = server) -> None:
                if now == number:
                    stop_immediately(server)

            with counted(at) as count:
                sweep(pair.store_url, pair.ledger_url)
            if count[0] < number:
                break
            stopped += 1
            server = stack.enter_context(start_postgres(data))
            pair = Pair(*[with_options(server.url, dbname=f"crash_{number}")] * 2)
            assert_nothing_is_half_done(pair, before)
            assert_the_next_sweep_ends_it(pair, before)
    assert FEWEST < stopped < PLENTY - 2


def stop_immediately(server: EmbeddedPostgres) -> None:
    """As `pg_ctl stop -m immediate` does: no checkpoint, so the next start has to recover."""
    os.kill(server.pid, signal.SIGQUIT)
    server.stop()


def make_database(
    server: EmbeddedPostgres,
    name: str,
    fill: Callable[["psycopg.Connection[Any]"], None] | None,
) -> str:
    """A database that is filled, or a copy of the one that was."""
    source = "template0" if fill else "template"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(source)
            )
        )
    url = with_options(server.url, dbname=name)
    if fill:
        with psycopg.connect(url, autocommit=True) as connection:
            fill(connection)
    return url
