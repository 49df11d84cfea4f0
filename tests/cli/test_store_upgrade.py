"""`store status`, `store upgrade`: the saver's migrations, run before an application needs them."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.postgres.base import MIGRATIONS

from repair_service.errors import Refused
from repair_service.store.upgrade import Upgrade, look
from tests.cli.conftest import Command
from tests.cli.stores import asked, rows_of
from tests.conftest import Corpus, Database

NEWEST = len(MIGRATIONS) - 1
INDEXES = {
    f"{table}_thread_id_idx" for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
}


def address(database: Database) -> list[str]:
    return ["--database-url", database.url, "--schema", database.schema]


def migrated_to(database: Database, version: int) -> None:
    """The tables as a saver makes them that knows no later migration."""
    with database.connect() as connection:
        for number, text in enumerate(MIGRATIONS[: version + 1]):
            connection.execute(text.encode())
            connection.execute("INSERT INTO checkpoint_migrations VALUES (%s)", (number,))


def recorded(database: Database) -> list[int]:
    return [v for (v,) in asked(database, "SELECT v FROM checkpoint_migrations ORDER BY v")]


def indexes(database: Database) -> dict[str, bool]:
    """Whether each secondary index is valid."""
    return dict(
        asked(
            database,
            "SELECT x.relname, i.indisvalid FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid"
            " JOIN pg_namespace n ON n.oid = x.relnamespace WHERE n.nspname = %s"
            " AND NOT i.indisprimary",
            database.schema,
        )
    )


@contextmanager
def holding(database: Database, statement: str) -> Iterator["psycopg.Connection[Any]"]:
    """A transaction of somebody else, open until the end."""
    with database.connect() as connection, connection.transaction():
        connection.execute(statement.encode())
        yield connection


def broken_index(database: Database) -> None:
    """A CREATE INDEX CONCURRENTLY that is broken off while it waits for an older transaction."""
    with holding(database, "INSERT INTO checkpoint_migrations VALUES (99)") as other:
        with database.connect() as builder:
            builder.execute(b"SET lock_timeout = '100ms'")
            other.execute(b"LOCK TABLE checkpoint_blobs IN ROW EXCLUSIVE MODE")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                builder.execute(MIGRATIONS[7].encode())
        other.execute(b"DELETE FROM checkpoint_migrations WHERE v = 99")
    assert indexes(database)["checkpoint_blobs_thread_id_idx"] is False


def test_a_store_of_the_installed_saver_has_nothing_to_run(
    command: Command, database: Database
) -> None:
    ran = command("store", "status", *address(database))
    assert (ran.code, ran.err) == (0, "")
    assert f"are at migration {NEWEST}" in ran.out.replace("\n", " ")
    assert "There is nothing to run." in ran.out
    assert command("store", "upgrade", "--yes", *address(database)).code == 0


def test_a_javascript_store_is_told_what_the_python_saver_would_add(
    command: Command, load_corpus: Any
) -> None:
    js: Corpus = load_corpus("js-1.7.3")
    before = rows_of(js.database)
    ran = command("store", "status", "--format", "json", *address(js.database))
    assert ran.code == 2
    assert ran.document["recorded"] == 4
    assert [step["migration"] for step in ran.document["steps"]] == list(range(5, NEWEST + 1))
    assert recorded(js.database) == [0, 1, 2, 3, 4]
    assert rows_of(js.database) == before


def test_an_upgrade_runs_the_migrations_and_keeps_a_javascript_writer_at_work(
    command: Command, load_corpus: Any
) -> None:
    js: Corpus = load_corpus("js-1.7.3")
    columns = "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob"
    count = "SELECT count(*) FROM checkpoint_writes"
    (before,) = asked(js.database, count)
    assert command("store", "upgrade", "--yes", *address(js.database)).code == 0
    assert recorded(js.database) == list(range(NEWEST + 1))
    assert indexes(js.database) == dict.fromkeys(INDEXES, True)
    # As its saver writes: UPSERT_CHECKPOINT_WRITES of its sql.js, release 1.0.5.
    with js.database.connect() as connection:
        connection.execute(
            f"INSERT INTO checkpoint_writes ({columns})"
            " VALUES ('t', '', 'c', 'k', 0, 'messages', 'json', '[]')".encode()
        )
    (after,) = asked(js.database, count)
    assert after[0] == before[0] + 1
    audited = command("audit", "--format", "json", "--min-idle", "0s", *address(js.database))
    assert audited.code == 2
    verdicts = {item["thread_id"]: item["verdict"] for item in audited.document["items"]}
    for each in js.expected:
        assert verdicts.get(each.thread_id, "healthy") == each.verdict


def test_the_saver_itself_finds_nothing_left_to_do(
    command: Command, empty_database: Database
) -> None:
    from langgraph.checkpoint.postgres import PostgresSaver

    migrated_to(empty_database, 5)
    assert command("store", "upgrade", "--yes", *address(empty_database)).code == 0
    upgraded = recorded(empty_database)
    with PostgresSaver.from_conn_string(empty_database.url) as saver:
        saver.setup()
    assert recorded(empty_database) == upgraded == list(range(NEWEST + 1))


@pytest.mark.parametrize("version", [6, NEWEST])
def test_a_broken_index_is_built_anew_also_where_its_migration_is_recorded(
    command: Command, empty_database: Database, version: int
) -> None:
    migrated_to(empty_database, version)
    with empty_database.connect() as connection:
        connection.execute(b"DROP INDEX IF EXISTS checkpoint_blobs_thread_id_idx")
    broken_index(empty_database)
    ran = command("store", "status", "--format", "json", *address(empty_database))
    assert ran.code == 2
    rebuilt = [step["index"] for step in ran.document["steps"] if step["rebuilds"]]
    assert rebuilt == ["checkpoint_blobs_thread_id_idx"]
    assert command("store", "upgrade", "--yes", *address(empty_database)).code == 0
    assert indexes(empty_database) == dict.fromkeys(INDEXES, True)


def test_an_index_that_somebody_builds_now_is_left_to_them(empty_database: Database) -> None:
    migrated_to(empty_database, 6)
    broken_index(empty_database)
    builds = "LOCK TABLE checkpoint_blobs IN SHARE UPDATE EXCLUSIVE MODE"
    with holding(empty_database, builds):
        found = look(empty_database.url, empty_database.schema, MIGRATIONS)
        assert found.building == ("checkpoint_blobs_thread_id_idx",)
        with pytest.raises(Refused, match="is being built by somebody else"):
            Upgrade(empty_database.url, say=print).run(
                found, lambda: look(empty_database.url, empty_database.schema, MIGRATIONS)
            )
    assert indexes(empty_database)["checkpoint_blobs_thread_id_idx"] is False


def test_a_table_that_is_held_is_tried_again_until_it_is_free(empty_database: Database) -> None:
    migrated_to(empty_database, NEWEST - 1)
    said: list[str] = []
    free = threading.Event()
    tried = threading.Event()

    def sleep(seconds: float) -> None:
        tried.set()
        assert free.wait(30)

    def seen() -> Any:
        return look(empty_database.url, empty_database.schema, MIGRATIONS)

    upgrade = Upgrade(empty_database.url, say=said.append, sleep=sleep)
    agreed = seen()
    running = threading.Thread(target=lambda: upgrade.run(agreed, seen))
    with holding(empty_database, "SELECT FROM checkpoint_writes"):
        running.start()
        assert tried.wait(30)
    free.set()
    running.join(30)
    assert said[-1] == "Somebody holds the table; trying again in 0.5 s."
    assert recorded(empty_database) == list(range(NEWEST + 1))


def test_two_upgrades_at_once_are_refused(empty_database: Database) -> None:
    migrated_to(empty_database, 5)

    def seen() -> Any:
        return look(empty_database.url, empty_database.schema, MIGRATIONS)

    second: list[str] = []

    def say(text: str) -> None:
        if not second:
            with pytest.raises(Refused) as refused:
                Upgrade(empty_database.url, say=print).run(seen(), seen)
            second.append(str(refused.value))

    Upgrade(empty_database.url, say=say).run(seen(), seen)
    assert second == ["Another upgrade of this store runs; look again when it has ended."]
    assert recorded(empty_database) == list(range(NEWEST + 1))


def test_what_was_not_agreed_to_is_not_run(empty_database: Database) -> None:
    migrated_to(empty_database, 5)
    agreed = look(empty_database.url, empty_database.schema, MIGRATIONS[:8])
    with pytest.raises(Refused, match="has changed meanwhile"):
        Upgrade(empty_database.url, say=print).run(
            agreed, lambda: look(empty_database.url, empty_database.schema, MIGRATIONS)
        )
    assert recorded(empty_database) == list(range(6))


def test_a_killed_upgrade_is_taken_up_again(command: Command, empty_database: Database) -> None:
    migrated_to(empty_database, 5)
    program = [sys.executable, "-c", "from repair_service.cli.app import run; run()"]
    with holding(empty_database, "INSERT INTO checkpoint_migrations VALUES (99)") as other:
        other.execute(b"LOCK TABLE checkpoints IN ROW EXCLUSIVE MODE")
        running = subprocess.Popen(
            [*program, "store", "upgrade", "--yes", *address(empty_database)],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert running.stderr is not None
        with running, running.stderr:
            for line in running.stderr:
                if line.startswith("Migration 6"):
                    break
            _until_broken(empty_database, "checkpoints_thread_id_idx")
            running.send_signal(signal.SIGTERM)
            running.wait(30)
        assert running.returncode == 143
        other.execute(b"DELETE FROM checkpoint_migrations WHERE v = 99")
    assert indexes(empty_database)["checkpoints_thread_id_idx"] is False
    assert command("store", "upgrade", "--yes", *address(empty_database)).code == 0
    assert indexes(empty_database) == dict.fromkeys(INDEXES, True)


def _until_broken(database: Database, index: str) -> None:
    """Wait until an index is there and not built."""
    until = time.monotonic() + 30
    while indexes(database).get(index) is not False:
        assert time.monotonic() < until


def test_without_a_terminal_it_needs_yes(command: Command, empty_database: Database) -> None:
    migrated_to(empty_database, 5)
    ran = command("store", "upgrade", *address(empty_database))
    assert ran.code == 5
    assert "--yes" in ran.err
    assert recorded(empty_database) == list(range(6))


def test_a_database_without_a_store_is_refused(command: Command, empty_database: Database) -> None:
    ran = command("store", "upgrade", "--yes", *address(empty_database))
    assert ran.code == 1
    assert "let PostgresSaver.setup() run to its end" in ran.err


def test_a_role_that_owns_no_table_is_told(empty_database: Database, command: Command) -> None:
    migrated_to(empty_database, 5)
    with empty_database.connect() as connection:
        connection.execute(b"CREATE ROLE repair_reads_only")
        try:
            connection.execute(b"GRANT SELECT ON ALL TABLES IN SCHEMA public TO repair_reads_only")
            url = empty_database.url + ("&" if "?" in empty_database.url else "?")
            ran = command(
                "store",
                "upgrade",
                "--yes",
                "--database-url",
                f"{url}options=-c%20role%3Drepair_reads_only",
            )
        finally:
            connection.execute(b"DROP OWNED BY repair_reads_only")
            connection.execute(b"DROP ROLE repair_reads_only")
    assert ran.code == 1
    assert "may not" in ran.err
