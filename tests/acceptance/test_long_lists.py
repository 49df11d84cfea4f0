"""Lists as long, and messages as large, as an application may ever store."""

import os
import subprocess
import sys
import time
from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.programs import build, said, thread
from repair_service.repair.verdict import Verdict
from tests.acceptance.service import assert_accepted, never_again, sweep, verdicts
from tests.conftest import Database

ROOT = Path(__file__).parents[2]
LARGE = 50_000_000
LONG = 20_000
ENOUGH = 10
"""Seconds of processor time for a sweep over the long list, which takes one; a quadratic one takes
minutes."""
CALL = {"name": "slow", "args": {"after": 0}, "id": "cut-off", "type": "tool_call"}
SWEEP = """
import resource, sys
from repair_service.repair.verdict import Policy
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
import psycopg
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with Store.connect(sys.argv[1], schema=sys.argv[2]) as store:
    done = list(Sweep(store, Policy(min_idle=0), Selection()).repair())
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print([item.verdict.value for item in done], (after - before) * 1024)
"""


def test_a_list_of_twenty_thousand_messages(database: Database, saver: PostgresSaver) -> None:
    graph = build("create_agent", saver, never_again)
    turns = []
    for number in range(LONG // 4):
        call = {**CALL, "id": f"call_{number}"}
        turns += [
            HumanMessage(f"Question {number}", id=f"q{number}"),
            AIMessage("", tool_calls=[call], id=f"c{number}"),
            ToolMessage("found", tool_call_id=call["id"], name="slow", id=f"r{number}"),
            AIMessage(f"Answer {number}", id=f"a{number}"),
        ]
    asked = [*turns, HumanMessage("And?", id="last"), AIMessage("", tool_calls=[CALL], id="cut")]
    graph.update_state(thread("cut off"), {"messages": asked}, as_node="model")

    started = time.process_time()
    done = sweep(database)
    assert time.process_time() - started < ENOUGH

    assert verdicts(done) == {("cut off", ""): Verdict.REPAIRED}
    messages = graph.get_state(thread("cut off")).values["messages"]
    assert messages[:-1] == asked
    assert_accepted(messages)
    state = graph.invoke(said("Are you there?"), thread("cut off"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"


def test_a_message_of_fifty_megabytes_takes_less_than_ten_times_its_size(
    database: Database, saver: PostgresSaver
) -> None:
    graph = build("create_agent", saver, never_again)
    large = HumanMessage("x" * LARGE, id="large")
    cut_off = AIMessage("", tool_calls=[CALL], id="cut")
    graph.update_state(thread("large"), {"messages": [large, cut_off]}, as_node="model")

    ran = subprocess.run(
        [sys.executable, "-c", SWEEP, database.url, database.schema],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )

    outcome, _, memory = ran.stdout.strip().rpartition(" ")
    assert outcome == "['repaired']"
    assert int(memory) < 10 * LARGE
    messages = graph.get_state(thread("large")).values["messages"]
    assert messages[:2] == [large, cut_off]
    assert_accepted(messages)
