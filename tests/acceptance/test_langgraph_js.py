"""Threads that LangGraph.js left: repaired, and LangGraph.js goes on with them.

All its graphs and states are in the matrix (`make matrix`); here are those that a sweep may spoil
most. Skipped where Node.js or its packages cannot be had.
"""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from repair_service.repair.verdict import Verdict
from tests.acceptance.service import assert_only_added, audit, rows, sweep
from tests.conftest import Database
from tests.corpus import loader
from tests.matrix import environments
from tests.matrix.run import HERE

CACHE = HERE.parents[1] / ".matrix"
GRAPH = "createAgent"
KILLED = -signal.SIGKILL
FAST = {"call_2_1": "fast call_2_1", "call_2_3": "fast call_2_3"}
LEFT = [("siblings", "continue", FAST), ("overtaken", "message", FAST)]
"""How a thread is left, how it goes on, and the results that were on disk. Node starts slowly."""


@pytest.fixture(scope="module")
def program() -> Path:
    """The matrix's program, beside LangGraph.js."""
    try:
        directory = environments.make_js(CACHE)
    except environments.Unavailable as reason:
        pytest.skip(f"LangGraph.js cannot be run: {reason}")
    # Node looks for packages beside the program, so the program goes there.
    program = directory / "program.mjs"
    program.write_text((HERE / "program.mjs").read_text(encoding="utf-8"), encoding="utf-8")
    return program


def run(program: Path, *arguments: str, given: Any = None) -> "subprocess.CompletedProcess[str]":
    """Run the program, to its end or its death."""
    return subprocess.run(
        ["node", program, *arguments],
        input=None if given is None else json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_threads_of_langgraph_js_go_on(program: Path, empty_database: Database) -> None:
    database = empty_database
    with database.connect() as connection:
        loader.create_tables(connection, "js-1.7.3")
        connection.execute("INSERT INTO checkpoint_migrations SELECT generate_series(0, 4)")
    left: list[dict[str, Any]] = []
    for state, way, kept in LEFT:
        thread_id = f"{state} / {way}"
        died = run(program, "write", database.url, GRAPH, state, thread_id)
        assert died.returncode == KILLED, died.stderr
        if state == "overtaken":
            refused = run(program, "overtake", database.url, GRAPH, "-", thread_id)
            assert refused.returncode == 0, refused.stderr
        left.append(
            {"thread_id": thread_id, "graph": GRAPH, "state": state, "way": way, "kept": kept}
        )
    assert run(program, "write", database.url, GRAPH, "waiting", "waiting").returncode == 0
    left.append(
        {"thread_id": "waiting", "graph": GRAPH, "state": "waiting", "way": "answer", "kept": {}}
    )
    before = rows(database)

    done = {item.thread_id: item for item in sweep(database)}

    assert {name: item.verdict for name, item in done.items()} == {
        **{item["thread_id"]: Verdict.REPAIRED for item in left},
        "waiting": Verdict.WAITING,
    }
    assert_only_added(before, rows(database))
    assert len(rows(database)["checkpoints"]) == len(before["checkpoints"]) + len(LEFT)
    assert [item.thread_id for item in audit(database)] == ["waiting"]
    answer = run(program, "go_on", database.url, given=left)
    assert answer.returncode == 0, answer.stderr
    went_on = {item["thread_id"]: item["why"] for item in json.loads(answer.stdout)}
    assert went_on == dict.fromkeys(went_on, "")
    assert all(item["held"] for item in json.loads(answer.stdout))
