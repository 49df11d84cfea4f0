"""Teams whose agents hand over: the agent that was left looks cut off for ever, and is dead."""

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command

from repair_service.demo.programs import said, thread
from repair_service.demo.witness import KILLED
from repair_service.repair.verdict import Verdict
from tests.acceptance.nursery import Nursery
from tests.acceptance.programs import FAMILIES
from tests.acceptance.service import (
    assert_accepted,
    assert_repaired,
    audit,
    never_again,
    results,
    rows,
    sweep,
    verdicts,
)
from tests.acceptance.test_namespaces import innermost
from tests.conftest import Database


def namespaces(database: Database, thread_id: str) -> dict[str, str]:
    """The newest namespace of each node of the thread's root, by the node's name."""
    with database.connect() as connection:
        found = connection.execute(
            "SELECT checkpoint_ns FROM checkpoints"
            " WHERE thread_id = %s AND checkpoint_ns <> '' ORDER BY checkpoint_id",
            [thread_id],
        ).fetchall()
    return {namespace.partition(":")[0]: namespace for (namespace,) in found}


@pytest.mark.parametrize(
    ("family", "inputs", "left", "works"),
    [
        pytest.param("swarm", ["Get me Bob."], "alice", "bob", id="swarm"),
        pytest.param(
            "swarm",
            ["Call fast.", "Get me Bob.", "Get me Alice.", "Get me Bob."],
            "alice",
            "bob",
            id="swarm, back and forth",
        ),
        pytest.param(
            "supervisor", ["Have the worker work."], "supervisor", "worker", id="supervisor"
        ),
        pytest.param(
            "supervisor",
            ["Have the helper help.", "Have the worker work."],
            "supervisor",
            "worker",
            id="supervisor, a turn before",
        ),
    ],
)
def test_the_agent_at_work_is_repaired_and_the_one_that_was_left_is_not(
    family: str,
    inputs: list[str],
    left: str,
    works: str,
    database: Database,
    saver: PostgresSaver,
    nursery: Nursery,
) -> None:
    graph = FAMILIES[family](saver, never_again)
    heads = []
    for thread_id in ("continued", "told"):
        assert nursery.run("talk", family, database.url, thread_id, inputs) == KILLED
        there = namespaces(database, thread_id)
        # Its last word is a call, and its tools are pending: nothing in it says that it is dead.
        dead = saver.get_tuple(
            {"configurable": {"thread_id": thread_id, "checkpoint_ns": there[left]}}
        )
        assert dead is not None
        assert dead.checkpoint["channel_values"]["messages"][-1].tool_calls
        heads.append((thread_id, there[works]))

    done = assert_repaired(database, *heads)

    assert [item.resume for item in done] == ["continue", "continue"]
    for thread_id, namespace in heads:
        found, values = innermost(graph, thread_id)
        assert found == namespace
        assert_accepted(values["messages"])
        one, slow, other = list(results(values["messages"]).values())[-3:]
        assert one.startswith("fast work_")
        assert slow.startswith("The call to slow was interrupted")
        assert other.startswith("fast work_")
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert_accepted(state["messages"])
    assert state["messages"][-1].text.startswith("The tools said: ")
    for thread_id in ("continued", "told"):
        state = graph.invoke(said("Are you there?"), thread(thread_id), durability="sync")
        assert state["messages"][-1].text == "You said: Are you there?"
        assert_accepted(state["messages"])
    assert audit(database) == []


def test_an_agent_that_died_beside_one_that_finished_is_repaired_alone(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["side_by_side"](saver, never_again)
    heads = []
    for thread_id in ("continued", "told"):
        inputs = ["Hello.", "Work."]
        assert nursery.run("talk", "side_by_side", database.url, thread_id, inputs) == KILLED
        heads.append((thread_id, namespaces(database, thread_id)["patient"]))

    # What the other one said is a pending write of the root, which is not touched.
    assert_repaired(database, *heads)

    state = graph.invoke(None, thread("continued"), durability="sync")
    texts = [message.text for message in state["messages"]]
    assert any(text.startswith("The tools said: fast call_2_1") for text in texts)
    assert any(text.startswith("The call to slow was interrupted") for text in texts)
    state = graph.invoke(said("Are you there?"), thread("told"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"
    assert audit(database) == []


def test_a_message_that_went_past_the_agent_at_work_leaves_it_dead(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["swarm"](saver, never_again)
    assert nursery.run("talk", "swarm", database.url, "overtaken", ["Get me Bob."]) == KILLED
    state = graph.invoke(said("Are you there?"), thread("overtaken"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"

    before = rows(database)
    assert sweep(database) == []
    assert rows(database) == before


@pytest.mark.parametrize(
    ("family", "text"), [("supervisor", "Have the asker ask."), ("side_by_side", "Ask.")]
)
def test_a_question_of_an_agent_at_work_stays_open(
    family: str, text: str, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES[family](saver, never_again)
    assert nursery.run("talk", family, database.url, "asks", [text]) == 0
    before = rows(database)
    (question,) = graph.get_state(thread("asks")).interrupts

    assert set(verdicts(sweep(database)).values()) == {Verdict.WAITING}

    assert rows(database) == before
    state = graph.invoke(Command(resume={question.id: "yes"}), thread("asks"), durability="sync")
    assert any("said: approved: yes" in message.text for message in state["messages"])
    assert audit(database) == []
