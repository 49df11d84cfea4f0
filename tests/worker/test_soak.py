"""The worker beside live runs, some of which are killed; `make soak` does it for half an hour."""

import sys

import pytest

from repair_service.demo.programs import quiet_tracing
from repair_service.ledger import migrate
from tests.acceptance.nursery import Nursery
from tests.conftest import Database
from tests.worker.soak import Soak

MINUTES = 0.4
quiet_tracing()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_each_killed_thread_is_repaired_once_and_no_live_run_is_disturbed(
    database: Database,
) -> None:
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    migrate.upgrade(database.url)
    nursery = Nursery()
    try:
        soaked = Soak(database.url, nursery).run(MINUTES)
    finally:
        nursery.close()
    assert soaked.killed > 3
    assert soaked.repaired == soaked.went_on == soaked.killed
    assert soaked.live > 3
    assert soaked.disturbed == 0
    assert max(soaked.connections) <= 8
    assert max(soaked.memory) < 250
