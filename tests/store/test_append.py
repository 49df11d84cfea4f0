"""An append is one checkpoint behind the head that was diagnosed, or nothing at all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from repair_service.checkpoint.digest import writes_digest
from repair_service.checkpoint.rows import BlobRow, CheckpointRow, ThreadRows
from repair_service.errors import Drifted, RepairFailed, StoreForbidden, StoreUnreachable
from repair_service.store.append import LOCK_SPACE, lock_key
from repair_service.store.gateway import Store
from tests.conftest import Database
from tests.corpus import loader
from tests.store.conftest import Role
from tests.store.rows import checkpoint_id, put_blob, put_checkpoint, put_write

HEAD, PATCH = checkpoint_id(10), checkpoint_id(11)

ROW = CheckpointRow(
    thread_id="t",
    checkpoint_ns="",
    checkpoint_id=PATCH,
    parent_checkpoint_id=HEAD,
    checkpoint={"v": 4, "id": PATCH, "channel_versions": {"messages": "2"}, "ü": [1.5, None]},
    metadata={"source": "update", "step": 3},
)
BLOBS = (BlobRow("messages", "2", "msgpack", b"\x00mended\xff"),)

Rows = list[tuple[Any, ...]]


def everything(connection: "psycopg.Connection[Any]") -> Rows:
    return [
        row
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        for row in connection.execute(f"SELECT t::text FROM {table} AS t ORDER BY 1").fetchall()
    ]


@pytest.fixture
def connection(database: Database) -> Iterator["psycopg.Connection[Any]"]:
    """A store with one thread: a head with a pending write."""
    with database.connect() as connected:
        document = {"v": 4, "channel_versions": {"messages": "1"}}
        put_checkpoint(connected, "t", HEAD, checkpoint=document)
        put_blob(connected, "t", "messages", "1", b"damaged")
        put_write(connected, "t", HEAD, "messages", b"result")
        yield connected


@pytest.fixture
def store(database: Database, connection: "psycopg.Connection[Any]") -> Iterator[Store]:
    with Store.connect(database.url, schema=database.schema) as opened:
        yield opened


def diagnosed_digest(store: Store) -> str:
    return writes_digest(store.threads(["t"])["t"].heads[""].writes)


def append(
    store: Store,
    *,
    row: CheckpointRow = ROW,
    blobs: Sequence[BlobRow] = BLOBS,
    digest: str | None = None,
    check: Callable[[ThreadRows], str | None] = lambda thread: None,
    also_heads: Mapping[str, str] | None = None,
    depth: int = 500,
) -> None:
    store.append(
        row,
        blobs,
        head_id=HEAD,
        writes_digest=digest or diagnosed_digest(store),
        check=check,
        depth=depth,
        also_heads=also_heads,
    )


def test_the_patch_is_added_and_nothing_else_is_touched(
    store: Store, connection: "psycopg.Connection[Any]"
) -> None:
    before = everything(connection)
    append(store)
    after = everything(connection)
    assert set(before) < set(after)
    assert len(after) == len(before) + 2
    head = store.threads(["t"])["t"].heads[""]
    assert head.row == ROW
    assert head.blobs == {"messages": BLOBS[0]}
    assert head.writes == ()


def test_the_check_sees_the_thread_with_the_patch_in_it(store: Store) -> None:
    seen: list[ThreadRows] = []
    append(store, check=lambda thread: seen.append(thread))
    (thread,) = seen
    assert thread.heads[""].row == ROW
    assert thread.heads[""].blobs["messages"].blob == BLOBS[0].blob
    assert [rows.row.checkpoint_id for rows in thread.ancestors[""]] == [HEAD]
    assert [write.blob for write in thread.ancestors[""][0].writes] == [b"result"]


@pytest.mark.parametrize(("depth", "expected"), [(1, [HEAD]), (500, [HEAD, checkpoint_id(9)])])
def test_the_check_sees_as_much_of_the_history_as_it_asks_for(
    store: Store, connection: "psycopg.Connection[Any]", depth: int, expected: list[str]
) -> None:
    put_checkpoint(connection, "t", checkpoint_id(9))
    connection.execute(
        "UPDATE checkpoints SET parent_checkpoint_id = %s WHERE checkpoint_id = %s",
        [checkpoint_id(9), HEAD],
    )
    seen: list[ThreadRows] = []
    append(store, depth=depth, check=lambda thread: seen.append(thread))
    assert [each.row.checkpoint_id for each in seen[0].ancestors[""]] == expected


def test_a_check_that_gives_a_reason_leaves_nothing_behind(
    store: Store, connection: "psycopg.Connection[Any]"
) -> None:
    before = everything(connection)
    with pytest.raises(RepairFailed, match=r"rolled back: still unanswered"):
        append(store, check=lambda thread: "still unanswered")
    assert everything(connection) == before
    append(store)


def test_a_check_that_fails_leaves_nothing_behind(
    store: Store, connection: "psycopg.Connection[Any]"
) -> None:
    before = everything(connection)

    def check(thread: ThreadRows) -> str | None:
        raise RuntimeError("a mistake of ours")

    with pytest.raises(RuntimeError, match="a mistake of ours"):
        append(store, check=check)
    assert everything(connection) == before
    append(store)


def test_a_head_that_moved_on_is_drift(store: Store, connection: "psycopg.Connection[Any]") -> None:
    digest = diagnosed_digest(store)
    put_checkpoint(connection, "t", checkpoint_id(12), parent=HEAD)
    before = everything(connection)
    with pytest.raises(Drifted, match="newer checkpoint"):
        append(store, digest=digest)
    assert everything(connection) == before


def test_a_thread_that_is_gone_is_drift(
    store: Store, connection: "psycopg.Connection[Any]"
) -> None:
    digest = diagnosed_digest(store)
    connection.execute("DELETE FROM checkpoints")
    with pytest.raises(Drifted):
        append(store, digest=digest)
    assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE checkpoint_writes SET blob = 'other'",
        "UPDATE checkpoint_writes SET type = 'json'",
        "UPDATE checkpoint_writes SET channel = 'other'",
        "UPDATE checkpoint_writes SET task_id = 'other'",
        "UPDATE checkpoint_writes SET idx = 1",
        "UPDATE checkpoint_writes SET task_path = '~other'",
        "DELETE FROM checkpoint_writes",
        (
            "INSERT INTO checkpoint_writes VALUES ('t', '', (SELECT max(checkpoint_id)"
            " FROM checkpoints), 'new', 0, 'messages', 'msgpack', '')"
        ),
    ],
)
def test_pending_writes_that_changed_are_drift(
    store: Store, connection: "psycopg.Connection[Any]", change: str
) -> None:
    digest = diagnosed_digest(store)
    connection.execute(change.encode())
    before = everything(connection)
    with pytest.raises(Drifted, match="pending writes"):
        append(store, digest=digest)
    assert everything(connection) == before


def test_another_worker_at_the_thread_is_drift(
    store: Store, connection: "psycopg.Connection[Any]", database: Database
) -> None:
    before = everything(connection)
    with database.connect() as other, other.transaction():
        key = lock_key(database.schema, "t")
        other.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK_SPACE, key])
        with pytest.raises(Drifted, match="Another worker"):
            append(store)
    assert everything(connection) == before
    append(store)


def test_locks_of_the_application_are_not_ours(store: Store, database: Database) -> None:
    with database.connect() as other, other.transaction():
        key = lock_key(database.schema, "t")
        other.execute("SELECT pg_advisory_xact_lock(%s), pg_advisory_xact_lock(0, %s)", [key, key])
        append(store)


def test_a_lock_on_one_thread_does_not_hold_up_another() -> None:
    keys = {lock_key("public", f"thread-{number}") for number in range(1000)}
    assert len(keys) == 1000
    assert lock_key("a", "t") != lock_key("b", "t")


def test_two_workers_write_one_patch(store: Store, database: Database) -> None:
    digest = diagnosed_digest(store)
    with Store.connect(database.url, schema=database.schema) as other:

        def meanwhile(thread: ThreadRows) -> str | None:
            with pytest.raises(Drifted):
                append(other, digest=digest)
            return None

        append(store, digest=digest, check=meanwhile)
        with pytest.raises(Drifted):
            append(other, digest=digest)


def test_a_value_of_the_same_version_is_drift(
    store: Store, connection: "psycopg.Connection[Any]"
) -> None:
    put_blob(connection, "t", "messages", "2", b"of a live run")
    before = everything(connection)
    with pytest.raises(Drifted, match="channel messages"):
        append(store)
    assert everything(connection) == before


def test_a_checkpoint_of_the_same_id_is_drift(
    store: Store, connection: "psycopg.Connection[Any]"
) -> None:
    put_checkpoint(connection, "t", checkpoint_id(9))
    before = everything(connection)
    with pytest.raises(Drifted, match="id"):
        append(store, row=replace(ROW, checkpoint_id=checkpoint_id(9)))
    assert everything(connection) == before


def test_a_live_run_that_goes_on_meanwhile_wins(
    store: Store, connection: "psycopg.Connection[Any]"
) -> None:
    def live_run(thread: ThreadRows) -> str | None:
        put_checkpoint(connection, "t", checkpoint_id(12), parent=HEAD)
        return None

    append(store, check=live_run)
    (batch,) = store.scan()
    assert batch[0].checkpoint_id == checkpoint_id(12)


def test_a_patch_behind_a_newer_checkpoint_is_taken_back(
    store: Store, connection: "psycopg.Connection[Any]"
) -> None:
    before = everything(connection)
    with pytest.raises(Drifted, match="went on"):
        append(store, row=replace(ROW, checkpoint_id=checkpoint_id(9)))
    assert everything(connection) == before


def test_the_heads_around_a_sub_graph_are_compared_too(
    store: Store, connection: "psycopg.Connection[Any]"
) -> None:
    put_checkpoint(connection, "t", HEAD, namespace="node:1")
    row = replace(ROW, checkpoint_ns="node:1")
    digest = writes_digest(())
    for moved in ({"": checkpoint_id(9)}, {"absent": HEAD}):
        with pytest.raises(Drifted, match="around"):
            append(store, row=row, digest=digest, also_heads=moved)
    append(store, row=row, digest=digest, also_heads={"": HEAD})


def test_a_table_locked_by_a_migration_is_not_waited_for_forever(
    store: Store, database: Database
) -> None:
    digest = diagnosed_digest(store)
    with database.connect() as other, other.transaction():
        other.execute("LOCK TABLE checkpoint_blobs IN SHARE MODE")
        with pytest.raises(Drifted, match="locked"):
            append(store, digest=digest)


def test_a_row_that_the_database_refuses_is_a_failure_of_that_thread_alone(
    store: Store, connection: "psycopg.Connection[Any]"
) -> None:
    before = everything(connection)
    connection.execute("ALTER TABLE checkpoint_blobs ADD CHECK (version <> '2')")
    with pytest.raises(RepairFailed, match=r"SQLSTATE 23514") as refused:
        append(store)
    assert "mended" not in str(refused.value)
    assert everything(connection) == before
    connection.execute(
        "ALTER TABLE checkpoint_blobs DROP CONSTRAINT checkpoint_blobs_version_check"
    )
    append(store)


def test_a_connection_that_dies_in_between_leaves_nothing_behind(
    store: Store, connection: "psycopg.Connection[Any]"
) -> None:
    before = everything(connection)
    digest = diagnosed_digest(store)

    def cut(thread: ThreadRows) -> str | None:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'repair-service' AND datname = current_database()"
        )
        return None

    with pytest.raises(StoreUnreachable, match="lost"):
        append(store, digest=digest, check=cut)
    assert everything(connection) == before
    append(store)


def test_a_store_opened_for_reading_takes_nothing(database: Database, store: Store) -> None:
    digest = diagnosed_digest(store)
    with (
        Store.connect(database.url, schema=database.schema, read_only=True) as reader,
        pytest.raises(StoreForbidden, match="reading only"),
    ):
        append(reader, digest=digest)


@pytest.mark.parametrize("thread", ["it's", "100%s", "日本語", "x" * 10_000, ""])
def test_a_thread_of_any_id_is_patched(database: Database, thread: str) -> None:
    with (
        database.connect() as connection,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_checkpoint(connection, thread, HEAD)
        append(store, row=replace(ROW, thread_id=thread), digest=writes_digest(()))
        assert store.threads([thread])[thread].heads[""].row.checkpoint_id == PATCH


def test_a_store_of_langgraph_js_is_patched(empty_database: Database) -> None:
    with empty_database.connect() as connection:
        loader.create_tables(connection, "js-1.7.3")
        connection.execute("INSERT INTO checkpoint_migrations VALUES (4)")
        put_checkpoint(connection, "t", HEAD)
        put_write(connection, "t", HEAD, "messages", b"[]", type="json")
    with Store.connect(empty_database.url, schema=empty_database.schema) as store:
        append(store)
        assert store.threads(["t"])["t"].heads[""].row == ROW


def test_a_role_without_insert_is_refused_and_told_what_to_grant(
    database: Database, connection: "psycopg.Connection[Any]", store: Store, role: Role
) -> None:
    before = everything(connection)
    digest = diagnosed_digest(store)
    role.grant("USAGE", f"SCHEMA {database.schema}")
    role.grant("SELECT", f"ALL TABLES IN SCHEMA {database.schema}")
    with Store.connect(role.url, schema=database.schema) as reader:
        assert [head.thread_id for batch in reader.scan() for head in batch] == ["t"]
        with pytest.raises(StoreForbidden, match=r'GRANT INSERT ON "\w+".checkpoints TO'):
            reader.check_writable()
        with pytest.raises(StoreForbidden, match="GRANT"):
            append(reader, digest=digest)
    assert everything(connection) == before


def test_a_role_with_the_rights_that_were_named_can_write(
    database: Database, store: Store, role: Role
) -> None:
    with Store.connect(role.url, schema=database.schema) as worker:
        needed = worker.inspect().missing_rights
    with database.connect() as owner:
        for statement in needed:
            owner.execute(statement.encode())
    with Store.connect(role.url, schema=database.schema) as worker:
        worker.check_writable()
        append(worker)
