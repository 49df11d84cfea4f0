"""Rows that LangGraph's EncryptedSerializer wrote are read, and written so that it reads them."""

import builtins
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from repair_service.checkpoint.digest import writes_digest
from repair_service.checkpoint.rows import BlobRow, CheckpointRow, HeadRows
from repair_service.errors import Unreadable
from repair_service.store.encryption import decrypt, encrypt
from repair_service.store.gateway import Store
from tests.conftest import Database
from tests.store.rows import checkpoint_id, put_blob, put_checkpoint, put_write

KEY = b"0123456789abcdef"
OTHER = b"fedcba9876543210"
SERIALIZER = EncryptedSerializer.from_pycryptodome_aes(key=KEY)
VALUE = {"messages": ["text", 1, None]}


def fill(database: Database) -> None:
    """A head with an encrypted blob, write and input, by LangGraph's own serializer."""
    kind, data = SERIALIZER.dumps_typed(VALUE)
    versions = {"messages": "1", "__start__": "1"}
    with database.connect() as connection:
        document = {"v": 4, "channel_versions": versions}
        put_checkpoint(connection, "t", checkpoint_id(1), checkpoint=document)
        put_blob(connection, "t", "messages", "1", data, type=kind)
        put_blob(connection, "t", "__start__", "1", data, type=kind)
        put_write(connection, "t", checkpoint_id(1), "messages", data, type=kind)


def read_head(database: Database, key: bytes | None) -> HeadRows:
    with Store.connect(database.url, schema=database.schema, aes_key=key) as store:
        ((head,),) = store.scan()
        return head.rows()


def test_blobs_and_writes_are_decrypted_with_the_key(database: Database) -> None:
    fill(database)
    head = read_head(database, KEY)
    for row in (head.blobs["messages"], head.writes[0]):
        assert (row.type, row.cipher, row.problem) == ("msgpack", "aes", None)
        assert row.blob is not None
        assert SERIALIZER.serde.loads_typed((row.type, row.blob)) == VALUE


@pytest.mark.parametrize(
    ("key", "reason"), [(None, "LANGGRAPH_AES_KEY"), (OTHER, "another one")], ids=["none", "wrong"]
)
def test_without_the_right_key_the_reason_is_in_the_row(
    database: Database, key: bytes | None, reason: str
) -> None:
    fill(database)
    head = read_head(database, key)
    for row in (head.blobs["messages"], head.writes[0]):
        assert (row.type, row.cipher) == ("msgpack", "aes")
        assert row.problem is not None
        assert reason in row.problem


def test_a_blob_whose_bytes_are_not_needed_needs_no_key(database: Database) -> None:
    fill(database)
    start = read_head(database, None).blobs["__start__"]
    assert (start.type, start.blob, start.problem) == ("msgpack", None, None)


def test_an_unknown_cipher_is_a_problem_of_its_row(database: Database) -> None:
    fill(database)
    with database.connect() as connection:
        connection.execute("UPDATE checkpoint_blobs SET type = 'msgpack+rot13'")
    problem = read_head(database, KEY).blobs["messages"].problem
    assert problem is not None
    assert "not known" in problem


@pytest.mark.parametrize("size", [0, 1, 15, 16, 31, 32])
def test_bytes_that_are_too_short_or_damaged_are_a_problem(size: int) -> None:
    plain, problem = decrypt("aes", bytes(size), KEY)
    assert plain == bytes(size)
    assert problem is not None


def test_a_missing_library_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without_crypto(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("Crypto"):
            raise ImportError(name)
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_crypto)
    assert "repair-service[encryption]" in (decrypt("aes", b"", KEY)[1] or "")
    with pytest.raises(Unreadable, match=r"repair-service\[encryption\]"):
        encrypt("aes", b"", KEY)


def test_a_patch_is_encrypted_so_that_langgraph_reads_it(database: Database) -> None:
    fill(database)
    kind, data = SERIALIZER.serde.dumps_typed(["mended"])
    row = CheckpointRow(
        thread_id="t",
        checkpoint_ns="",
        checkpoint_id=checkpoint_id(2),
        parent_checkpoint_id=checkpoint_id(1),
        checkpoint={"v": 4, "channel_versions": {"messages": "2"}},
        metadata={},
    )
    blob = BlobRow("messages", "2", kind, data, cipher="aes")
    with Store.connect(database.url, schema=database.schema, aes_key=KEY) as store:
        digest = writes_digest(store.threads(["t"])["t"].heads[""].writes)
        store.append(
            row, [blob], head_id=checkpoint_id(1), writes_digest=digest, check=lambda thread: None
        )
        assert store.threads(["t"])["t"].heads[""].blobs["messages"] == blob
    with database.connect() as connection:
        stored = connection.execute(
            "SELECT type, blob FROM checkpoint_blobs WHERE version = '2'"
        ).fetchone()
    assert stored is not None
    assert stored[0] == "msgpack+aes"
    assert data not in stored[1]
    assert SERIALIZER.loads_typed(stored) == ["mended"]


def test_a_patch_is_not_written_in_plain_where_the_key_is_missing(database: Database) -> None:
    fill(database)
    row = CheckpointRow("t", "", checkpoint_id(2), checkpoint_id(1), {"v": 4}, {})
    with Store.connect(database.url, schema=database.schema) as store:
        digest = writes_digest(store.threads(["t"])["t"].heads[""].writes)
        with pytest.raises(Unreadable, match="LANGGRAPH_AES_KEY"):
            store.append(
                row,
                [BlobRow("messages", "2", "msgpack", b"plain", cipher="aes")],
                head_id=checkpoint_id(1),
                writes_digest=digest,
                check=lambda thread: None,
            )
        assert store.threads(["t"])["t"].heads[""].row.checkpoint_id == checkpoint_id(1)


def test_the_same_value_is_encrypted_differently_each_time() -> None:
    assert encrypt("aes", b"plain", KEY) != encrypt("aes", b"plain", KEY)
