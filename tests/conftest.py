"""Databases for the tests: a real Postgres, and a fresh database for each test that asks.

`REPAIR_TEST_DSN` names a server to use; without it each test process starts one of its own. A role
that may not create databases gets a fresh schema for each test instead.
"""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from repair_service.demo.postgres import start_postgres
from tests.corpus import loader
from tests.replicas import Pair, start_pair


@dataclass(frozen=True, slots=True)
class Database:
    """A checkpoint store of one test.

    Attributes:
        url: Its address; an unqualified table name means the one in `schema`.
        schema: The schema of its tables.
    """

    url: str
    schema: str = "public"

    def connect(self) -> "psycopg.Connection[Any]":
        """A connection of its own, in autocommit mode."""
        return psycopg.connect(self.url, autocommit=True)


@dataclass(frozen=True, slots=True)
class Corpus:
    """One store of the corpus, loaded into a database of its own."""

    version: str
    database: Database
    expected: tuple[loader.Expected, ...]


@dataclass(frozen=True, slots=True)
class Replicated:
    """One store on two servers."""

    servers: Pair
    primary: Database
    replica: Database


Fill = Callable[["psycopg.Connection[Any]"], None]


class Server:
    """Makes databases for tests on one server and removes them.

    A filling is done once into a template, from which each test's database is copied. Where the
    role may not create databases, it is done anew into a schema.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._templates: dict[str, str] = {}
        self._names = ExitStack()
        with self.connect() as connection:
            row = connection.execute(
                "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            self._may_create = row is not None and bool(row[0])

    def connect(self) -> "psycopg.Connection[Any]":
        return psycopg.connect(self.url, autocommit=True)

    def fresh(self, name: str, fill: Fill, names: ExitStack) -> Database:
        """A database that holds what `fill` wrote; gone when `names` is closed."""
        if not self._may_create:
            return self._fresh_schema(fill, names)
        if name not in self._templates:
            self._templates[name] = self._create(None, self._names)
            with psycopg.connect(self._at(self._templates[name]), autocommit=True) as connection:
                fill(connection)
        return Database(self._at(self._create(self._templates[name], names)))

    def close(self) -> None:
        self._names.close()

    def _create(self, template: str | None, names: ExitStack) -> str:
        name = f"repair_test_{uuid.uuid4().hex}"
        source = sql.Identifier(template or "template0")
        with self.connect() as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), source)
            )
        names.callback(self._drop, name)
        return name

    def _drop(self, name: str) -> None:
        with self.connect() as connection:
            statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            connection.execute(statement.format(sql.Identifier(name)))

    def _fresh_schema(self, fill: Fill, names: ExitStack) -> Database:
        schema = f"repair_test_{uuid.uuid4().hex}"
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        names.callback(self._drop_schema, schema)
        database = Database(
            with_options(self.url, options=f"-c search_path={schema}"), schema=schema
        )
        with database.connect() as connection:
            fill(connection)
        return database

    def _drop_schema(self, schema: str) -> None:
        with self.connect() as connection:
            statement = sql.SQL("DROP SCHEMA {} CASCADE")
            connection.execute(statement.format(sql.Identifier(schema)))

    def _at(self, database: str) -> str:
        return with_options(self.url, dbname=database)


def with_options(url: str, **options: str) -> str:
    """The same address with other connection options, as a URL where it was one."""
    if "://" not in url:
        return make_conninfo(url, **options)
    parts = urlsplit(url)
    path = f"/{options.pop('dbname')}" if "dbname" in options else parts.path
    added = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
    query = "&".join(part for part in (parts.query, added) if part)
    # Not urlunsplit, which drops the empty host of a Unix socket's address.
    return f"{parts.scheme}://{parts.netloc}{path}?{query}"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The Postgres server of this test process."""
    with ExitStack() as stack:
        url = os.environ.get("REPAIR_TEST_DSN") or stack.enter_context(start_postgres()).url
        running = Server(url)
        stack.callback(running.close)
        yield running


@pytest.fixture(scope="session")
def server_url(server: Server) -> str:
    """The address of that server, for tests that make their own databases."""
    return server.url


@pytest.fixture(scope="session")
def pair() -> Iterator[Pair]:
    """A primary with a streaming replica, apart from the server of the other tests."""
    with start_pair() as running:
        yield running


@pytest.fixture
def replicated(pair: Pair) -> Iterator[Replicated]:
    """A store of the corpus (python-1.2.24) on a primary and on its replica."""
    primary = Server(pair.primary.url)
    with ExitStack() as names:
        names.callback(primary.close)
        filled = primary.fresh(
            "replicated", lambda connection: loader.load(connection, "python-1.2.24"), names
        )
        pair.caught_up()
        name = urlsplit(filled.url).path.removeprefix("/")
        yield Replicated(pair, filled, Database(with_options(pair.replica.url, dbname=name)))


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    """A fresh database with LangGraph's empty tables, as its own saver makes them."""
    with ExitStack() as names:
        yield server.fresh("langgraph", _langgraph_tables, names)


@pytest.fixture
def empty_database(server: Server) -> Iterator[Database]:
    """A fresh database without any table."""
    with ExitStack() as names:
        yield server.fresh("empty", lambda connection: None, names)


@pytest.fixture
def load_corpus(server: Server) -> Iterator[Callable[[str], Corpus]]:
    """Loads the corpus store of a version ("python-1.2.24") into a fresh database."""
    with ExitStack() as names:

        def load(version: str) -> Corpus:
            filled = server.fresh(
                version, lambda connection: loader.load(connection, version), names
            )
            stated = tuple(each for each in loader.expected() if each.version == version)
            return Corpus(version, filled, stated)

        yield load


@pytest.fixture(params=loader.VERSIONS)
def corpus(request: pytest.FixtureRequest, load_corpus: Callable[[str], Corpus]) -> Corpus:
    """Every store of the corpus in turn, in a fresh database."""
    version: str = request.param
    return load_corpus(version)


def _langgraph_tables(connection: "psycopg.Connection[Any]") -> None:
    from langgraph.checkpoint.postgres import PostgresSaver

    PostgresSaver(connection).setup()
