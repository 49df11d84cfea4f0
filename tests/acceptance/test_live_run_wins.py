"""A sweep while a run is alive in a tool: the run's own result becomes the head, always."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from repair_service.demo.model import ScriptedModel
from repair_service.demo.programs import (
    EARLIER,
    GRAPHS,
    LINES,
    SCRIPT,
    TASK_A_CALL,
    Graph,
    Slow,
    build,
    make_tools,
    said,
    thread,
)
from repair_service.demo.witness import PATIENCE, WitnessSaver
from repair_service.repair.verdict import Policy, Verdict
from tests.acceptance.programs import FAMILIES
from tests.acceptance.service import assert_accepted, audit, results, sweep, verdicts
from tests.conftest import Database

BELOW_A_GRAPH = ("agent_as_node", "agent_with_memory", "two_levels_deep")


def assert_the_run_wins(
    database: Database,
    family: Callable[[WitnessSaver, Slow], Graph],
    line: str,
    one_task: bool = False,
) -> None:
    """Sweep while `slow` runs, let it end, and see that it is as if nobody had swept."""
    in_the_tool, let_go = threading.Event(), threading.Event()

    def slow(after: int) -> str:
        # The siblings are done by then, so that the sweep does not see the head change under it.
        assert saver.wait_for(0 if one_task else after)
        in_the_tool.set()
        assert let_go.wait(PATIENCE)
        return "slow finished"

    with WitnessSaver.connect(database.url) as saver:
        graph = family(saver, slow)
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
            assert set(verdicts(sweep(database, Policy())).values()) == {Verdict.ACTIVE}
            # Taken for dead all the same: written, and harmless.
            assert set(verdicts(sweep(database)).values()) == {Verdict.REPAIRED}
        finally:
            let_go.set()
            run.join(PATIENCE)

        messages = graph.get_state(thread("alive")).values["messages"]
        assert_accepted(messages)
        said_by_tools = ["slow finished"]
        if line == "three-calls":
            said_by_tools = ["fast call_2_1", "slow finished", "fast call_2_3"]
        assert messages[-1].text == "The tools said: " + " / ".join(said_by_tools)
        assert list(results(messages).values()) == ["fast call_1_1", *said_by_tools]
        assert audit(database) == []
        answer = graph.invoke(said("Are you there?"), thread("alive"), durability="sync")
        assert answer["messages"][:-2] == messages
        assert audit(database) == []


@pytest.mark.parametrize("line", ["one-call", "three-calls"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_run_that_was_taken_for_dead_ends_with_its_real_results(
    name: str, line: str, database: Database
) -> None:
    assert_the_run_wins(
        database, lambda saver, slow: build(name, saver, slow), line, name not in TASK_A_CALL
    )


@pytest.mark.parametrize("family", BELOW_A_GRAPH)
def test_so_does_a_run_below_a_graph(family: str, database: Database) -> None:
    assert_the_run_wins(database, FAMILIES[family], "three-calls")


def test_so_does_a_run_of_a_deep_agent(database: Database) -> None:
    assert_the_run_wins(database, FAMILIES["deep_agent"], "three-calls")


class HeldSaver(WitnessSaver):
    """A saver whose next checkpoint, once it is armed, is held back before it is written.

    Attributes:
        armed: Whether to hold the next one.
        holds: Set when it is held.
        let_go: Lets it be written.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.armed = False
        self.holds, self.let_go = threading.Event(), threading.Event()

    def put(self, config: RunnableConfig, *rest: Any) -> RunnableConfig:
        if self.armed:
            self.armed = False
            self.holds.set()
            assert self.let_go.wait(PATIENCE)
        return super().put(config, *rest)


@pytest.mark.parametrize("name", GRAPHS)
def test_so_does_a_checkpoint_that_was_made_before_the_patch_and_written_after_it(
    name: str, database: Database
) -> None:
    with HeldSaver.connect(database.url) as saver:
        assert isinstance(saver, HeldSaver)

        def slow(after: int) -> str:
            saver.armed = True
            return "slow finished"

        # The held checkpoint is the run's last: no later one of its own could hide the patch.
        model, tools = ScriptedModel(script=SCRIPT), make_tools(slow)
        graph = GRAPHS[name](model, tools, saver, interrupt_after=["tools"])
        run = threading.Thread(
            target=graph.invoke,
            args=(said(LINES["one-call"]), thread("alive")),
            kwargs={"durability": "sync"},
        )
        run.start()
        try:
            assert saver.holds.wait(PATIENCE)
            assert saver.wait_for(1)
            assert verdicts(sweep(database)) == {("alive", ""): Verdict.REPAIRED}
        finally:
            saver.let_go.set()
            run.join(PATIENCE)

        state = graph.get_state(thread("alive"))
        assert state.metadata is not None
        assert state.metadata["source"] == "loop"
        messages = graph.invoke(None, thread("alive"), durability="sync")["messages"]
        assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
        assert messages[-1].text == "The tools said: slow finished"
        assert audit(database) == []
