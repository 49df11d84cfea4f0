"""The scan finds every head and nothing else, whatever the ids look like."""

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from repair_service.checkpoint.identifiers import first_id, is_surely_older, timestamp
from repair_service.checkpoint.rows import HeadRows
from repair_service.store.gateway import Store
from repair_service.store.scan import Wanted
from tests.conftest import Corpus, Database
from tests.store.rows import checkpoint_id, put_blob, put_checkpoint, put_write

HOSTILE = (
    "it's",
    'a "quoted" one',
    "two\nlines\tand a tab",
    "100%s %(thread)s %%",
    "back\\slash \\x41 E'\\n'",
    "日本語 🧵 ñ ß",
    "{schema} ${HOME} :name $1",
    "'; DROP TABLE checkpoints; --",
    " ",
    "",
    "NULL",
    "a,b}{c",
    "x" * 10_000,
    "Upper",
    "upper",
    "-dash",
    "_under",
)


def heads(store: Store, **selection: Any) -> list[tuple[str, str, str]]:
    found = [head for batch in store.scan(**selection) for head in batch]
    return [(row.thread_id, row.checkpoint_ns, row.checkpoint_id) for row in found]


def naive_heads(connection: "psycopg.Connection[Any]") -> list[tuple[str, str, str]]:
    return connection.execute(
        "SELECT DISTINCT ON (thread_id, checkpoint_ns) thread_id, checkpoint_ns, checkpoint_id"
        " FROM checkpoints ORDER BY thread_id, checkpoint_ns, checkpoint_id DESC"
    ).fetchall()


def only_head(store: Store, thread: str) -> HeadRows:
    (batch,) = store.scan(threads=[thread])
    (head,) = batch
    return head.rows()


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1000])
def test_heads_of_a_real_store_are_those_a_full_sort_finds(corpus: Corpus, batch_size: int) -> None:
    with (
        corpus.database.connect() as connection,
        Store.connect(corpus.database.url, schema=corpus.database.schema) as store,
    ):
        assert heads(store, batch_size=batch_size) == naive_heads(connection)


def test_an_empty_store_has_no_heads(database: Database) -> None:
    with Store.connect(database.url, schema=database.schema) as store:
        assert list(store.scan()) == []


