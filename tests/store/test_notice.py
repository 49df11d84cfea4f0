"""An application that listens hears of each thread that was repaired, and of no other."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from repair_service.checkpoint.digest import writes_digest
from repair_service.checkpoint.rows import BlobRow, CheckpointRow
from repair_service.errors import RepairFailed
from repair_service.store.gateway import Store
from repair_service.store.notice import MOST_BYTES, Notice
from repair_service.store.removal import WrittenPatch
from tests.conftest import Database
from tests.store.rows import checkpoint_id, put_checkpoint

HEAD, PATCH = checkpoint_id(10), checkpoint_id(11)
LONG = "é" * 10_000

Told = list[dict[str, Any]]


@pytest.fixture
def heard(database: Database) -> Iterator[Callable[[], Told]]:
    """What a listener has been told since it was last asked."""
    with database.connect() as listening, database.connect() as other:
        listening.execute("LISTEN repair_service")

        def told() -> Told:
            # Notices come in the order of the commits, so this one ends those before it.
            other.execute("NOTIFY repair_service, 'end'")
            found: Told = []
            for notice in listening.notifies():
                if notice.payload == "end":
                    return found
                found.append(json.loads(notice.payload))
            raise AssertionError("the listener's connection was lost")

        yield told


@pytest.fixture
def connection(database: Database) -> Iterator["psycopg.Connection[Any]"]:
    with database.connect() as connected:
        yield connected


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with Store.connect(database.url, schema=database.schema) as opened:
        yield opened


def append(store: Store, notice: Notice, *, wrong: str | None = None) -> None:
    rows = store.threads([notice.thread_id])[notice.thread_id].heads[""]
    store.append(
        CheckpointRow(
            thread_id=notice.thread_id,
            checkpoint_ns="",
            checkpoint_id=PATCH,
            parent_checkpoint_id=HEAD,
            checkpoint={"v": 4, "id": PATCH, "channel_versions": {"messages": "2"}},
            metadata={"repair_service": {}},
        ),
        [BlobRow("messages", "2", "msgpack", b"mended")],
        head_id=HEAD,
        writes_digest=writes_digest(rows.writes),
        check=lambda thread: wrong,
        notice=notice,
    )


def test_a_patch_and_its_undo_are_told_with_the_head_that_the_thread_has_then(
    store: Store,
    connection: "psycopg.Connection[Any]",
    database: Database,
    heard: Callable[[], Told],
) -> None:
    put_checkpoint(connection, "t", HEAD)
    run = uuid4()

    append(store, Notice("thread.repaired", "t", "", PATCH, run))

    (told,) = heard()
    assert told.pop("store").startswith("postgresql://")
    assert told == {
        "version": 1,
        "type": "thread.repaired",
        "schema": database.schema,
        "thread_id": "t",
        "checkpoint_ns": "",
        "checkpoint_id": PATCH,
        "run_id": str(run),
    }

    patch = WrittenPatch("t", "", PATCH, HEAD, (("messages", "2"),))
    undone = Notice("thread.repair_undone", "t", "", HEAD, None)
    store.take_back(patch, dry_run=True, notice=undone)
    assert heard() == []
    store.take_back(patch, notice=undone)

    (told,) = heard()
    assert (told["type"], told["checkpoint_id"]) == ("thread.repair_undone", HEAD)
    assert told["run_id"] is None


def test_a_patch_that_is_rolled_back_is_never_told(
    store: Store, connection: "psycopg.Connection[Any]", heard: Callable[[], Told]
) -> None:
    put_checkpoint(connection, "t", HEAD)

    with pytest.raises(RepairFailed):
        append(store, Notice("thread.repaired", "t", "", PATCH, None), wrong="still unanswered")

    assert heard() == []


def test_where_an_id_is_too_long_to_be_told_it_is_said_where_to_look(
    store: Store, connection: "psycopg.Connection[Any]", heard: Callable[[], Told]
) -> None:
    put_checkpoint(connection, LONG, HEAD)

    append(store, Notice("thread.repaired", LONG, "", PATCH, uuid4()))

    (told,) = heard()
    assert (told["thread_id"], told["look_in"]) == (None, "checkpoints")
    found = connection.execute(
        f"SELECT thread_id FROM {told['look_in']} WHERE checkpoint_id = %s",
        [told["checkpoint_id"]],
    ).fetchall()
    assert found == [(LONG,)]


@pytest.mark.parametrize("length", [7_600, 7_650, 7_700, 7_750, 7_800, 7_999, 8_000])
def test_a_payload_is_never_longer_than_postgres_takes(
    length: int, connection: "psycopg.Connection[Any]"
) -> None:
    notice = Notice("thread.repaired", "t" * length, "", PATCH, uuid4())
    payload = notice.payload("postgresql://db:5432/app", "public")

    assert len(payload.encode()) <= MOST_BYTES
    connection.execute("SELECT pg_notify('repair_service', %s)", [payload])
