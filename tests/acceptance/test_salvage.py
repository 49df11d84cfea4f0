"""Real results on disk: all that belong to the step are kept, and no other is taken for one."""

from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver

from repair_service.demo.programs import EARLIER, LINES, Graph, said, thread
from repair_service.demo.witness import KILLED
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Verdict
from tests.acceptance.nursery import Nursery
from tests.acceptance.programs import FAMILIES
from tests.acceptance.service import (
    REFUSED,
    assert_accepted,
    assert_repaired,
    audit,
    never_again,
    results,
    rows,
    sweep,
    verdicts,
)
from tests.conftest import Database

NOTE = "Take a note, and call slow."


def messages_of(graph: Graph, thread_id: str) -> list[Any]:
    """The transcript as LangGraph reads it."""
    return list(graph.get_state(thread(thread_id)).values["messages"])


def assert_goes_on(graph: Graph) -> None:
    """`continued` goes on by itself, and both threads take a new message."""
    state: Any = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text.startswith("The tools said: ")
    for thread_id in ("continued", "told"):
        state = graph.invoke(said("Are you there?"), thread(thread_id), durability="sync")
        assert state["messages"][-1].text == "You said: Are you there?"
        assert_accepted(state["messages"])


def test_a_finished_call_that_wrote_another_channel_too_is_left_to_a_person(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["note_taker"](saver, never_again)
    assert nursery.run("talk", "note_taker", database.url, "noted", [NOTE]) == KILLED
    for thread_id in ("continued", "told"):
        inputs = [LINES["three-calls"]]
        assert nursery.run("talk", "note_taker", database.url, thread_id, inputs) == KILLED
    before = graph.get_state(thread("noted"))

    done = {item.thread_id: item for item in sweep(database)}

    assert done["noted"].verdict is Verdict.MANUAL
    assert "'note'" in done["noted"].reason
    assert graph.get_state(thread("noted")) == before
    # Its neighbours of the same graph, whose finished calls wrote results alone, are repaired.
    assert {done["continued"].verdict, done["told"].verdict} == {Verdict.REPAIRED}
    for thread_id in ("continued", "told"):
        assert_accepted(messages_of(graph, thread_id))
    assert_goes_on(graph)


def test_a_dropped_call_that_wrote_another_channel_too_is_left_to_a_person(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["note_taker"](saver, never_again)
    assert nursery.run("talk", "note_taker", database.url, "noted", [NOTE]) == KILLED
    with pytest.raises(REFUSED):
        graph.invoke(said("Are you there?"), thread("noted"), durability="sync")

    before = rows(database)
    (item,) = sweep(database)
    assert (item.verdict, "'note'" in item.reason) == (Verdict.MANUAL, True), item.reason
    assert rows(database) == before


def test_results_are_found_behind_every_message_that_went_past_them(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["agent"](saver, never_again)
    for thread_id in ("continued", "told"):
        inputs = [EARLIER, LINES["three-calls"]]
        assert nursery.run("talk", "agent", database.url, thread_id, inputs) == KILLED
        for text in ("Are you there?", "Hello?", "Well?"):
            with pytest.raises(REFUSED):
                graph.invoke(said(text), thread(thread_id), durability="sync")

    assert_repaired(database, ("continued", ""), ("told", ""))

    for thread_id in ("continued", "told"):
        messages = messages_of(graph, thread_id)
        assert_accepted(messages)
        found = results(messages)
        assert (found["call_2_1"], found["call_2_3"]) == ("fast call_2_1", "fast call_2_3")
        assert [message.text for message in messages[-3:]] == ["Are you there?", "Hello?", "Well?"]
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text == "You said: Well?"
    state = graph.invoke(said("Last."), thread("told"), durability="sync")
    assert state["messages"][-1].text == "You said: Last."


def test_a_message_that_was_stored_and_not_yet_taken_stays(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["agent"](saver, never_again)
    for thread_id in ("continued", "told"):
        inputs = [EARLIER, LINES["three-calls"]]
        assert nursery.run("talk", "agent", database.url, thread_id, inputs) == KILLED
        with pytest.raises(REFUSED):
            graph.invoke(said("Are you there?"), thread(thread_id), durability="sync")
    # As if the process had died behind the checkpoint that holds the input, before it took it.
    with database.connect() as connection:
        connection.execute(
            "DELETE FROM checkpoints AS c USING checkpoints AS input"
            " WHERE input.thread_id = c.thread_id AND input.metadata ->> 'source' = 'input'"
            " AND input.checkpoint_id = c.parent_checkpoint_id"
            " AND c.checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints AS newest"
            " WHERE newest.thread_id = c.thread_id)"
        )
    for thread_id in ("continued", "told"):
        state = graph.get_state(thread(thread_id))
        assert state.metadata is not None
        assert state.metadata["source"] == "input"

    done = assert_repaired(database, ("continued", ""), ("told", ""))

    assert [(item.resume, item.route) for item in done] == [("keep", ("__start__",))] * 2
    state = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text == "You said: Are you there?"
    assert_accepted(state["messages"])
    assert results(state["messages"])["call_2_1"] == "fast call_2_1"
    state = graph.invoke(said("Hello?"), thread("told"), durability="sync")
    assert state["messages"][-1].text == "You said: Hello?"
    assert_accepted(state["messages"])


def mends(done: Diagnosis) -> Mapping[str | None, str]:
    """What was done about each call."""
    return {fault.tool_call_id: fault.mend for fault in done.faults}


def test_call_ids_that_are_used_again_in_every_turn(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["forgetful"](saver, never_again)
    for thread_id in ("continued", "told"):
        inputs = [LINES["three-calls"], EARLIER, LINES["three-calls"]]
        assert nursery.run("talk", "forgetful", database.url, thread_id, inputs) == KILLED

    for done in assert_repaired(database, ("continued", ""), ("told", "")):
        assert mends(done) == {"call_1": "salvage", "call_2": "placeholder", "call_3": "salvage"}

    for thread_id in ("continued", "told"):
        messages = messages_of(graph, thread_id)
        assert_accepted(messages)
        # The first turn's own result of `call_2` stays where it is, and is not taken twice.
        slow = [m for m in messages if isinstance(m, ToolMessage) and m.tool_call_id == "call_2"]
        assert [message.text == "slow finished" for message in slow] == [True, False]
    assert_goes_on(graph)
    assert audit(database) == []


def test_a_result_of_another_turn_is_not_taken_for_a_call_with_its_id(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["forgetful"](saver, never_again)
    inputs = [LINES["three-calls"], LINES["three-calls"]]
    assert nursery.run("talk", "forgetful", database.url, "again", inputs) == KILLED
    with pytest.raises(REFUSED):
        graph.invoke(said("Are you there?"), thread("again"), durability="sync")

    (done,) = assert_repaired(database, ("again", ""))

    assert mends(done)["call_2"] == "placeholder"
    messages = messages_of(graph, "again")
    assert_accepted(messages)
    slow = [m for m in messages if isinstance(m, ToolMessage) and m.tool_call_id == "call_2"]
    assert [message.text == "slow finished" for message in slow] == [True, False]


def test_a_result_that_comes_when_the_thread_has_gone_on_changes_nothing(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    graph = FAMILIES["agent"](saver, never_again)
    inputs = [EARLIER, LINES["three-calls"]]
    assert nursery.run("talk", "agent", database.url, "late", inputs) == KILLED
    state = graph.get_state(thread("late"))
    (died,) = [task for task in state.tasks if not task.result]
    assert_repaired(database, ("late", ""))
    graph.invoke(None, thread("late"), durability="sync")

    # The process was not dead, only slow: its result comes when the model has read the placeholder.
    result = ToolMessage("slow finished", name="slow", tool_call_id="call_2_2", id="late")
    saver.put_writes(state.config, [("messages", [result])], died.id)
    assert verdicts(sweep(database)) == {}

    # Nor is it taken for a later call that is cut off.
    assert nursery.run("talk", "agent", database.url, "late", [LINES["one-call"]]) == KILLED
    (done,) = assert_repaired(database, ("late", ""))
    assert mends(done) == {"call_3_1": "placeholder"}
    assert_accepted(messages_of(graph, "late"))
