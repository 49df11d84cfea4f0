"""What earlier runs of a thread say about the one that died, and what they do not."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.programs import Graph, said
from repair_service.repair.verdict import FaultKind, Verdict
from tests.acceptance.service import audit, results, sweep
from tests.acceptance.test_work_beside_the_tools import HERE, Died, calling, die, graph, numbered
from tests.conftest import Database


def go_on(program: Graph, config: Any = HERE) -> None:
    """Go on from where the thread stands, or from an older checkpoint, and die again."""
    try:
        program.invoke(None, config, durability="sync")
    except Died:
        return
    raise AssertionError("the program lived")


def refusing(state: Any) -> Any:
    """A model whose provider refuses the list."""
    raise ValueError("calls without a result")


def test_a_result_of_a_call_that_was_edited_since_is_not_taken_up(
    database: Database, saver: PostgresSaver
) -> None:
    agent = calling(numbered())
    program = graph(saver, "of the call as it was", agent=agent)
    program.invoke(said("One."), HERE)
    before = next(s for s in program.get_state_history(HERE) if s.next == ("tools",))
    caller = before.values["messages"][-1]
    edited = AIMessage(
        "", id=caller.id, tool_calls=[{"name": "slow", "args": {"to": "Bob"}, "id": "call_0"}]
    )
    there = program.update_state(before.config, {"messages": [edited]})
    broken = graph(saver, "", agent=agent)
    go_on(broken, there)
    (found,) = sweep(database)
    assert found.verdict is Verdict.REPAIRED
    assert [fault.kind for fault in found.faults] == [FaultKind.UNANSWERED_CALL]
    answers = results(broken.get_state(HERE).values["messages"])
    assert "of the call as it was" not in answers.values()


def test_a_result_that_an_update_dropped_is_taken_up(
    database: Database, saver: PostgresSaver
) -> None:
    agent = calling(numbered())
    program = graph(saver, "real", agent=agent)
    program.invoke(said("One."), HERE, interrupt_after=["tools"])
    before = next(s for s in program.get_state_history(HERE) if s.next == ("tools",))
    program.update_state(
        before.config, {"messages": [said("Two.")["messages"][0]]}, as_node="tools"
    )
    (found,) = sweep(database)
    assert found.verdict is Verdict.REPAIRED
    assert results(program.get_state(HERE).values["messages"]) == {"call_0": "real"}


@pytest.mark.parametrize("overtaken", [False, True])
@pytest.mark.parametrize("updated", [False, True])
def test_a_result_of_an_earlier_run_of_the_same_call_is_not_taken_up(
    updated: bool, overtaken: bool, database: Database, saver: PostgresSaver
) -> None:
    agent = calling(numbered())
    program = graph(saver, "of the first run", agent=agent)
    program.invoke(said("One."), HERE)
    before = next(s for s in program.get_state_history(HERE) if s.next == ("tools",))
    broken = graph(saver, "", agent=agent)
    there = before.config
    if updated:
        there = program.update_state(there, {"messages": []}, as_node="agent")
    go_on(broken, there)
    if overtaken:
        with pytest.raises(ValueError, match="without a result"):
            graph(saver, "", agent=refusing).invoke(said("Two."), HERE, durability="sync")

    (found,) = sweep(database)

    assert found.verdict is Verdict.REPAIRED
    assert [fault.mend for fault in found.faults] == ["placeholder"]
    answers = results(broken.get_state(HERE).values["messages"])
    assert "of the first run" not in answers.values()


def test_a_death_that_was_resumed_once_makes_no_breakpoint(
    database: Database, saver: PostgresSaver
) -> None:
    agent = calling(numbered())
    broken, whole = graph(saver, "", agent=agent), graph(saver, "real", agent=agent)
    die(broken, "One.")
    whole.invoke(None, HERE)
    die(broken, "Two.")
    (found,) = audit(database)
    assert found.verdict is Verdict.REPAIRABLE


def test_a_node_that_was_stopped_before_and_resumed_twice_is_a_breakpoint(
    database: Database, saver: PostgresSaver
) -> None:
    program = graph(saver, "real", agent=calling(numbered()))
    for text in ("One.", "Two."):
        program.invoke(said(text), HERE, interrupt_before=["tools"])
        program.invoke(None, HERE)
    program.invoke(said("Three."), HERE, interrupt_before=["tools"])
    (found,) = audit(database)
    assert found.verdict is Verdict.WAITING
    assert "breakpoint" in found.reason


def test_a_step_that_was_run_again_from_an_older_checkpoint_makes_no_breakpoint(
    database: Database, saver: PostgresSaver
) -> None:
    agent = calling(numbered())
    program = graph(saver, "real", agent=agent)
    program.invoke(said("One."), HERE)
    before = next(s for s in program.get_state_history(HERE) if s.next == ("tools",))
    go_on(graph(saver, "", agent=agent), before.config)
    (found,) = audit(database)
    assert found.verdict is Verdict.REPAIRABLE
