"""Reading ahead: the same items, one early, and an end whatever happens."""

import threading
from collections.abc import Iterator

import pytest

from repair_service.errors import StoreUnreachable
from repair_service.store.ahead import read_ahead
from repair_service.store.connection import StoreConnection
from repair_service.store.gateway import Store
from repair_service.store.scan import shard_of
from tests.conftest import Database
from tests.store.rows import checkpoint_id, put_checkpoint


def never() -> None:
    raise AssertionError("Nothing is to be cancelled.")


def test_the_items_in_their_order() -> None:
    assert list(read_ahead(iter(range(50)), never)) == list(range(50))


def test_one_item_and_no_more_is_read_early() -> None:
    read: list[int] = []
    second = threading.Event()

    def items() -> Iterator[int]:
        for number in range(9):
            if number == 2:
                second.set()
            read.append(number)
            yield number

    ahead = read_ahead(items(), lambda: None)
    assert next(ahead) == 0
    assert next(ahead) == 1
    assert second.wait(10)
    ahead.close()  # type: ignore[attr-defined]  # a generator
    assert read == [0, 1, 2]


def test_an_error_is_raised_where_the_items_are_used() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise StoreUnreachable("gone")

    ahead = read_ahead(items(), never)
    assert next(ahead) == 1
    with pytest.raises(StoreUnreachable, match="gone"):
        next(ahead)


def test_who_stops_early_waits_for_a_cancelled_reader() -> None:
    cancelled = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        assert cancelled.wait(10)
        yield 2

    ahead = read_ahead(items(), cancelled.set)
    assert next(ahead) == 1
    ahead.close()  # type: ignore[attr-defined]  # a generator
    assert cancelled.is_set()
    assert not [each for each in threading.enumerate() if each.name == "repair-service-reader"]


def test_a_scan_that_is_left_early_leaves_no_connection(database: Database) -> None:
    with database.connect() as connection:
        for number in range(100):
            put_checkpoint(connection, f"t{number}", checkpoint_id(1))
        with Store.connect(database.url, schema=database.schema, application_name="early") as store:
            scan = store.scan(batch_size=10)
            next(scan)
            scan.close()  # type: ignore[attr-defined]  # a generator
            with store._connection.reading():
                pass  # still usable
            asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'early'"
            for _ in range(100):
                row = connection.execute(asked).fetchone()
                if row == (1,):
                    return
                connection.execute("SELECT pg_sleep(0.05)")
    raise AssertionError("The scan's own connection is still there.")


def test_a_scan_without_a_second_connection_finds_the_same(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.connect() as connection:
        for number in range(10):
            put_checkpoint(connection, f"t{number}", checkpoint_id(1))

    def refused(self: StoreConnection) -> StoreConnection:
        raise StoreUnreachable("too many connections")

    monkeypatch.setattr(StoreConnection, "another", refused)
    with Store.connect(database.url, schema=database.schema) as store:
        assert sum(len(batch) for batch in store.scan(batch_size=3)) == 10


def test_a_shard_is_the_same_everywhere() -> None:
    assert [shard_of(f"thread-{number}", 5) for number in range(8)] == [1, 4, 4, 3, 4, 0, 4, 1]
