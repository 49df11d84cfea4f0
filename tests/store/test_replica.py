"""A replica of a store: known as one, asked how far it is behind, read again where it says no."""

import time
from collections.abc import Callable
from urllib.parse import urlsplit

import psycopg
import pytest

from repair_service.errors import ReplicaConflict, StoreError, UsageError
from repair_service.store import connection as connection_room
from repair_service.store.connection import Bounds, StoreConnection
from repair_service.store.gateway import Store
from tests.conftest import Database, Replicated, with_options
from tests.replicas import PATIENCE


def opened(database: Database) -> Store:
    return Store.connect(database.url, read_only=True)


def test_a_replica_of_the_store_is_known_as_one(replicated: Replicated) -> None:
    with opened(replicated.primary) as store, opened(replicated.replica) as replica:
        store.check_replica(replica)


def test_the_primary_itself_will_do_where_there_is_no_replica(replicated: Replicated) -> None:
    with opened(replicated.primary) as store, opened(replicated.primary) as other:
        store.check_replica(other)


def test_another_server_is_refused(replicated: Replicated, empty_database: Database) -> None:
    name = urlsplit(replicated.primary.url).path.removeprefix("/")
    with empty_database.connect() as connection:
        try:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0'.encode())
        except psycopg.errors.InsufficientPrivilege:
            pytest.skip("the role of REPAIR_TEST_DSN may not create databases")
    other = Database(with_options(empty_database.url, dbname=name))
    try:
        with (
            opened(replicated.primary) as store,
            opened(other) as stranger,
            pytest.raises(UsageError, match="system identifier is another"),
        ):
            store.check_replica(stranger)
    finally:
        with empty_database.connect() as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def test_another_database_of_the_replica_is_refused(replicated: Replicated) -> None:
    elsewhere = Database(with_options(replicated.replica.url, dbname="postgres"))
    with (
        opened(replicated.primary) as store,
        opened(elsewhere) as stranger,
        pytest.raises(UsageError, match="its database is postgres"),
    ):
        store.check_replica(stranger)


def test_primary_and_replica_the_wrong_way_round_are_refused(replicated: Replicated) -> None:
    with (
        opened(replicated.replica) as store,
        opened(replicated.primary) as primary,
        pytest.raises(UsageError, match="takes writes of its own"),
    ):
        store.check_replica(primary)


def test_both_servers_tell_how_far_the_replica_is_behind(replicated: Replicated) -> None:
    with opened(replicated.primary) as store, opened(replicated.replica) as replica:
        assert replica.load().replica_lag() == 0
        with replicated.servers.held_back():
            with replicated.primary.connect() as connection:
                connection.execute("CREATE TABLE something (number integer)")
            wait_until(lambda: replica.load().behind() > 0.5)
            wait_until(lambda: (store.load().replica_lag() or 0) > 0.5)
        replicated.servers.caught_up()
        assert replica.load().behind() == 0


def wait_until(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_batch_that_a_replica_cancels_is_read_again(
    replicated: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert conflicting(replicated, monkeypatch, conflicts=1) == 2


def test_a_replica_that_always_cancels_is_given_up_with_the_remedy(
    replicated: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ReplicaConflict, match="hot_standby_feedback") as raised:
        conflicting(replicated, monkeypatch, conflicts=9)
    assert "replica" in str(raised.value)


def conflicting(replicated: Replicated, monkeypatch: pytest.MonkeyPatch, *, conflicts: int) -> int:
    """Read while the primary removes what is read, so many times; how often it was begun."""
    monkeypatch.setattr(connection_room, "RETRIES", (0.0, 0.0))
    begun = 0
    reading = StoreConnection(replicated.replica.url, "public", "test", Bounds(), read_only=True)
    values = {"after": None, "limit": 1}

    def read() -> int:
        nonlocal begun
        begun += 1
        reading.rows("next_threads", values)
        if begun <= conflicts:
            with replicated.primary.connect() as connection:
                connection.execute("CREATE TABLE removed AS SELECT generate_series(1, 100)")
                connection.execute("DROP TABLE removed")
                connection.execute(
                    "DELETE FROM checkpoints WHERE ctid IN (SELECT ctid FROM checkpoints LIMIT 1)"
                )
                connection.execute("VACUUM checkpoints")
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                reading.rows("next_threads", values)
                time.sleep(0.02)
        return begun

    try:
        return reading.read(read)
    finally:
        reading.close()


def test_what_is_not_a_conflict_is_not_read_again(replicated: Replicated) -> None:
    reading = StoreConnection(replicated.replica.url, "public", "test", Bounds(), read_only=True)
    begun: list[int] = []

    def read() -> None:
        begun.append(1)
        raise psycopg.errors.DivisionByZero

    with pytest.raises(StoreError, match="A statement failed"):
        reading.read(read)
    reading.close()
    assert len(begun) == 1
