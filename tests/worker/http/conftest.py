"""A worker served by a real server, over a real ledger and store."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from repair_service.ledger import migrate
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.run import StoreIdentity
from repair_service.worker.http.application import serving
from repair_service.worker.http.settings import HttpSettings, StoreDoor
from tests.conftest import Corpus, Database
from tests.worker.http.workers import KEY, TOKEN, RememberingWorker

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
            orders = StoreDoor("orders", NOWHERE)
            told = HttpSettings(**{"port": 0, "token": TOKEN, "stores": (orders,), **settings})
            server = open_ones.enter_context(serving(worker, told, ledger_url))
            url = f"http://127.0.0.1:{server.address[1]}"
            return open_ones.enter_context(httpx.Client(base_url=url, timeout=30))

        yield start


@pytest.fixture
def database(empty_database: Database) -> Database:
    """A database with an empty ledger and nothing else."""
    if empty_database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    migrate.upgrade(empty_database.url)
    return empty_database


@pytest.fixture
def ledger(database: Database) -> Iterator[Ledger]:
    """That ledger."""
    with Ledger(database.url) as opened:
        yield opened


@pytest.fixture
def identity() -> StoreIdentity:
    """The store that the worker's settings name, as the ledger knows it."""
    return StoreIdentity("postgresql://db-1.internal:5432/orders", KEY, True)


@pytest.fixture
def door(load_corpus: Callable[[str], Corpus]) -> StoreDoor:
    """A store with damaged threads, and how it is looked into."""
    return StoreDoor("orders", load_corpus("python-1.2.24").database.url)
