"""What all judges share: starting the server, the clients and a swept corpus takes longest."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from langchain_core.language_models import BaseChatModel

from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Verdict
from tests.conftest import Server
from tests.corpus import loader
from tests.judges.clients import make_clients
from tests.judges.provider import Provider
from tests.judges.service import SWITCHED, audit, sweep
from tests.judges.transcripts import Key, Lists, load


@dataclass(frozen=True, slots=True)
class Swept:
    """A store of the corpus, before and after its sweep.

    Attributes:
        found: The repairable heads as they were diagnosed, by thread and namespace.
        before: Their lists as they were left.
        after: Their lists behind the sweep.
    """

    found: dict[Key, Diagnosis]
    before: Lists
    after: Lists


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    """The server that applies the providers' rules."""
    with Provider() as provider:
        yield provider


@pytest.fixture(scope="session")
def clients(provider: Provider) -> dict[str, BaseChatModel]:
    """The real clients, by provider."""
    return make_clients(provider.url)


@pytest.fixture(
    scope="session", params=[name for name in loader.VERSIONS if name.startswith("python-")]
)
def swept(request: pytest.FixtureRequest, server: Server) -> Iterator[Swept]:
    """Every Python store of the corpus, swept with the switches that make its lists repairable."""
    with ExitStack() as names:
        database = server.fresh(
            request.param, lambda connection: loader.load(connection, request.param), names
        )
        found = {
            (head.thread_id, head.checkpoint_ns): head
            for head in audit(database, SWITCHED)
            if head.verdict is Verdict.REPAIRABLE
        }
        before = load(database, found.values())
        outcomes = sweep(database, SWITCHED)
        repaired = [head for head in outcomes if head.verdict is Verdict.REPAIRED]
        after = load(database, repaired)
        assert found
        assert found.keys() == after.keys()
        yield Swept(found, before, after)
