"""A sweep while a run is alive in a tool: the run's own result becomes the head, always."""

import threading

import pytest

from repair_service.demo.model import check
from repair_service.demo.programs import EARLIER, GRAPHS, LINES, TASK_A_CALL, build, said, thread
from repair_service.demo.witness import WitnessSaver
from repair_service.repair.verdict import Policy, Verdict
from tests.acceptance.service import assert_in_call_order, audit, results, sweep, verdicts
from tests.conftest import Database

PATIENCE = 30


@pytest.mark.parametrize("line", ["one-call", "three-calls"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_run_that_was_taken_for_dead_ends_with_its_real_results(
    name: str, line: str, database: Database
) -> None:
    in_the_tool, let_go = threading.Event(), threading.Event()

    def slow(after: int) -> str:
        # The siblings are done by then, so that the sweep does not see the head change under it.
        assert saver.wait_for(after if name in TASK_A_CALL else 0)
        in_the_tool.set()
        assert let_go.wait(PATIENCE)
        return "slow finished"

    with WitnessSaver.connect(database.url) as saver:
        graph = build(name, saver, slow)
        graph.invoke(said(EARLIER), thread("alive"), durability="sync")
        run = threading.Thread(
            target=graph.invoke,
            args=(said(LINES[line]), thread("alive")),
            kwargs={"durability": "sync"},
        )
        run.start()
        try:
            assert in_the_tool.wait(PATIENCE)
            # Too young by default: nothing is written behind a run's back.
            assert verdicts(sweep(database, Policy())) == {("alive", ""): Verdict.ACTIVE}
            # Taken for dead all the same: written, and harmless.
            assert verdicts(sweep(database)) == {("alive", ""): Verdict.REPAIRED}
        finally:
            let_go.set()
            run.join(PATIENCE)

        messages = graph.get_state(thread("alive")).values["messages"]
        check(messages[:-1])
        assert_in_call_order(messages)
        called = messages[5:-1]
        said_by_tools = " / ".join(message.text for message in called[1:])
        assert messages[-1].text == f"The tools said: {said_by_tools}"
        assert "slow finished" in results(messages).values()
        assert not any(message.additional_kwargs for message in called)
        assert audit(database) == []
        answer = graph.invoke(said("Are you there?"), thread("alive"))
        assert answer["messages"][:-2] == messages