def test_any_thread_id_that_postgres_can_hold_is_found(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        for number, thread in enumerate(HOSTILE):
            for later in range(3):
                put_checkpoint(connection, thread, checkpoint_id(number + later * 100))
        assert heads(store, batch_size=2) == naive_heads(connection)
        for number, thread in enumerate(HOSTILE):
            assert heads(store, threads=[thread]) == [(thread, "", checkpoint_id(number + 200))]


def test_an_id_that_postgres_cannot_hold_is_an_absent_thread(database: Database) -> None:
    with Store.connect(database.url, schema=database.schema) as store:
        assert heads(store, threads=["nul\0byte", "\udcff"]) == []
        assert store.threads(["nul\0byte", "\udcff"]) == {}


def some_collations(connection: "psycopg.Connection[Any]") -> list[str]:
    found = connection.execute(
        "SELECT min(collname) FROM pg_collation WHERE collisdeterministic"
        " AND collencoding IN (-1, pg_char_to_encoding('UTF8')) AND collname <> 'default'"
        " AND (collname IN ('C', 'ucs_basic', 'en-x-icu', 'sv-x-icu', 'unicode')"
        " OR lower(collname) LIKE '%.utf8' OR lower(collname) LIKE '%.utf-8')"
        " GROUP BY collprovider, collcollate, collctype"
    ).fetchall()
    return [name for (name,) in found if can_compare_by(connection, name)]


def can_compare_by(connection: "psycopg.Connection[Any]", collation: str) -> bool:
    """Whether the server can: one that was built without ICU lists `unicode` all the same."""
    question = sql.SQL("SELECT 'a' < 'b' COLLATE {}").format(sql.Identifier(collation))
    try:
        connection.execute(question)
    except psycopg.errors.FeatureNotSupported:
        return False
    return True


def test_heads_are_found_under_every_collation_of_the_columns(database: Database) -> None:
    threads = [thread for thread in HOSTILE if len(thread) < 1000]
    namespaces = ("", "a:1", "A:1", "a-b", "a|b", "_", "é")
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        for thread in threads:
            for namespace in namespaces:
                for moment in (1, 2):
                    put_checkpoint(connection, thread, checkpoint_id(moment), namespace=namespace)
        collations = some_collations(connection)
        assert collations
        for collation in collations:
            for column in ("thread_id", "checkpoint_ns", "checkpoint_id"):
                statement = sql.SQL("ALTER TABLE checkpoints ALTER {} TYPE text COLLATE {}")
                connection.execute(
                    statement.format(sql.Identifier(column), sql.Identifier(collation))
                )
            expected = naive_heads(connection)
            assert heads(store, batch_size=10) == expected
            assert len(expected) == len(threads) * len(namespaces)


def test_columns_of_different_collations_do_not_confuse_the_walk(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        for thread in ("B", "a", "c"):
            for namespace in ("", "Z", "y"):
                put_checkpoint(connection, thread, checkpoint_id(1), namespace=namespace)
        available = some_collations(connection)
        connection.execute('ALTER TABLE checkpoints ALTER thread_id TYPE text COLLATE "C"')
        connection.execute(
            sql.SQL("ALTER TABLE checkpoints ALTER checkpoint_ns TYPE text COLLATE {}").format(
                sql.Identifier(available[-1])
            )
        )
        assert heads(store, batch_size=1) == naive_heads(connection)


def test_a_schema_of_any_name_is_used(empty_database: Database) -> None:
    for name in ('od"d', "With Space", "UPPER", "%s", "{schema}", "select"):
        with empty_database.connect() as connection:
            quoted = sql.Identifier(name)
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(quoted))
            connection.execute(sql.SQL("SET search_path TO {}").format(quoted))
            from langgraph.checkpoint.postgres import PostgresSaver

            PostgresSaver(connection).setup()
            put_checkpoint(connection, "t", checkpoint_id(1))
        with Store.connect(empty_database.url, schema=name) as store:
            assert heads(store) == [("t", "", checkpoint_id(1))]


def test_a_batch_holds_whole_threads(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        for thread in ("a", "b", "c"):
            for namespace in ("", *(f"node:{number:03}" for number in range(60))):
                put_checkpoint(connection, thread, checkpoint_id(1), namespace=namespace)
        batches = list(store.scan(batch_size=50))
        assert [{head.thread_id for head in batch} for batch in batches] == [
            {"a"},
            {"b"},
            {"c"},
        ]
        assert [len(batch) for batch in batches] == [61, 61, 61]


def test_a_selection_by_threads_keeps_their_order_and_leaves_out_unknown_ones(
    database: Database,
) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        for thread in ("a", "b", "c"):
            put_checkpoint(connection, thread, checkpoint_id(1))
        found = heads(store, threads=["c", "nobody", "a", "c"])
        assert [thread for thread, _, _ in found] == ["c", "a"]


def test_a_selection_by_namespace_takes_that_namespace_alone(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        for namespace in ("", "node:1", "node:1|deeper:2"):
            put_checkpoint(connection, "t", checkpoint_id(1), namespace=namespace)
        assert heads(store, namespace="") == [("t", "", checkpoint_id(1))]
        assert heads(store, namespace="node:1") == [("t", "node:1", checkpoint_id(1))]
        assert heads(store, namespace="absent") == []


def test_a_selection_since_a_moment_takes_newer_heads_and_those_without_a_time(
    database: Database,
) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_checkpoint(connection, "old", checkpoint_id(1_000_000))
        put_checkpoint(connection, "new", checkpoint_id(2_000_000))
        put_checkpoint(connection, "timeless", "not-a-uuid")
        found = heads(store, since=1_500_000)
        assert [thread for thread, _, _ in found] == ["new", "timeless"]
        assert heads(store, threads=["new"], since=2_000_000) != []


def test_a_head_comes_with_its_blobs_and_writes(database: Database) -> None:
    versions = {"messages": "2", "files": "1", "gone": "7", "branch:to:a": "2", "__start__": "1"}
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        document = {"v": 4, "channel_versions": versions}
        put_checkpoint(connection, "t", checkpoint_id(1))
        put_checkpoint(
            connection, "t", checkpoint_id(2), parent=checkpoint_id(1), checkpoint=document
        )
        put_blob(connection, "t", "messages", "1", b"older")
        put_blob(connection, "t", "messages", "2", b"list")
        put_blob(connection, "t", "files", "1", None, type="empty")
        put_blob(connection, "t", "branch:to:a", "2", b"\xc0")
        put_blob(connection, "t", "__start__", "1", b"a large input")
        put_blob(connection, "other", "messages", "2", b"of another thread")
        put_write(connection, "t", checkpoint_id(1), "messages", b"taken up")
        put_write(connection, "t", checkpoint_id(2), "b", b"2", task_path="~2", task_id="A")
        put_write(connection, "t", checkpoint_id(2), "a", b"1", task_path="~1", task_id="B", idx=-1)
        put_write(connection, "t", checkpoint_id(2), "a", b"3", task_path="~2", task_id="a")
        put_write(connection, "t", checkpoint_id(2), "c", b"4", task_path="~2", task_id="a", idx=1)

        head = only_head(store, "t")

        assert head.row.parent_checkpoint_id == checkpoint_id(1)
        assert head.row.checkpoint == document
        assert {(name, blob.type, blob.blob) for name, blob in head.blobs.items()} == {
            ("messages", "msgpack", b"list"),
            ("files", "empty", None),
            ("branch:to:a", "msgpack", b"\xc0"),
            ("__start__", "msgpack", None),
        }
        assert [write.blob for write in head.writes] == [b"1", b"2", b"3", b"4"]
        assert head.parent_writes == ()


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"v": 3, "channel_versions": {"messages": "1"}}, True),
        ({"v": 4, "channel_versions": {"messages": 1}}, True),
        ({"v": 4, "channel_versions": {"messages": "1"}}, False),
    ],
    ids=["before v 4", "LangGraph.js", "v 4"],
)
def test_sends_at_the_parent_are_read_where_the_layout_keeps_them_there(
    database: Database, document: dict[str, Any], found: bool
) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_checkpoint(connection, "t", checkpoint_id(1), checkpoint=document)
        put_checkpoint(
            connection, "t", checkpoint_id(2), parent=checkpoint_id(1), checkpoint=document
        )
        put_write(connection, "t", checkpoint_id(1), "__pregel_tasks", b"send")
        put_write(connection, "t", checkpoint_id(1), "messages", b"message", idx=1)
        sends = only_head(store, "t").parent_writes
        assert [write.blob for write in sends] == ([b"send"] if found else [])


