"""A deploy gave a key of the state another name: threads keep what they held under the old one."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

from repair_service.demo.programs import thread
from repair_service.repair.verdict import Migration, Policy, Verdict
from tests.acceptance.moved import talk
from tests.acceptance.renamed import approval
from tests.acceptance.service import audit, rows, sweep
from tests.conftest import Database


def migration(**renames: str) -> Policy:
    return Policy(min_idle=0, migration=Migration("channels", renames))


RENAMED = migration(messages="conversation", messages_count="conversation_count")

DELTA = pytest.mark.parametrize("delta", [False, True], ids=["stored whole", "delta channel"])


@DELTA
@pytest.mark.parametrize("by_id", [False, True], ids=["by order", "by id"])
def test_a_waiting_thread_keeps_its_list_and_its_count(
    delta: bool, by_id: bool, database: Database, saver: PostgresSaver
) -> None:
    old = talk(saver, "messages", delta=delta)
    hello = {"messages": [HumanMessage("hello")], "messages_count": 0}
    old.invoke(hello, thread("waits"))
    before = rows(database)

    (done,) = sweep(database, RENAMED)

    assert done.verdict is Verdict.REPAIRED, done.reason
    for table, there in before.items():
        assert set(there) <= set(rows(database)[table])
    assert audit(database, RENAMED) == []
    new = talk(saver, "conversation", delta=delta)
    state = new.get_state(thread("waits"))
    (question,) = state.interrupts
    assert question.value == "More?"
    answer: Any = {question.id: "yes"} if by_id else "yes"
    result = new.invoke(Command(resume=answer), thread("waits"))
    # The finished branch has counted once: not again, and its message is there once.
    assert sorted(each.text for each in result["conversation"]) == sorted(
        ["hello", "told yes, 1 before", "counted", "round 1 of 3"]
    )
    result = new.invoke({"conversation": [HumanMessage("on")]}, thread("waits"))
    assert [each.text for each in result["conversation"]].count("on") == 1
    found = new.get_state(thread("waits")).values
    assert [each.text for each in found["conversation"]].count("counted") == 2
    assert (len(found["conversation"]), found["conversation_count"]) == (6, 2)


@DELTA
def test_a_thread_at_rest_takes_the_next_message_behind_the_old_ones(
    delta: bool, database: Database, saver: PostgresSaver
) -> None:
    old = talk(saver, "messages", delta=delta, ask=False)
    old.invoke({"messages": [HumanMessage("hello")]}, thread("rests"))

    (done,) = sweep(database, RENAMED)

    assert (done.verdict, done.resume) == (Verdict.REPAIRED, None)
    assert "messages becomes conversation" in done.reason
    new = talk(saver, "conversation", delta=delta, ask=False)
    assert len(new.get_state(thread("rests")).values["conversation"]) == 4
    result = new.invoke({"conversation": [HumanMessage("on")]}, thread("rests"))
    texts = [each.text for each in result["conversation"]]
    assert (texts[0], texts[4], texts[-1]) == ("hello", "on", "round 2 of 7")
    assert old.get_state(thread("rests")).values.get("messages") in (None, [])


def test_a_static_breakpoint_does_not_fire_again(database: Database, saver: PostgresSaver) -> None:
    old = talk(saver, "messages", interrupt_before=["close"])
    old.invoke({"messages": [HumanMessage("hello")]}, thread("stopped"))
    old.invoke(Command(resume="yes"), thread("stopped"))
    assert old.get_state(thread("stopped")).next == ("close",)

    (done,) = sweep(database, RENAMED)

    assert done.verdict is Verdict.REPAIRED, done.reason
    new = talk(saver, "conversation", interrupt_before=["close"])
    assert new.get_state(thread("stopped")).next == ("close",)
    result = new.invoke(None, thread("stopped"))
    assert result["conversation"][-1].text == "round 1 of 3"


def test_what_a_static_breakpoint_has_seen_it_has_seen_under_the_new_name(
    database: Database, saver: PostgresSaver
) -> None:
    old = approval(saver, "approve", interrupt_before=["draft"])
    # A list is a value of its own in the store, under a version of its own.
    old.invoke({"text": ["hello"]}, thread("passed"))
    old.invoke(None, thread("passed"))

    def seen(key: str) -> tuple[bool, bool]:
        """Whether the breakpoint has seen a key's version, and the log's, which has moved since."""
        stored = saver.get(thread("passed"))
        assert stored is not None
        met, now = stored["versions_seen"]["__interrupt__"], stored["channel_versions"]
        return met[key] == now[key], met.get("log") == now["log"]

    assert seen("text") == (True, False)
    (done,) = sweep(database, migration(text="words"))
    assert done.verdict is Verdict.REPAIRED, done.reason
    assert seen("words") == (True, False)


def test_two_keys_with_values_do_not_become_one(database: Database, saver: PostgresSaver) -> None:
    old = talk(saver, "messages", ask=False)
    old.invoke({"messages": [HumanMessage("hello")]}, thread("rests"))

    (done,) = sweep(database, migration(messages_count="messages"))

    assert done.verdict is Verdict.MANUAL
    assert "both have a value" in done.reason


def fan(saver: Any, key: str, argument: str) -> Any:
    """Sends a task with a mapping of the application's own making."""
    state: Any = TypedDict("state", {key: str})  # type: ignore[operator]

    def work(given: Any) -> Any:
        return {key: f"{interrupt('Well?')} {given[argument]}"}

    builder = StateGraph(state)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda _: [Send("work", {argument: "sent"})], ["work"])
    builder.add_edge("work", END)
    return builder.compile(checkpointer=saver)


def test_a_send_that_may_carry_the_key_is_left_to_a_person(
    database: Database, saver: PostgresSaver
) -> None:
    fan(saver, "text", "text").invoke({"text": "hello"}, thread("unknown"))
    fan(saver, "text", "part").invoke({"text": "hello"}, thread("known"))

    done = {item.thread_id: item for item in sweep(database, migration(text="words"))}

    assert done["unknown"].verdict is Verdict.MANUAL
    assert "argument of a scheduled Send" in done["unknown"].reason
    assert done["known"].verdict is Verdict.REPAIRED, done["known"].reason
    result = fan(saver, "words", "part").invoke(Command(resume="yes"), thread("known"))
    assert result == {"words": "yes sent"}
