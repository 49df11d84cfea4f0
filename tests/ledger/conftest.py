"""Ledgers for the tests: each in a database of its own."""

from collections.abc import Iterator

import pytest

from repair_service.ledger.gateway import Ledger
from repair_service.ledger.migrate import upgrade
from repair_service.ledger.records.run import StoreIdentity
from tests.conftest import Database


@pytest.fixture
def bare(empty_database: Database) -> Database:
    """A database without any table, not even the ledger's."""
    if empty_database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    return empty_database


@pytest.fixture
def ledger(bare: Database) -> Iterator[Ledger]:
    """A ledger in a database of its own."""
    upgrade(bare.url)
    with Ledger(bare.url) as opened:
        yield opened


@pytest.fixture
def store() -> StoreIdentity:
    """A store, as a ledger in the same database knows it."""
    return StoreIdentity(address="postgresql://db:5432/app", key="here/public", shared=True)
