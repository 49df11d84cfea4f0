"""A SQLite store's threads, in Postgres: LangGraph reads the same of them, and they go on."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from repair_service.checkpoint.identifiers import timestamp
from repair_service.demo.programs import EARLIER, LINES, said, thread
from repair_service.errors import StoreNotUnderstood, UsageError
from repair_service.transfer.digest import canonical
from repair_service.transfer.lane import Fate, Forms
from repair_service.transfer.seal import Change, as_it_is, opener, sealer
from repair_service.transfer.sqlite import SqliteSource
from repair_service.transfer.store import CopiedStore
from repair_service.transfer.tables import CopiedTable
from tests.acceptance.programs import FAMILIES
from tests.acceptance.service import never_again
from tests.conftest import Database
from tests.transfer.conftest import Copied, done, one_lane, opened

KEY = b"0123456789abcdef"
GRAPHS = ["agent", "deep_agent"]


class Broken(Exception):
    """A tool fails, and the run with it: what it wrote by then is on disk."""


def breaks(after: int) -> str:
    raise Broken


def foreign(written: Change = as_it_is, key: bytes | None = None) -> Forms:
    """As the command compares and writes rows of a SQLite file."""
    plain = opener(key)

    def compared(table: CopiedTable, row: bytes) -> bytes:
        return canonical(table, plain(table, row))

    return Forms(compared, written)


def copied(
    file: Path,
    target: Database,
    forms: Forms,
    key: bytes | None = None,
    since: float | None = None,
) -> Copied:
    with closing(SqliteSource(file, key)) as source, closing(opened(target)) as writing:
        work = one_lane(source, source.reading, CopiedStore(writing), forms)
        return done(work, since=since)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with a finished, a waiting and a broken thread of each graph."""
    path = tmp_path / "chat store.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        talk(saver)
    return path


def talk(saver: Any) -> None:
    for name in GRAPHS:
        graph = FAMILIES[name](saver, breaks)
        graph.invoke(said(EARLIER), thread(f"{name} finished"))
        graph.invoke(said(LINES["waiting"]), thread(f"{name} waiting"))
        graph.invoke(said(EARLIER), thread(f"{name} broken"))
        with pytest.raises(Broken):
            graph.invoke(said(LINES["three-calls"]), thread(f"{name} broken"), durability="sync")


def seen(saver: Any, name: str, thread_id: str) -> list[Any]:
    """What LangGraph reads of a thread, its whole history."""
    graph = FAMILIES[name](saver, never_again)
    return [
        (
            state.values,
            state.next,
            state.config["configurable"]["checkpoint_id"],
            state.metadata,
            [(task.id, task.name, task.error, task.interrupts) for task in state.tasks],
        )
        for state in graph.get_state_history(thread(thread_id))
    ]


def test_langgraph_reads_the_same_history_of_every_thread(file: Path, target: Database) -> None:
    first = copied(file, target, foreign())
    assert first.fates == {
        f"{name} {kind}": Fate.COPIED
        for name in GRAPHS
        for kind in ("finished", "waiting", "broken")
    }
    with (
        SqliteSaver.from_conn_string(str(file)) as old,
        PostgresSaver.from_conn_string(target.url) as new,
    ):
        for thread_id in first.fates:
            name = thread_id.split()[0]
            history = seen(new, name, thread_id)
            assert history == seen(old, name, thread_id)
            assert history[0][0]["messages"]


def test_a_second_copy_finds_the_same_rows(file: Path, target: Database) -> None:
    first = copied(file, target, foreign())
    assert copied(file, target, foreign()).fates == dict.fromkeys(first.fates, Fate.SAME)
    with target.connect() as connection:
        connection.execute(
            b"UPDATE checkpoints SET metadata = metadata || '{\"step\": 99}'"
            b" WHERE thread_id = 'agent waiting'"
        )
    assert copied(file, target, foreign()).fates["agent waiting"] is Fate.DIFFERS


