"""The lines of the README by which an application resumes its threads, as they stand there."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.programs import Graph, Scenario, build, thread
from repair_service.demo.witness import KILLED
from tests.acceptance.nursery import Nursery
from tests.acceptance.service import assert_accepted, never_again, sweep
from tests.conftest import Database

README = Path(__file__).parents[2] / "README.md"
SCENARIO = Scenario("create_agent", "three-calls", True)


def lines() -> str:
    """The block of code in the README that listens."""
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    (block,) = [block for block in blocks if "LISTEN repair_service" in block]
    return str(block)


class Resumed(Exception):
    """The lines listen for ever; a test has seen enough after one thread."""


class Application:
    """The application's graph; the first thread that it goes on with ends the listening."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def invoke(self, *arguments: Any) -> None:
        raise Resumed(self._graph.invoke(*arguments, durability="sync"))


def test_a_thread_that_is_repaired_goes_on_by_itself(
    database: Database,
    saver: PostgresSaver,
    nursery: Nursery,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not README.is_file():
        pytest.skip("the package is installed, not a checkout")
    assert nursery.run("scenario", str(SCENARIO), database.url, "killed") == KILLED
    monkeypatch.setenv("DATABASE_URL", database.url)
    graph = build(SCENARIO.graph, saver, never_again)

    with ThreadPoolExecutor(1) as pool, database.connect() as connection:
        listening = pool.submit(exec, lines(), {"graph": Application(graph)})
        while not connection.execute(
            "SELECT FROM pg_stat_activity WHERE state = 'idle' AND query = 'LISTEN repair_service'"
            " AND datname = current_database()"
        ).rowcount:
            assert not listening.done(), listening.exception()
        sweep(database)
        with pytest.raises(Resumed) as resumed:
            listening.result(timeout=30)

    (answer,) = resumed.value.args
    assert answer["messages"][-1].text.startswith("The tools said: ")
    messages = graph.get_state(thread("killed")).values["messages"]
    assert messages == answer["messages"]
    assert_accepted(messages)
