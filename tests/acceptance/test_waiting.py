"""A thread that waits for somebody is left as it is, and its answer arrives."""

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command

from repair_service.demo.programs import GRAPHS, Scenario, build, thread
from repair_service.repair.verdict import Policy
from tests.acceptance.nursery import Nursery
from tests.acceptance.service import NOW, assert_waiting, audit, never_again
from tests.conftest import Database


@pytest.mark.parametrize("policy", [NOW, Policy(min_idle=0, resume="park")], ids=["now", "park"])
@pytest.mark.parametrize("history", [False, True], ids=["first-call", "history"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_question_stays_open_and_the_answer_reaches_the_tool(
    name: str,
    history: bool,
    policy: Policy,
    database: Database,
    saver: PostgresSaver,
    nursery: Nursery,
) -> None:
    assert (
        nursery.run("scenario", str(Scenario(name, "waiting", history)), database.url, "asks") == 0
    )
    graph = build(name, saver, never_again)
    before = graph.get_state(thread("asks"))
    assert [question.value for question in before.interrupts] == ["May I book the flight?"]

    assert_waiting(database, "asks", policy=policy)

    assert graph.get_state(thread("asks")) == before
    answer = graph.invoke(Command(resume="yes"), thread("asks"))
    assert answer["messages"][-1].text == "The tools said: approved: yes"
    assert audit(database) == []
