"""Fixtures of the acceptance tests: LangGraph itself is the judge."""

from collections.abc import Iterator

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.programs import quiet_tracing
from tests.acceptance.nursery import Nursery
from tests.conftest import Database

quiet_tracing()
pytest.register_assert_rewrite("tests.acceptance.service")


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where programs are started to be killed."""
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def saver(database: Database) -> Iterator[PostgresSaver]:
    """LangGraph's saver on the test's database."""
    with PostgresSaver.from_conn_string(database.url) as saver:
        yield saver