def test_threads_with_a_newer_head_alone_are_copied(file: Path, target: Database) -> None:
    with closing(sqlite3.connect(file)) as connection:
        heads = dict(
            connection.execute(
                "SELECT thread_id, max(checkpoint_id) FROM checkpoints"
                " WHERE checkpoint_ns = '' GROUP BY thread_id"
            )
        )
    newest = max(heads, key=heads.__getitem__)
    moment = (timestamp(heads[newest]) or 0.0) - 0.001
    assert copied(file, target, foreign(), since=moment).fates == {newest: Fate.COPIED}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_question_is_answered_where_it_was_copied_to(
    name: str, file: Path, target: Database
) -> None:
    from langgraph.types import Command

    copied(file, target, foreign())
    with PostgresSaver.from_conn_string(target.url) as saver:
        graph = FAMILIES[name](saver, never_again)
        config = thread(f"{name} waiting")
        (asked,) = graph.get_state(config).interrupts
        assert asked.value == "May I book the flight?"
        answered = graph.invoke(Command(resume="yes"), config)
        assert "approved: yes" in [message.text for message in answered["messages"]]


def test_an_encrypted_file_stays_encrypted(
    tmp_path: Path, target: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGGRAPH_AES_KEY", KEY.decode())
    path = tmp_path / "encrypted.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.serde = EncryptedSerializer.from_pycryptodome_aes()
        talk(saver)
    forms = foreign(key=KEY)
    first = copied(path, target, forms, KEY)
    assert copied(path, target, forms, KEY).fates == dict.fromkeys(first.fates, Fate.SAME)
    with target.connect() as connection:
        types = connection.execute(b"SELECT DISTINCT type FROM checkpoint_blobs").fetchall()
    assert {kind for (kind,) in types} == {"msgpack+aes"}
    with (
        SqliteSaver.from_conn_string(str(path)) as old,
        PostgresSaver.from_conn_string(target.url) as new,
    ):
        old.serde = new.serde = EncryptedSerializer.from_pycryptodome_aes()
        assert seen(new, "agent", "agent broken") == seen(old, "agent", "agent broken")


def test_a_plain_file_is_encrypted_on_its_way(file: Path, target: Database) -> None:
    copied(file, target, foreign(sealer(KEY), KEY))
    with target.connect() as connection:
        types = connection.execute(
            b"SELECT type FROM checkpoint_blobs UNION SELECT type FROM checkpoint_writes"
        ).fetchall()
    assert types
    assert all(kind.endswith("+aes") for (kind,) in types)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (("pickle", b"cos\nsystem\n."), "only msgpack and json are read"),
        (("msgpack", b"\xc1"), "cannot be read as a checkpoint"),
        (("json", b'{"v": 4, "id": "a\\u0000b"}'), "holds a NUL character"),
        (("msgpack+aes", b"x" * 40), "set LANGGRAPH_AES_KEY"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_keeps_its_own_thread_alone(
    document: tuple[str, bytes], reason: str, file: Path, target: Database
) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(
            "UPDATE checkpoints SET type = ?, checkpoint = ? WHERE thread_id = 'agent finished'",
            document,
        )
    result = copied(file, target, foreign())
    left = {thread: fate for thread, fate in result.fates.items() if fate is not Fate.COPIED}
    assert left == {"agent finished": Fate.UNREADABLE}
    assert reason in result.reasons["agent finished"]


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no file"):
        SqliteSource(tmp_path / "none.sqlite", None)
    (tmp_path / "text").write_text("not a database at all" * 100)
    with pytest.raises(StoreNotUnderstood, match="cannot be read as a SQLite database"):
        SqliteSource(tmp_path / "text", None)
    sqlite3.connect(tmp_path / "other.sqlite").close()
    with pytest.raises(StoreNotUnderstood, match="has not the tables"):
        SqliteSource(tmp_path / "other.sqlite", None)
