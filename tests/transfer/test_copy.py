"""A copied thread is the same thread: in its rows, to LangGraph, and in how it goes on."""

import threading
import tracemalloc
from contextlib import closing
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from repair_service.checkpoint.identifiers import timestamp
from repair_service.demo.programs import EARLIER, LINES, build, said, thread
from repair_service.demo.programs import Scenario as Program
from repair_service.demo.witness import KILLED
from repair_service.errors import StoreError, StoreNotUnderstood
from repair_service.store.facts import TABLES
from repair_service.transfer.copy import CopyTotals
from repair_service.transfer.lane import Fate, Forms
from repair_service.transfer.seal import opener, sealer
from repair_service.transfer.store import CopiedStore
from repair_service.transfer.tables import BLOBS
from tests.acceptance.nursery import Nursery
from tests.acceptance.programs import FAMILIES
from tests.acceptance.service import assert_repaired, never_again, results, rows
from tests.conftest import Corpus, Database
from tests.transfer.conftest import AS_IT_IS, Emptied, copy, done, one_lane, opened

KEY = b"0123456789abcdef"
ENCRYPTED = Forms(opener(KEY), sealer(KEY))
DECRYPTED = Forms(opener(KEY), opener(KEY))


@pytest.fixture(scope="module")
def nursery() -> Any:
    nursery = Nursery()
    yield nursery
    nursery.close()


def changed(database: Database, statement: str) -> None:
    with database.connect() as connection:
        assert connection.execute(statement.encode()).rowcount > 0


def sorted_rows(database: Database) -> dict[str, list[Any]]:
    """Every row, in one order, with every column by name: stores differ in their order."""
    with database.connect() as connection:
        found = {}
        for table in TABLES[:3]:
            kept = connection.execute(f"SELECT to_jsonb(t) FROM {table} AS t".encode()).fetchall()
            found[table] = sorted(
                ({"task_path": "", **row} if "task_id" in row else row for (row,) in kept), key=str
            )
        return found


def test_every_row_of_a_store_is_in_the_other_and_a_second_copy_finds_nothing_to_do(
    corpus: Corpus, target: Database
) -> None:
    first = copy(corpus.database, target)
    assert set(first.fates.values()) == {Fate.COPIED}
    assert sorted_rows(target) == sorted_rows(corpus.database)
    assert first.totals.rows == sum(len(each) for each in sorted_rows(target).values())
    second = copy(corpus.database, target)
    assert second.fates == dict.fromkeys(first.fates, Fate.SAME)
    assert second.totals.rows == 0


def test_a_dry_run_says_the_same_and_writes_nothing(load_corpus: Any, target: Database) -> None:
    source: Corpus = load_corpus("python-1.2.24")
    tried = copy(source.database, target, dry_run=True)
    assert not any(sorted_rows(target).values())
    assert copy(source.database, target).fates == tried.fates


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE checkpoints SET metadata = '{}' WHERE thread_id = 'agent_three'",
        "UPDATE checkpoint_blobs SET blob = blob || '\\x00' WHERE thread_id = 'agent_three'",
        "DELETE FROM checkpoint_writes WHERE thread_id = 'agent_three' AND idx = 0",
        "UPDATE checkpoint_writes SET task_path = 'x' WHERE thread_id = 'agent_three'",
    ],
)
def test_a_thread_that_is_there_and_differs_is_left(
    load_corpus: Any, target: Database, change: str
) -> None:
    source: Corpus = load_corpus("python-1.2.24")
    copy(source.database, target)
    changed(target, change)
    before = sorted_rows(target)
    copied = copy(source.database, target)
    different = [thread for thread, fate in copied.fates.items() if fate is Fate.DIFFERS]
    assert different == ["agent_three"]
    assert "delete it there first" in copied.reasons["agent_three"]
    assert sorted_rows(target) == before


def test_a_thread_with_rows_in_one_table_only_is_there(load_corpus: Any, target: Database) -> None:
    source: Corpus = load_corpus("python-1.2.24")
    copy(source.database, target)
    changed(target, "DELETE FROM checkpoints WHERE thread_id = 'agent_three'")
    changed(target, "DELETE FROM checkpoint_writes WHERE thread_id = 'agent_three'")
    assert copy(source.database, target).fates["agent_three"] is Fate.DIFFERS


