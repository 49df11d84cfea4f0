"""Encrypted stores, other schemas, and thread ids of any kind: repaired, and LangGraph goes on."""

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from psycopg import sql

from repair_service.cli.app import main
from repair_service.demo.programs import EARLIER, LINES, Graph, said, thread
from repair_service.demo.witness import KILLED
from repair_service.repair.verdict import Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from tests.acceptance.nursery import Nursery
from tests.acceptance.programs import FAMILIES
from tests.acceptance.service import (
    NOW,
    assert_accepted,
    assert_only_added,
    assert_repaired,
    audit,
    never_again,
    results,
    rows,
    sweep,
    verdicts,
)
from tests.conftest import Database, with_options

KEY, OTHER_KEY = "0123456789abcdef", "fedcba9876543210"
INPUTS = [EARLIER, LINES["three-calls"]]
KEPT = {"call_2_1": "fast call_2_1", "call_2_3": "fast call_2_3"}


@pytest.fixture
def encrypted(database: Database) -> Iterator[PostgresSaver]:
    """LangGraph's saver on the test's database, with the serializer that encrypts."""
    serializer = EncryptedSerializer.from_pycryptodome_aes(key=KEY.encode())
    with PostgresSaver.from_conn_string(database.url) as saver:
        saver.serde = serializer
        yield saver


def assert_mended(graph: Graph, thread_id: str) -> None:
    """What was finished is in the list, and every provider takes it."""
    messages = graph.get_state(thread(thread_id)).values["messages"]
    assert_accepted(messages)
    assert results(messages).items() >= KEPT.items()


def assert_goes_on(graph: Graph) -> None:
    """`continued` goes on by itself, and both threads take a new message."""
    state: Any = graph.invoke(None, thread("continued"), durability="sync")
    assert state["messages"][-1].text.startswith("The tools said: fast call_2_1")
    for thread_id in ("continued", "told"):
        state = graph.invoke(said("Are you there?"), thread(thread_id), durability="sync")
        assert state["messages"][-1].text == "You said: Are you there?"


def stored_values(database: Database, thread_id: str) -> list[tuple[str, bytes]]:
    """Type and bytes of every value of a thread that is not empty."""
    with database.connect() as connection:
        return connection.execute(
            "SELECT type, blob FROM checkpoint_blobs WHERE thread_id = %(thread)s"
            " AND blob IS NOT NULL UNION ALL"
            " SELECT type, blob FROM checkpoint_writes WHERE thread_id = %(thread)s",
            {"thread": thread_id},
        ).fetchall()


