"""The stores that are measured: databases on one server, kept for the next run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg import sql

from repair_service.demo.postgres import start_postgres
from tests.benchmarks.fill import Shape, fill

SHARED_BUFFERS = "4GB"
"""Of the server that is started: what is in use of a store is in memory, as it is in production."""


class Stores:
    """Makes stores on a server, each once."""

    def __init__(self, url: str) -> None:
        self.url = url

    def store(self, shape: Shape) -> str:
        """The address of a store of that shape, filled now if it is not there."""
        name = f"bench_{shape.threads}_{shape.checkpoints}"
        if not self._exists(name):
            making = f"{name}_unfinished"
            self._run("DROP DATABASE IF EXISTS {}", making)
            self._run("CREATE DATABASE {}", making)
            fill(self._at(making), shape)
            self._run("ALTER DATABASE {} RENAME TO {}", making, name)
        return self._at(name)

    @contextmanager
    def copy(self, shape: Shape) -> Iterator[str]:
        """A copy of a store, to be written to; gone afterwards."""
        self.store(shape)
        source, name = f"bench_{shape.threads}_{shape.checkpoints}", "bench_copy"
        self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        self._run("CREATE DATABASE {} TEMPLATE {}", name, source)
        try:
            yield self._at(name)
        finally:
            self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    @contextmanager
    def empty(self) -> Iterator[str]:
        """A store with LangGraph's tables and no rows; gone afterwards."""
        name = "bench_empty"
        self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        self._run("CREATE DATABASE {} TEMPLATE template0", name)
        try:
            with PostgresSaver.from_conn_string(self._at(name)) as saver:
                saver.setup()
            # What the one before has left to be written to disk is not to be written by the next.
            self._run("CHECKPOINT")
            yield self._at(name)
        finally:
            self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def server_version(self) -> str:
        with psycopg.connect(self.url) as connection:
            return str(connection.info.parameter_status("server_version"))

    def _exists(self, name: str) -> bool:
        with psycopg.connect(self.url) as connection:
            found = connection.execute("SELECT FROM pg_database WHERE datname = %s", [name])
            return found.fetchone() is not None

    def _run(self, text: str, *names: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL(text).format(*map(sql.Identifier, names)))

    def _at(self, database: str) -> str:
        parts = urlsplit(self.url)
        # Not urlunsplit, which drops the empty host of a Unix socket's address.
        return f"{parts.scheme}://{parts.netloc}/{database}?{parts.query}"


@contextmanager
def stores(url: str | None, keep: Path | None) -> Iterator[Stores]:
    """The stores on a server.

    Args:
        url: Its address; None to start one.
        keep: Where the started one keeps its data for the next run; None for nowhere.
    """
    if url is not None:
        yield Stores(url)
        return
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    with start_postgres(keep, shared_buffers=SHARED_BUFFERS) as server:
        yield Stores(server.url)
