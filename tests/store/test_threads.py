"""Threads are loaded whole: heads, ancestors, and what delta history starts from."""

from typing import Any

import psycopg
import pytest

from repair_service.store.gateway import Store
from tests.conftest import Corpus, Database
from tests.store.rows import checkpoint_id, put_blob, put_checkpoint, put_write

COUNTED = {"counters_since_delta_snapshot": {"messages": [1, 1]}}


def put_chain(
    connection: "psycopg.Connection[Any]",
    length: int,
    *,
    thread: str = "t",
    namespace: str = "",
    **columns: Any,
) -> None:
    """A thread of so many checkpoints, at the seconds 1, 2, ..."""
    for number in range(1, length + 1):
        put_checkpoint(
            connection,
            thread,
            checkpoint_id(number),
            namespace=namespace,
            parent=checkpoint_id(number - 1) if number > 1 else None,
            **columns,
        )


def put_delta_chain(connection: "psycopg.Connection[Any]", length: int) -> None:
    """The same with a delta channel `messages` that has a new version at each checkpoint."""
    put_chain(connection, length, metadata=COUNTED)
    connection.execute(
        "UPDATE checkpoints AS c SET checkpoint = jsonb_build_object('v', 4, 'channel_versions',"
        " jsonb_build_object('messages', n.number::text)) FROM (SELECT checkpoint_id,"
        " row_number() OVER (ORDER BY checkpoint_id) AS number FROM checkpoints) AS n"
        " WHERE n.checkpoint_id = c.checkpoint_id"
    )


def seconds(store: Store, depth: int = 500) -> list[int]:
    """The ancestors of the thread's root head, as the seconds they stand at."""
    moments = {checkpoint_id(number): number for number in range(1, 100)}
    thread = store.threads(["t"], depth=depth)["t"]
    return [moments[rows.row.checkpoint_id] for rows in thread.ancestors[""]]


def test_every_head_of_a_real_store_has_its_whole_chain(corpus: Corpus) -> None:
    with (
        corpus.database.connect() as connection,
        Store.connect(corpus.database.url, schema=corpus.database.schema) as store,
    ):
        threads = store.threads([each.thread_id for each in corpus.expected])
        parents = {
            key: parent
            for *key_parts, parent in connection.execute(
                "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id"
                " FROM checkpoints"
            ).fetchall()
            for key in [tuple(key_parts)]
        }
        writes = dict(
            connection.execute(
                "SELECT thread_id || '/' || checkpoint_ns || '/' || checkpoint_id, count(*)"
                " FROM checkpoint_writes GROUP BY 1"
            ).fetchall()
        )
    assert threads.keys() == {each.thread_id for each in corpus.expected}
    for thread, loaded in threads.items():
        assert loaded.pruned == frozenset()
        for namespace, head in loaded.heads.items():
            parent = parents[(thread, namespace, head.row.checkpoint_id)]
            for ancestor in loaded.ancestors[namespace]:
                assert ancestor.row.checkpoint_id == parent
                key = f"{thread}/{namespace}/{parent}"
                assert len(ancestor.writes) == writes.get(key, 0)
                parent = parents[(thread, namespace, parent)]
            assert parent is None


def test_a_thread_loads_the_same_head_as_the_scan(corpus: Corpus) -> None:
    with Store.connect(corpus.database.url, schema=corpus.database.schema) as store:
        scanned = [head.rows() for batch in store.scan() for head in batch]
        threads = store.threads([rows.row.thread_id for rows in scanned])
    for rows in scanned:
        assert threads[rows.row.thread_id].heads[rows.row.checkpoint_ns] == rows


def test_an_absent_thread_is_not_in_the_result(database: Database) -> None:
    with Store.connect(database.url, schema=database.schema) as store:
        assert store.threads(["nobody"]) == {}
        assert store.threads([]) == {}


