"""What goes wrong is said in one sentence that never shows a password."""

import socket

import pytest

from repair_service.errors import (
    RepairServiceError,
    StoreNotUnderstood,
    StoreUnreachable,
    UsageError,
)
from repair_service.store.connection import Bounds
from repair_service.store.gateway import Store
from tests.conftest import Database, with_options
from tests.store.rows import checkpoint_id, put_checkpoint

SECRET = "hunter2-TopSecret"


def refused(url: str) -> RepairServiceError:
    with pytest.raises(RepairServiceError) as raised:
        Store.connect(url)
    # A traceback would show libpq's own text, with what it took for a host.
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or raised.value.__suppress_context__
    return raised.value


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_port_where_nothing_listens_is_unreachable() -> None:
    port = free_port()
    said = refused(f"postgresql://app:{SECRET}@127.0.0.1:{port}/store")
    assert isinstance(said, StoreUnreachable)
    assert f"database store at 127.0.0.1:{port} as app" in str(said)
    assert "nothing listens" in str(said)
    assert SECRET not in str(said)


def test_a_host_that_does_not_exist_is_unreachable() -> None:
    said = refused(f"postgresql://app:{SECRET}@no-such-host.invalid/store")
    assert isinstance(said, StoreUnreachable)
    assert "no-such-host.invalid" in str(said)
    assert "cannot be resolved" in str(said)
    assert SECRET not in str(said)


def test_a_database_that_does_not_exist_is_unreachable(server_url: str) -> None:
    said = refused(with_options(server_url, dbname="no_such_database"))
    assert isinstance(said, StoreUnreachable)
    assert "no such database" in str(said)


def test_a_socket_that_does_not_exist_is_unreachable() -> None:
    said = refused(f"postgresql://app:{SECRET}@/store?host=/no/such/directory")
    assert isinstance(said, StoreUnreachable)
    assert "no such socket" in str(said)
    assert SECRET not in str(said)


def test_a_wrong_password_is_unreachable_and_not_shown() -> None:
    from repair_service.demo.postgres import start_postgres

    with start_postgres(tcp=True) as server:
        assert server.tcp_url is not None
        right = server.tcp_url
        Store.connect(right).close()
        host = right.rpartition("@")[2]
        said = refused(f"postgresql://postgres:{SECRET}@{host}")
        assert isinstance(said, StoreUnreachable)
        assert "password was refused" in str(said)
        assert SECRET not in str(said)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://app:hunter2@TopSecret@db.invalid/store",
        "postgresql://app:hunter2/TopSecret@db.invalid/store",
        "postgresql://app:hunter2?TopSecret@db.invalid/store",
        "postgresql://app:hunter2:TopSecret@db.invalid/store",
        "postgresql://app:hunter2%TopSecret@db.invalid/store",
        "postgresql://app:hunter2 TopSecret@db.invalid/store",
        "postgresql://app:hunter2[TopSecret@db.invalid/store",
        "host=db.invalid password='hunter2 TopSecret",
        "host=db.invalid password=hunter2 TopSecret",
        "host=db.invalid pasword=hunter2TopSecret",
        "hunter2TopSecret",
        "mysql://app:hunter2TopSecret@db.invalid/store",
        "postgresql://app:hunter2TopSecret@db.invalid:port/store",
        "postgresql://app:hunter2TopSecret@db.invalid/store?sslmode=nonsense",
        "postgresql://app:hunter2TopSecret@db.invalid/store?schema=public",
        "postgresql://app:hunter2TopSecret@db.invalid/st\0ore",
        "postgresql://app:hunter2TopSecret@db.invalid/\udcff",
    ],
)
def test_an_address_that_is_misread_shows_no_piece_of_its_password(url: str) -> None:
    said = str(refused(url))
    assert "hunter2" not in said
    assert "TopSecret" not in said


def test_an_address_that_cannot_be_read_is_wrong_usage() -> None:
    said = refused(f"postgresql://app:{SECRET}@db.invalid/store?schema=public")
    assert isinstance(said, UsageError)
    assert "%40" in str(said)


def test_a_driver_in_the_address_is_left_out(database: Database) -> None:
    for scheme in ("postgresql+psycopg://", "postgresql+asyncpg://", "postgres://"):
        url = database.url.replace("postgresql://", scheme)
        with Store.connect(url, schema=database.schema) as store:
            store.check_understood()


def test_a_key_of_a_wrong_length_is_wrong_usage(database: Database) -> None:
    with pytest.raises(UsageError, match="16, 24 or 32"):
        Store.connect(database.url, aes_key=SECRET.encode()[:15])


def test_a_statement_that_takes_too_long_is_cancelled(database: Database) -> None:
    with (
        database.connect() as other,
        Store.connect(database.url, schema=database.schema, bounds=Bounds(200)) as store,
    ):
        put_checkpoint(other, "t", checkpoint_id(1))
        store.check_understood()
        with other.transaction():
            other.execute("LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreUnreachable, match="took too long"):
                next(store.scan())
        assert len(list(store.scan())) == 1


def test_a_table_that_vanishes_in_between_is_not_understood(database: Database) -> None:
    with (
        database.connect() as other,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        store.check_understood()
        other.execute("DROP TABLE checkpoint_writes")
        put_checkpoint(other, "t", checkpoint_id(1))
        with pytest.raises(StoreNotUnderstood, match="--schema"):
            next(store.scan())


def test_a_lost_connection_is_unreachable_and_made_again(database: Database) -> None:
    with (
        database.connect() as other,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        put_checkpoint(other, "t", checkpoint_id(1))
        store.check_understood()
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'repair-service' AND datname = current_database()"
        )
        with pytest.raises(StoreUnreachable, match="lost"):
            store.threads(["t"])
        assert list(store.threads(["t"])) == ["t"]


def test_a_connection_lost_in_the_middle_of_a_scan_is_unreachable(database: Database) -> None:
    with (
        database.connect() as other,
        Store.connect(database.url, schema=database.schema) as store,
    ):
        for number in range(5):
            put_checkpoint(other, f"t{number}", checkpoint_id(1))
        scan = store.scan(batch_size=1)
        next(scan)
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'repair-service' AND datname = current_database()"
        )
        with pytest.raises(StoreUnreachable, match="lost"):
            list(scan)
        with pytest.raises(StoreUnreachable, match="lost"):
            store.threads(["t0"])
        assert len(list(store.scan(batch_size=1))) == 5