@pytest.mark.parametrize("family", ["agent", "deep_agent"])
def test_an_encrypted_store_is_repaired_with_the_key_of_its_application(
    family: str,
    database: Database,
    encrypted: PostgresSaver,
    nursery: Nursery,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for thread_id in ("continued", "told"):
        secret = ["with_key", KEY, "talk", family, database.url, thread_id, INPUTS]
        assert nursery.run(*secret) == KILLED
    before = rows(database)

    monkeypatch.setenv("LANGGRAPH_AES_KEY", KEY)
    asked = ["sweep", "--yes", "--min-idle", "0s", "--schema", database.schema]
    code = main([*asked, "--database-url", database.url])

    assert code == 0, capsys.readouterr()
    after = rows(database)
    assert_only_added(before, after)
    assert len(after["checkpoints"]) == len(before["checkpoints"]) + 2
    graph = FAMILIES[family](encrypted, never_again)
    for thread_id in ("continued", "told"):
        assert {type_.rpartition("+")[2] for type_, _ in stored_values(database, thread_id)} == {
            "aes"
        }
        assert_mended(graph, thread_id)
    assert_goes_on(graph)


@pytest.mark.parametrize(
    ("key", "reason"),
    [(None, "no key was given; set LANGGRAPH_AES_KEY"), (OTHER_KEY, "another one")],
    ids=["without the key", "with another key"],
)
def test_an_encrypted_thread_is_unreadable_and_its_plain_neighbour_is_repaired(
    key: str | None, reason: str, database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    secret = ["with_key", KEY, "talk", "agent", database.url, "secret", INPUTS]
    assert nursery.run(*secret) == KILLED
    assert nursery.run("talk", "agent", database.url, "plain", INPUTS) == KILLED
    before = rows(database)

    given = None if key is None else key.encode()
    with Store.connect(database.url, schema=database.schema, aes_key=given) as store:
        done = {item.thread_id: item for item in Sweep(store, NOW, Selection()).repair()}

    assert done["secret"].verdict is Verdict.UNREADABLE
    assert reason in done["secret"].reason
    assert done["plain"].verdict is Verdict.REPAIRED
    assert_only_added(before, rows(database))
    assert len(rows(database)["checkpoints"]) == len(before["checkpoints"]) + 1
    assert_mended(FAMILIES["agent"](saver, never_again), "plain")


def test_a_plain_thread_of_a_store_that_now_encrypts_stays_plain(
    database: Database, encrypted: PostgresSaver, nursery: Nursery
) -> None:
    for thread_id in ("continued", "told"):
        assert nursery.run("talk", "agent", database.url, thread_id, INPUTS) == KILLED

    with Store.connect(database.url, schema=database.schema, aes_key=KEY.encode()) as store:
        done = list(Sweep(store, NOW, Selection()).repair())

    assert {item.verdict for item in done} == {Verdict.REPAIRED}
    graph = FAMILIES["agent"](encrypted, never_again)
    for thread_id in ("continued", "told"):
        assert not any("+" in type_ for type_, _ in stored_values(database, thread_id))
        assert_mended(graph, thread_id)
    assert_goes_on(graph)


SCHEMA = """Agents' "β" %s"""


def test_a_store_in_a_schema_of_any_name(
    database: Database, saver: PostgresSaver, nursery: Nursery
) -> None:
    identifier = sql.Identifier(SCHEMA)
    with database.connect() as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(identifier))
    path = identifier.as_string().replace(" ", "\\ ")
    elsewhere = Database(with_options(database.url, options=f"-c search_path={path}"), SCHEMA)
    with PostgresSaver.from_conn_string(elsewhere.url) as other_saver:
        other_saver.setup()
        for thread_id in ("continued", "told"):
            assert nursery.run("talk", "agent", elsewhere.url, thread_id, INPUTS) == KILLED
        assert nursery.run("talk", "agent", database.url, "neighbour", INPUTS) == KILLED
        neighbours = rows(database)

        assert_repaired(elsewhere, ("continued", ""), ("told", ""))

        assert rows(database) == neighbours
        graph = FAMILIES["agent"](other_saver, never_again)
        for thread_id in ("continued", "told"):
            assert_mended(graph, thread_id)
        assert_goes_on(graph)
        assert audit(elsewhere) == []
    # The neighbour is another store, and is repaired as such.
    assert verdicts(sweep(database)) == {("neighbour", ""): Verdict.REPAIRED}


THREAD_IDS = (
    """it's "quoted", `back` and $1 %s {} ;--""",
    "two\nlines\tand a tab\\n",
    "ünïcode 🙂 日本語 \N{ZERO WIDTH JOINER}\N{COMBINING ACUTE ACCENT}",
    " ",
    "ten thousand characters " * 417,
)


def test_threads_of_any_id(database: Database, saver: PostgresSaver, nursery: Nursery) -> None:
    assert len(THREAD_IDS[-1]) > 10_000
    for thread_id in THREAD_IDS:
        assert nursery.run("talk", "agent", database.url, thread_id, INPUTS) == KILLED

    assert_repaired(database, *((thread_id, "") for thread_id in THREAD_IDS))

    graph = FAMILIES["agent"](saver, never_again)
    for thread_id in THREAD_IDS:
        assert_mended(graph, thread_id)
        state = graph.invoke(None, thread(thread_id), durability="sync")
        assert state["messages"][-1].text.startswith("The tools said: fast call_2_1")
        state = graph.invoke(said("Are you there?"), thread(thread_id), durability="sync")
        assert state["messages"][-1].text == "You said: Are you there?"
    assert audit(database) == []