def test_each_thread_is_in_one_shard(load_corpus: Any, target: Database) -> None:
    source: Corpus = load_corpus("python-1.2.24")
    parts = [copy(source.database, target, shard=(index, 3)).fates for index in range(3)]
    assert all(parts)
    assert sum(len(part) for part in parts) == len({**parts[0], **parts[1], **parts[2]})
    assert sorted_rows(target) == sorted_rows(source.database)


def test_named_threads_alone_are_copied(load_corpus: Any, target: Database) -> None:
    source: Corpus = load_corpus("python-1.2.24")
    copied = copy(source.database, target, threads=("agent_three", "no such thread"))
    assert copied.fates == {"agent_three": Fate.COPIED}


def test_threads_with_a_newer_head_alone_are_copied(load_corpus: Any, target: Database) -> None:
    source: Corpus = load_corpus("python-1.2.24")
    with source.database.connect() as connection:
        heads = connection.execute(
            b"SELECT thread_id, max(checkpoint_id) FROM checkpoints GROUP BY thread_id"
        ).fetchall()
    moments = {thread: timestamp(head) for thread, head in heads}
    middle = sorted(moments.values())[len(moments) // 2] - 0.001
    newer = {thread for thread, moment in moments.items() if moment >= middle}
    assert 0 < len(newer) < len(moments)
    assert copy(source.database, target, since=middle).fates.keys() == newer
    older = min(moments, key=moments.__getitem__)
    assert copy(source.database, target, threads=(older,), since=middle).fates == {}


def test_a_thread_that_somebody_else_writes_meanwhile_is_looked_at_again(
    load_corpus: Any, target: Database
) -> None:
    source: Corpus = load_corpus("python-1.2.24")
    other = threading.Thread(target=copy, args=(source.database, target))
    reading, writing = opened(source.database, read_only=True), opened(target)

    class Overtaken(CopiedStore):
        """A store in which another copy is the first to write."""

        def write(self, table: Any, rows: Any) -> None:
            if table is BLOBS and not other.ident:
                other.start()
                other.join(60)
            super().write(table, rows)

    store = CopiedStore(reading)
    try:
        copied = done(one_lane(store, reading.reading, Overtaken(writing), AS_IT_IS))
    finally:
        reading.close()
        writing.close()
    assert Fate.SAME in copied.fates.values()
    assert sorted_rows(target) == sorted_rows(source.database)


def test_a_copy_that_is_broken_off_is_run_again(load_corpus: Any, target: Database) -> None:
    source: Corpus = load_corpus("python-1.2.24")

    class BrokenOff(Exception):
        pass

    def moved(totals: CopyTotals) -> None:
        raise BrokenOff

    with pytest.raises(BrokenOff):
        copy(source.database, target, threads=("agent_three",), moved=moved)
    copied = copy(source.database, target)
    assert copied.fates.pop("agent_three") is Fate.SAME
    assert set(copied.fates.values()) == {Fate.COPIED}
    assert sorted_rows(target) == sorted_rows(source.database)


def test_a_trigger_that_changes_rows_undoes_the_batch(load_corpus: Any, target: Database) -> None:
    source: Corpus = load_corpus("python-1.2.24")
    with target.connect() as connection:
        connection.execute(
            b"CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS"
            b" $$BEGIN NEW.metadata := '{}'; RETURN NEW; END$$"
        )
        connection.execute(
            b"CREATE TRIGGER touched BEFORE INSERT ON checkpoints"
            b" FOR EACH ROW EXECUTE FUNCTION touched()"
        )
    with pytest.raises(StoreError, match="did not read back"):
        copy(source.database, target)
    assert not any(sorted_rows(target).values())


def test_tables_that_are_older_than_the_rows_are_refused(
    load_corpus: Any, target: Database
) -> None:
    old: Corpus = load_corpus("js-1.7.3")
    with (
        closing(opened(old.database)) as connection,
        pytest.raises(StoreNotUnderstood, match="repair-service store upgrade"),
    ):
        CopiedStore(connection).check_takes_rows()


def test_values_are_encrypted_and_decrypted_again(
    load_corpus: Any, target: Database, another: Emptied
) -> None:
    source: Corpus = load_corpus("python-1.2.24")
    encrypted = copy(source.database, target, ENCRYPTED)
    assert set(encrypted.fates.values()) == {Fate.COPIED}
    kept = sorted_rows(target)
    values = [row["type"] for row in kept["checkpoint_blobs"] + kept["checkpoint_writes"]]
    assert {kind for kind in values if not kind.endswith("+aes")} <= {"empty"}
    # A nonce is used once, so the bytes differ each time; the values are the same.
    assert copy(source.database, target, ENCRYPTED).fates == dict.fromkeys(
        encrypted.fates, Fate.SAME
    )
    plain = another()
    copy(target, plain, DECRYPTED)
    assert sorted_rows(plain) == sorted_rows(source.database)


def test_a_value_of_another_key_keeps_its_own_thread_alone(
    load_corpus: Any, target: Database, another: Emptied
) -> None:
    source: Corpus = load_corpus("python-1.2.24")
    copy(source.database, target, ENCRYPTED)
    changed(
        target,
        "UPDATE checkpoint_blobs SET blob = set_byte(blob, 20, 255 - get_byte(blob, 20))"
        " WHERE thread_id = 'agent_three' AND type = 'msgpack+aes'",
    )
    copied = copy(target, another(), DECRYPTED)
    left = {thread: fate for thread, fate in copied.fates.items() if fate is not Fate.COPIED}
    assert left == {"agent_three": Fate.UNREADABLE}
    assert "does not decrypt with the key given" in copied.reasons["agent_three"]


@pytest.mark.parametrize("heads_only", [False, True])
@pytest.mark.parametrize("family", ["agent", "deep_agent"])
def test_a_killed_thread_is_repaired_where_it_was_copied_to_and_goes_on(
    family: str, heads_only: bool, database: Database, target: Database, nursery: Nursery
) -> None:
    for thread_id in ("continued", "told"):
        assert nursery.run("talk", family, database.url, thread_id, [EARLIER]) == 0
        line = LINES["three-calls"]
        assert nursery.run("talk", family, database.url, thread_id, [line]) == KILLED
    copy(database, target, heads_only=heads_only)
    if heads_only and family == "agent":
        assert len(rows(target)["checkpoints"]) < len(rows(database)["checkpoints"])
    assert_repaired(target, ("continued", ""), ("told", ""))
    with PostgresSaver.from_conn_string(target.url) as saver:
        graph = FAMILIES[family](saver, never_again)
        graph.invoke(None, thread("continued"))
        graph.invoke(said("Go on."), thread("told"))
        for thread_id in ("continued", "told"):
            found = results(graph.get_state(thread(thread_id)).values["messages"])
            assert found["call_2_1"] == "fast call_2_1"
            assert found["call_2_3"] == "fast call_2_3"


def test_an_encrypted_thread_is_read_by_langgraph_with_its_key(
    database: Database, target: Database, nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = str(Program("create_agent", "waiting", False))
    assert nursery.run("scenario", program, database.url, "asked") == 0
    copy(database, target, ENCRYPTED)
    monkeypatch.setenv("LANGGRAPH_AES_KEY", KEY.decode())
    with PostgresSaver.from_conn_string(target.url) as saver:
        saver.serde = EncryptedSerializer.from_pycryptodome_aes()
        graph = build("create_agent", saver, never_again)
        (asked,) = graph.get_state(thread("asked")).interrupts
        assert asked.value == "May I book the flight?"


def test_a_huge_thread_is_copied_as_it_is_read(database: Database, target: Database) -> None:
    """Each row is held by itself, so what is held does not grow with a thread."""
    with database.connect() as connection:
        connection.execute(
            b"INSERT INTO checkpoint_blobs SELECT 'long', '', 'files', i::text, 'bytes',"
            b" decode(repeat(md5(i::text), 30000), 'hex') FROM generate_series(1, 60) AS i"
        )
        connection.execute(
            b"INSERT INTO checkpoints VALUES ('long', '', '1', NULL, NULL,"
            b""" '{"v": 4, "channel_versions": {"files": "1"}}', '{}')"""
        )
    tracemalloc.start()
    copied = copy(database, target)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert copied.fates == {"long": Fate.COPIED}
    assert copied.totals.bytes > 25_000_000
    assert peak < 8_000_000
