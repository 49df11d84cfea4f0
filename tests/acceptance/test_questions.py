"""Questions that are open, answered, or abandoned; breakpoints; calls that the browser answers."""

from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command

from repair_service.demo.programs import EARLIER, said, thread
from repair_service.demo.witness import KILLED
from repair_service.repair.verdict import Policy, Verdict
from tests.acceptance.nursery import Nursery
from tests.acceptance.programs import FAMILIES
from tests.acceptance.service import (
    REFUSED,
    assert_accepted,
    assert_repaired,
    assert_waiting,
    audit,
    never_again,
    results,
    sweep,
    verdicts,
)
from tests.conftest import Database

APPROVE = {"decisions": [{"type": "approve"}]}


def quick(after: int) -> str:
    """A tool `slow` that lives."""
    return "slow finished"


def test_a_question_protects_the_dead_sibling(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    inputs = ["Ask me, and call slow."]
    assert nursery.run("talk", "agent", database.url, "asks", inputs) == KILLED
    graph = FAMILIES["agent"](saver, quick)
    before = graph.get_state(thread("asks"))

    assert_waiting(database, "asks")

    assert graph.get_state(thread("asks")) == before
    answer = graph.invoke(Command(resume="yes"), thread("asks"))
    assert answer["messages"][-1].text == "The tools said: approved: yes / slow finished"
    assert audit(database) == []


def test_one_answer_of_two_leaves_the_thread_waiting(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    assert nursery.run("talk", "agent", database.url, "asks", ["Ask me twice."]) == 0
    graph = FAMILIES["agent"](saver, never_again)
    this, that = graph.get_state(thread("asks")).interrupts
    assert_waiting(database, "asks")

    graph.invoke(Command(resume={this.id: "yes"}), thread("asks"))

    assert_waiting(database, "asks")
    assert graph.get_state(thread("asks")).interrupts == (that,)
    answer = graph.invoke(Command(resume={that.id: "no"}), thread("asks"))
    assert answer["messages"][-1].text == "The tools said: approved: yes / approved: no"


def test_questions_of_which_some_are_answered_protect_the_dead_sibling(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    inputs = ["Ask me twice, and call slow."]
    assert nursery.run("talk", "agent", database.url, "asks", inputs) == KILLED
    graph = FAMILIES["agent"](saver, quick)
    this, that = graph.get_state(thread("asks")).interrupts
    assert_waiting(database, "asks")

    # Answered by id: the sibling lives this time, and the other question is open still.
    graph.invoke(Command(resume={this.id: "yes"}), thread("asks"), durability="sync")

    assert_waiting(database, "asks")
    answer = graph.invoke(Command(resume={that.id: "no"}), thread("asks"), durability="sync")
    assert answer["messages"][-1].text == (
        "The tools said: approved: yes / approved: no / slow finished"
    )
    assert audit(database) == []


@pytest.mark.parametrize(
    ("family", "text", "answer"),
    [
        pytest.param("agent", "Ask me first, then be slow.", "yes", id="interrupt() in the tool"),
        pytest.param("approved_agent", "Call slow.", APPROVE, id="HumanInTheLoopMiddleware"),
    ],
)
def test_nobody_waits_any_more_where_the_tool_died_behind_the_answer(
    family: str,
    text: str,
    answer: Any,
    database: Database,
    saver: PostgresSaver,
    nursery: Nursery,
) -> None:
    for thread_id in ("continued", "told"):
        assert nursery.run("talk", family, database.url, thread_id, [EARLIER, text]) == 0
    assert_waiting(database, "continued", "told")
    for thread_id in ("continued", "told"):
        inputs = [{"answer": answer}]
        assert nursery.run("talk", family, database.url, thread_id, inputs) == KILLED

    done = assert_repaired(database, ("continued", ""), ("told", ""))

    assert [item.resume for item in done] == ["continue", "continue"]
    graph = FAMILIES[family](saver, never_again)
    for thread_id in ("continued", "told"):
        state = graph.get_state(thread(thread_id))
        assert state.interrupts == ()
        assert_accepted(state.values["messages"])
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text.startswith("The tools said: ")
    state = graph.invoke(said("Are you there?"), thread("told"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"
    assert audit(database) == []


@pytest.mark.parametrize(
    ("family", "text"),
    [
        pytest.param("agent", "Ask me first.", id="interrupt() in the tool"),
        pytest.param("approved_agent", "Call slow.", id="HumanInTheLoopMiddleware"),
    ],
)
def test_a_question_that_a_new_message_went_past_is_abandoned(
    family: str, text: str, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES[family](saver, never_again)
    for thread_id in ("continued", "told"):
        assert nursery.run("talk", family, database.url, thread_id, [text]) == 0
        with pytest.raises(REFUSED):
            graph.invoke(said("Never mind."), thread(thread_id), durability="sync")

    assert_repaired(database, ("continued", ""), ("told", ""))

    for thread_id in ("continued", "told"):
        assert_accepted(graph.get_state(thread(thread_id)).values["messages"])
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text == "You said: Never mind."
    state = graph.invoke(said("Hello?"), thread("told"), durability="sync")
    assert state["messages"][-1].text == "You said: Hello?"


def test_a_call_that_a_person_must_allow_waits(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    assert nursery.run("talk", "approved_agent", database.url, "asks", ["Call slow."]) == 0
    graph = FAMILIES["approved_agent"](saver, quick)
    before = graph.get_state(thread("asks"))

    assert_waiting(database, "asks")

    assert graph.get_state(thread("asks")) == before
    state = graph.invoke(Command(resume=APPROVE), thread("asks"))
    assert state["messages"][-1].text == "The tools said: slow finished"


def test_a_declared_breakpoint_waits_and_an_undeclared_one_looks_dead(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    inputs = ["Call slow."]
    assert nursery.run("talk", "breakpoint_before_tools", database.url, "stopped", inputs) == 0
    graph = FAMILIES["breakpoint_before_tools"](saver, quick)
    before = graph.get_state(thread("stopped"))
    assert before.next == ("tools",)

    # The rows of its first stop tell it from a crash in nothing.
    assert verdicts(audit(database)) == {("stopped", ""): Verdict.REPAIRABLE}
    declared = Policy(min_idle=0, breakpoints=frozenset({"tools"}))
    assert_waiting(database, "stopped", policy=declared)

    assert graph.get_state(thread("stopped")) == before
    state = graph.invoke(None, thread("stopped"))
    assert results(state["messages"]) == {"call_1_1": "slow finished"}


def test_a_call_last_in_a_thread_at_rest_is_the_browsers(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    assert nursery.run("talk", "client_side", database.url, "browses", ["Open the page."]) == 0
    graph = FAMILIES["client_side"](saver, never_again)
    assert_waiting(database, "browses")

    allowed = Policy(min_idle=0, allow=frozenset({"at_rest"}))
    assert verdicts(sweep(database, allowed)) == {("browses", ""): Verdict.REPAIRED}

    state = graph.get_state(thread("browses"))
    assert state.next == ()
    assert_accepted(state.values["messages"])
    state = graph.invoke(said("Are you there?"), thread("browses"))
    assert state["messages"][-1].text == "You said: Are you there?"


def test_a_declared_client_tool_waits_wherever_it_stands(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    assert nursery.run("talk", "client_side", database.url, "browses", ["Open the page."]) == 0
    graph = FAMILIES["client_side"](saver, never_again)
    with pytest.raises(REFUSED):
        graph.invoke(said("Are you there?"), thread("browses"), durability="sync")

    assert verdicts(audit(database)) == {("browses", ""): Verdict.REPAIRABLE}
    declared = Policy(min_idle=0, client_tools=frozenset({"browser"}))
    assert_waiting(database, "browses", policy=declared)
