"""One database or two: found out, not read from addresses."""

import pytest

from repair_service.errors import StoreUnreachable
from repair_service.ledger.gateway import Ledger
from tests.conftest import Database, with_options


def test_a_store_in_the_same_database_is_known_by_its_schema(
    ledger: Ledger, bare: Database
) -> None:
    by_another_name = with_options(bare.url, application_name="another")

    found = ledger.identify(by_another_name, "app schema")

    assert found.shared
    assert found.key == "here/app%20schema"
    assert found.address.startswith("postgresql://")


def test_a_store_in_another_database_of_the_server_is_another(
    ledger: Ledger, database: Database, bare: Database
) -> None:
    found = ledger.identify(database.url, "public")

    assert not found.shared
    assert found.key == f"{found.address.removeprefix('postgresql://')}/public"
    assert found != ledger.identify(bare.url, "public")
    assert found == ledger.identify(database.url, "public")


def test_the_address_has_no_password(ledger: Ledger, bare: Database) -> None:
    found = ledger.identify(with_options(bare.url, password="s3cret"), "public")

    assert "s3cret" not in repr(found)


def test_a_store_that_cannot_be_reached_is_named(ledger: Ledger) -> None:
    with pytest.raises(StoreUnreachable, match="nothing listens there"):
        ledger.identify("postgresql://127.0.0.1:1/db", "public")
