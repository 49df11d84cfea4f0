"""Repairers that race each other and live runs: `make race` does the same at full size."""

import pytest

from repair_service.demo.programs import quiet_tracing
from repair_service.ledger import migrate
from repair_service.repair.verdict import Verdict
from tests.conftest import Database
from tests.sweep.races import race

quiet_tracing()


def test_each_head_is_written_at_most_once_and_every_live_run_wins(database: Database) -> None:
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    migrate.upgrade(database.url)
    raced = race(database.url, threads=24, live=4, repairers=8)
    # They did meet: somebody came second, and says so.
    assert raced.of(Verdict.DRIFTED)
