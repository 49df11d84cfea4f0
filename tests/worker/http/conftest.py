"""A worker served by a real server, over a real ledger and store."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from repair_service.ledger import migrate
from repair_service.worker.http.application import serving
from repair_service.worker.http.settings import HttpSettings, StoreDoor
from tests.cli.conftest import Command, command  # noqa: F401  # the fixture, for this room too
from tests.conftest import Corpus, Database
from tests.worker.http.workers import TOKEN, RememberingWorker

Served = Callable[..., httpx.Client]

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2"


@pytest.fixture
def worker() -> RememberingWorker:
    return RememberingWorker()


@pytest.fixture
def serve(worker: RememberingWorker) -> Iterator[Served]:
    """Serves the worker, and gives a client for it; loopback with a token unless told."""
    with ExitStack() as open_ones:

        def start(ledger_url: str = NOWHERE, **settings: Any) -> httpx.Client:
            told = HttpSettings(**{"port": 0, "token": TOKEN, **settings})
            server = open_ones.enter_context(serving(worker, told, ledger_url))
            host = "127.0.0.1" if told.host == "0.0.0.0" else told.host  # noqa: S104
            url = f"http://{host}:{server.address[1]}"
            return open_ones.enter_context(httpx.Client(base_url=url, timeout=30))

        yield start


@pytest.fixture
def store(load_corpus: Callable[[str], Corpus]) -> Database:
    """A store with damaged threads, and an empty ledger in its database."""
    database = load_corpus("python-1.2.24").database
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    migrate.upgrade(database.url)
    return database


@pytest.fixture
def door(store: Database) -> StoreDoor:
    """How that store is looked into."""
    return StoreDoor("orders", store.url)