def test_integer_versions_name_their_blobs(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        document = {"v": 4, "channel_versions": {"messages": 12}}
        put_checkpoint(connection, "t", checkpoint_id(1), checkpoint=document)
        put_blob(connection, "t", "messages", "12", b"[]", type="json")
        assert only_head(store, "t").blobs["messages"].blob == b"[]"


@pytest.mark.parametrize("document", ["null", "[]", "1", '"text"', '{"channel_versions": null}'])
def test_a_document_of_any_shape_comes_through_to_be_judged(
    database: Database, document: str
) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_checkpoint(connection, "t", checkpoint_id(1))
        connection.execute("UPDATE checkpoints SET checkpoint = %s, metadata = %s", [document] * 2)
        head = only_head(store, "t")
        assert head.blobs == {}
        assert store.threads(["t"])["t"].heads[""] == head
        store.inspect()


def loaded_or_nothing(text: str) -> object:
    """What this Python makes of a document: each release has limits of its own."""
    try:
        return json.loads(text)
    except (RecursionError, ValueError):
        return None


def test_a_document_too_deep_or_too_long_for_python_comes_through_as_nothing(
    database: Database,
) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_checkpoint(connection, "t", checkpoint_id(1))
        for hostile in ("[" * 5_000 + "]" * 5_000, "9" * 5_000):
            connection.execute("UPDATE checkpoints SET metadata = %s", [hostile])
            assert only_head(store, "t").row.metadata == loaded_or_nothing(hostile)


def test_a_write_without_a_type_comes_through(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_checkpoint(connection, "t", checkpoint_id(1))
        put_write(connection, "t", checkpoint_id(1), "messages", type=None)
        assert only_head(store, "t").writes[0].type == ""


def test_a_scan_goes_on_after_the_connection_was_cut_between_batches(database: Database) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_checkpoint(connection, "t", checkpoint_id(1))
        store.check_understood()
        store.close()
        assert heads(store) == [("t", "", checkpoint_id(1))]


CHANGES = {
    "old": {"": checkpoint_id(1), "node:1": checkpoint_id(3)},
    "new": {"": checkpoint_id(20)},
    "new below": {"": checkpoint_id(2), "node:1": checkpoint_id(20), "node:2": checkpoint_id(3)},
    "tells no time": {"": "0"},
    "tells no time, in capitals": {"": checkpoint_id(1).upper().replace("6", "A", 1)},
    "at the time": {"": checkpoint_id(10)},
    "patched since, by an old id": {"": checkpoint_id(9)},
}


@pytest.mark.parametrize("batch_size", [1, 2, 1000])
def test_a_walk_over_what_changed_loads_whole_threads_and_passes_the_others_by(
    database: Database, batch_size: int
) -> None:
    with database.connect() as connection:
        for thread, heads_of in CHANGES.items():
            for namespace, newest in heads_of.items():
                put_checkpoint(connection, thread, newest, namespace=namespace)
    since = timestamp(checkpoint_id(10))
    assert since is not None
    with Store.connect(database.url, schema=database.schema) as store:
        walked = list(store.walk(Wanted(changed_since=since), batch_size=batch_size))
        found = [(rows.thread_id, rows.checkpoint_ns) for b in walked for rows in b.heads]
        assert sorted(found) == sorted(
            (thread, namespace)
            for thread, heads_of in CHANGES.items()
            if not all(is_surely_older(each, first_id(since)) for each in heads_of.values())
            for namespace in heads_of
        )
        assert ("at the time", "") in found
        assert ("new below", "node:2") in found
        assert ("old", "") not in found
        assert sum(batch.met for batch in walked) == sum(map(len, CHANGES.values()))
        # From each place where it stops it goes on and misses nothing.
        for number, batch in enumerate(walked, start=1):
            rest = store.walk(Wanted(changed_since=since), after=batch.last)
            left = [rows.thread_id for each in rest for rows in each.heads]
            assert left == [rows.thread_id for each in walked[number:] for rows in each.heads]


def test_a_walk_goes_on_behind_any_of_its_batches(load_corpus: Callable[[str], Corpus]) -> None:
    database = load_corpus("python-1.2.24").database
    with Store.connect(database.url, schema=database.schema) as store:
        walked = list(store.walk(Wanted(), batch_size=3))
        assert len(walked) > 5
        for number, batch in enumerate(walked[:-1], start=1):
            rest = store.walk(Wanted(), after=batch.last)
            left = [head.rows().row for each in rest for head in each.heads]
            assert left == [head.rows().row for each in walked[number:] for head in each.heads]
