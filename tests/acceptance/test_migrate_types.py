"""A deploy moved a class: threads whose values name it go on in the new program."""

import os
from collections.abc import Mapping
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.types import Command

from repair_service.demo.programs import said, thread
from repair_service.repair.verdict import Migration, Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from tests.acceptance.moved import NEW, OLD, deployed, shop
from tests.acceptance.service import audit, rows, sweep
from tests.conftest import Database

RENAMES = {
    f"{OLD.module}.{OLD.item}": f"{NEW.module}.{NEW.item}",
    f"{OLD.module}.{OLD.said}": f"{NEW.module}.{NEW.said}",
}
KEY = bytes(range(32))


HELLO = {**said("hello"), "basket": []}


def migration(renames: Mapping[str, str] = RENAMES) -> Policy:
    return Policy(min_idle=0, migration=Migration("types", renames))


def assert_only_added(before: Any, after: Any) -> None:
    for table, there in before.items():
        assert set(there) <= set(after[table])


@pytest.mark.parametrize("delta", [False, True], ids=["stored whole", "delta channel"])
@pytest.mark.parametrize("by_id", [False, True], ids=["by order", "by id"])
def test_a_waiting_thread_goes_on_with_the_moved_class(
    delta: bool, by_id: bool, database: Database, saver: PostgresSaver
) -> None:
    with deployed(OLD) as (item, spoken):
        shop(saver, item, spoken, delta=delta).invoke(HELLO, thread("waits"))
    before = rows(database)

    (done,) = sweep(database, migration())

    assert done.verdict is Verdict.REPAIRED, done.reason
    assert_only_added(before, rows(database))
    assert audit(database, migration()) == []
    with deployed(NEW) as (item, spoken):
        graph = shop(saver, item, spoken, delta=delta)
        state = graph.get_state(thread("waits"))
        (question,) = state.interrupts
        assert question.value == {"about": item("thing 1")}
        assert isinstance(state.values["last"].inner, item)
        answer: Any = {question.id: "a pear"} if by_id else "a pear"
        result = graph.invoke(Command(resume=answer), thread("waits"))
        assert result["messages"][-1].text == "thing 0, a pear, last, deep"
        again = graph.invoke(said("again"), thread("waits"))
        assert len(again["basket"]) == 3


@pytest.mark.parametrize("delta", [False, True], ids=["stored whole", "delta channel"])
def test_a_thread_at_rest_is_read_with_the_moved_class(
    delta: bool, database: Database, saver: PostgresSaver
) -> None:
    with deployed(OLD) as (item, spoken):
        graph = shop(saver, item, spoken, delta=delta)
        graph.invoke(HELLO, thread("rests"))
        graph.invoke(Command(resume="a pear"), thread("rests"))

    (done,) = sweep(database, migration())

    assert (done.verdict, done.resume) == (Verdict.REPAIRED, None)
    with deployed(NEW) as (item, spoken):
        graph = shop(saver, item, spoken, delta=delta)
        state = graph.get_state(thread("rests"))
        assert state.next == ()
        assert [type(thing) for thing in state.values["basket"]] == [item] * 2
        assert [type(each) for each in state.values["messages"]].count(spoken) == 2
        assert len(state.values["messages"]) == 4
        graph.invoke(said("again"), thread("rests"))
        (question,) = graph.get_state(thread("rests")).interrupts
        assert question.value == {"about": item("thing 1")}


def test_a_store_without_the_class_is_left_alone(database: Database, saver: PostgresSaver) -> None:
    with deployed(OLD) as (item, spoken):
        shop(saver, item, spoken).invoke(HELLO, thread("waits"))
    assert audit(database, migration({"other.module.Item": "another.Item"})) == []


def test_an_encrypted_store_stays_encrypted(database: Database) -> None:
    with (
        PostgresSaver.from_conn_string(database.url) as saver,
        deployed(OLD) as (item, spoken),
    ):
        saver.serde = EncryptedSerializer.from_pycryptodome_aes(key=KEY)
        shop(saver, item, spoken).invoke(HELLO, thread("waits"))
    os.environ.pop("LANGGRAPH_AES_KEY", None)
    (closed,) = audit(database, migration())
    assert (closed.verdict, "LANGGRAPH_AES_KEY" in closed.reason) == (Verdict.UNREADABLE, True)

    with Store.connect(database.url, schema=database.schema, aes_key=KEY) as store:
        (done,) = Sweep(store, migration(), Selection()).repair()

    assert done.verdict is Verdict.REPAIRED, done.reason
    with database.connect() as connection:
        found = connection.execute(
            "SELECT DISTINCT type FROM checkpoint_blobs UNION SELECT type FROM checkpoint_writes"
        ).fetchall()
    assert {kind for (kind,) in found} <= {"msgpack+aes", "null+aes", "null", "empty"}
    with (
        PostgresSaver.from_conn_string(database.url) as saver,
        deployed(NEW) as (item, spoken),
    ):
        saver.serde = EncryptedSerializer.from_pycryptodome_aes(key=KEY)
        graph = shop(saver, item, spoken)
        result = graph.invoke(Command(resume="a pear"), thread("waits"))
        assert result["messages"][-1].text == "thing 0, a pear, last, deep"


def test_a_first_write_beside_a_delta_channel_is_left_to_a_person(
    database: Database, saver: PostgresSaver
) -> None:
    with deployed(OLD) as (item, spoken):
        # What writes `basket` for the first time may be a delta channel too: no row tells.
        shop(saver, item, spoken, delta=True).invoke(said("hello"), thread("waits"))

    (done,) = sweep(database, migration())

    assert done.verdict is Verdict.MANUAL
    assert "for the first time" in done.reason
