"""`migrate copy` as an operator types it."""

from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from tests.cli.conftest import Command, Ran
from tests.cli.stores import asked, rows_of
from tests.conftest import Corpus, Database


@pytest.fixture
def source(load_corpus: Any) -> Database:
    corpus: Corpus = load_corpus("python-1.2.24")
    return corpus.database


@pytest.fixture
def target(empty_database: Database) -> Database:
    with PostgresSaver.from_conn_string(empty_database.url) as saver:
        saver.setup()
    return empty_database


@pytest.fixture
def run(command: Command, source: Database, target: Database) -> Command:
    """`migrate copy` from one to the other."""

    def call(*arguments: str) -> Ran:
        stores = ["--database-url", source.url, "--schema", source.schema, "--to-url", target.url]
        return command("migrate", "copy", *stores, *arguments)

    return call


def test_a_dry_run_says_what_would_be_copied_and_writes_nothing(
    run: Command, target: Database
) -> None:
    ran = run("--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert "43 would be copied" in ran.out
    assert not any(rows_of(target).values())


def test_threads_are_copied_once(run: Command, source: Database, target: Database) -> None:
    first = run("--yes", "--format", "json")
    assert first.code == 0
    assert first.document["totals"]["copied"] == 43
    assert rows_of(target) == rows_of(source)
    second = run("--yes")
    assert second.code == 0
    assert "0 copied" in second.out
    assert "43 there already" in second.out


def test_threads_of_another_time_or_shard_are_no_error(run: Command) -> None:
    newer = run("--dry-run", "--thread", "agent_three", "--since", "2100-01-01")
    assert (newer.code, newer.err) == (0, "")
    assert "0 would be copied" in newer.out
    parts = [run("--dry-run", "--thread", "agent_three", "--shard", f"{i}/2") for i in (1, 2)]
    assert [part.code for part in parts] == [0, 0]
    assert sum("1 would be copied" in part.out for part in parts) == 1


def test_a_table_that_is_locked_is_waited_for_as_long_as_is_said(
    run: Command, target: Database
) -> None:
    with target.connect() as connection, connection.transaction():
        connection.execute("LOCK TABLE checkpoint_blobs")
        ran = run("--yes", "--lock-timeout", "1s")
    assert ran.code == 1
    assert "--lock-timeout" in ran.err


def test_a_thread_that_differs_is_named_and_left(run: Command, target: Database) -> None:
    assert run("--yes", "--thread", "agent_three").code == 0
    with target.connect() as connection:
        connection.execute(b"UPDATE checkpoints SET metadata = '{}'")
    before = rows_of(target)
    ran = run("--yes", "--thread", "agent_three")
    assert ran.code == 2
    assert "differs  agent_three" in ran.out
    assert "delete it there first" in ran.out.replace("\n", " ")
    assert rows_of(target) == before


def test_it_writes_nothing_unasked(run: Command, target: Database) -> None:
    ran = run()
    assert ran.code == 5
    assert "--yes" in ran.err
    assert not any(rows_of(target).values())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--encrypt", "--decrypt"), "give one of them"),
        (("--encrypt",), "set LANGGRAPH_AES_KEY"),
        (("--from-sqlite", "no.sqlite"), "There is no file no.sqlite"),
    ],
)
def test_what_cannot_be_meant_is_said(
    run: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.delenv("LANGGRAPH_AES_KEY", raising=False)
    ran = run("--yes", *arguments)
    assert (ran.code, ran.out) == (64, "")
    assert said in ran.err


def test_a_named_thread_that_is_not_there_is_an_error(run: Command, target: Database) -> None:
    ran = run("--yes", "--thread", "agent_three", "--thread", "nobody's")
    assert ran.code == 1
    assert '"nobody\'s"' in ran.err
    assert asked(target, "SELECT DISTINCT thread_id FROM checkpoints") == [("agent_three",)]


def test_a_store_without_tables_is_refused(
    command: Command, source: Database, empty_database: Database
) -> None:
    stores = ["--database-url", source.url, "--schema", source.schema]
    ran = command("migrate", "copy", "--yes", *stores, "--to-url", empty_database.url)
    assert ran.code == 1
    assert "PostgresSaver.setup()" in ran.err