def test_ancestors_are_nearest_first_and_bounded_by_depth(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_chain(connection, 8)
        assert seconds(store) == [7, 6, 5, 4, 3, 2, 1]
        assert seconds(store, depth=3) == [7, 6, 5]
        assert seconds(store, depth=0) == []
        assert store.threads(["t"], depth=3)["t"].pruned == frozenset()
        assert store.threads(["t"], depth=7)["t"].pruned == frozenset()


def test_a_sibling_of_an_ancestor_is_no_ancestor(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_chain(connection, 3)
        put_checkpoint(connection, "t", checkpoint_id(4), parent=checkpoint_id(1))
        assert seconds(store) == [1]


def test_each_namespace_has_ancestors_of_its_own(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_chain(connection, 2)
        put_chain(connection, 3, namespace="node:1")
        put_chain(connection, 4, thread="other")
        threads = store.threads(["t", "other"])
        assert {
            (thread, namespace): len(ancestors)
            for thread, rows in threads.items()
            for namespace, ancestors in rows.ancestors.items()
        } == {("t", ""): 1, ("t", "node:1"): 2, ("other", ""): 3}


def test_a_chain_that_breaks_off_is_pruned(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_chain(connection, 5)
        put_chain(connection, 5, namespace="whole:1")
        connection.execute(
            "DELETE FROM checkpoints WHERE checkpoint_ns = '' AND checkpoint_id = %s",
            [checkpoint_id(2)],
        )
        assert seconds(store) == [4, 3]
        assert store.threads(["t"])["t"].pruned == {""}
        connection.execute(
            "DELETE FROM checkpoints WHERE checkpoint_ns = '' AND checkpoint_id < %s",
            [checkpoint_id(5)],
        )
        assert seconds(store) == []
        assert store.threads(["t"])["t"].pruned == {""}


@pytest.mark.parametrize("target", [1, 2, 3], ids=["itself", "its child", "the head"])
def test_a_chain_that_runs_in_a_circle_ends(database: Database, target: int) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_delta_chain(connection, 3)
        connection.execute(
            "UPDATE checkpoints SET parent_checkpoint_id = %s WHERE checkpoint_id = %s",
            [checkpoint_id(target), checkpoint_id(1)],
        )
        for depth in (1, 2, 50):
            assert seconds(store, depth) == [2, 1]
            assert store.threads(["t"], depth=depth)["t"].pruned == {""}


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 500])
def test_delta_history_is_never_cut_off(database: Database, depth: int) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_delta_chain(connection, 9)
        put_blob(connection, "t", "messages", "2", b"oldest")
        put_blob(connection, "t", "messages", "3", b"nearest")
        put_blob(connection, "t", "messages", "5", None, type="empty")
        ancestors = store.threads(["t"], depth=depth)["t"].ancestors[""]
        stored = {
            (rows.row.checkpoint_id, blob.blob)
            for rows in ancestors
            for blob in rows.blobs.values()
        }
        assert stored == {(checkpoint_id(3), b"nearest")}
        assert checkpoint_id(3) in {rows.row.checkpoint_id for rows in ancestors}


@pytest.mark.parametrize("depth", [0, 2, 500])
def test_delta_history_without_a_stored_value_goes_to_the_root(
    database: Database, depth: int
) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_delta_chain(connection, 6)
        assert seconds(store, depth) == [5, 4, 3, 2, 1]


def test_delta_history_ends_at_a_value_that_stands_in_the_checkpoint(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_delta_chain(connection, 9)
        put_blob(connection, "t", "messages", "2", b"behind it")
        connection.execute(
            "UPDATE checkpoints SET checkpoint = checkpoint || jsonb_build_object("
            "'channel_values', jsonb_build_object('messages', 'text')) WHERE checkpoint_id = %s",
            [checkpoint_id(5)],
        )
        thread = store.threads(["t"], depth=1)["t"]
        assert [rows.row.checkpoint_id for rows in thread.ancestors[""]][-1] == checkpoint_id(5)
        assert all(rows.blobs == {} for rows in thread.ancestors[""])


def test_a_head_with_a_snapshot_of_its_own_needs_no_history(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_delta_chain(connection, 9)
        put_blob(connection, "t", "messages", "9", b"snapshot")
        assert seconds(store, depth=1) == [8]


def test_ancestors_come_with_complete_writes_and_the_sends_before_them(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_chain(connection, 3, checkpoint={"v": 3, "channel_versions": {}})
        put_write(connection, "t", checkpoint_id(1), "__pregel_tasks", b"send")
        put_write(connection, "t", checkpoint_id(2), "messages", b"result")
        near, far = store.threads(["t"])["t"].ancestors[""]
        assert [write.blob for write in near.writes] == [b"result"]
        assert [write.blob for write in near.parent_writes] == [b"send"]
        assert [write.blob for write in far.writes] == [b"send"]
        assert far.parent_writes == ()


def test_recent_threads_are_the_latest_of_a_sample_and_the_same_each_time(
    database: Database,
) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        for number in range(20):
            put_chain(connection, 2 + number, thread=f"t{number:02}")
        assert store.recent_threads(3) == ["t19", "t18", "t17"]
        assert len(store.recent_threads(100)) == 20
        connection.execute(
            "INSERT INTO checkpoints SELECT 'many' || i, '', i::text, NULL, NULL,"
            " jsonb_build_object('pad', repeat('x', 1500)), '{}' FROM generate_series(1, 9000) i"
        )
        sampled = store.recent_threads(10_000)
        assert 1_000 < len(sampled) < 6_000
        assert store.recent_threads(10_000) == sampled


def test_a_write_without_a_task_path_is_one_with_an_empty_one(database: Database) -> None:
    with database.connect() as connection:
        connection.execute("ALTER TABLE checkpoint_writes ALTER COLUMN task_path DROP NOT NULL")
        put_chain(connection, 1)
        put_write(connection, "t", checkpoint_id(1), "messages", task_path=None)
    with Store.connect(database.url, schema=database.schema) as store:
        (write,) = store.threads(["t"])["t"].heads[""].writes
    assert write.task_path == ""
