"""A role that may not: what is refused, and the grant that mends it, tried."""

from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest
from psycopg import sql

from repair_service.errors import LedgerForbidden
from repair_service.ledger import migrate
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.migrate import LedgerState
from tests.conftest import Database, Server, with_options
from tests.ledger.examples import run

PASSWORD = "made-up"


@pytest.fixture
def stranger(bare: Database, server: Server) -> Iterator[Database]:
    """The same database for a role that may connect to it, and nothing else."""
    role = f"Repair Test {uuid4().hex}"
    name = sql.Identifier(role)
    with ExitStack() as stack:
        admin = stack.enter_context(bare.connect())
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(name, PASSWORD))

        def drop() -> None:
            admin.execute(sql.SQL("DROP OWNED BY {}; DROP ROLE {}").format(name, name))

        stack.callback(drop)
        yield Database(with_options(bare.url, user=role, password=PASSWORD))


def grants(remedy: str) -> list[str]:
    """The statements in a remedy that begin with GRANT, as an operator would copy them."""
    statements = remedy.split(";")
    return [each[each.index("GRANT") :] for each in statements if "GRANT " in each]


def do(database: Database, statements: list[str]) -> None:
    assert statements
    with database.connect() as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_the_grant_on_the_database_is_named_and_enough(bare: Database, stranger: Database) -> None:
    with pytest.raises(LedgerForbidden, match="GRANT CREATE ON DATABASE") as refusal:
        migrate.upgrade(stranger.url)
    assert not migrate.check(stranger.url).ready
    assert "GRANT CREATE ON DATABASE" in migrate.available(stranger.url).why
    assert "not kept" in migrate.available(stranger.url).why

    do(bare, grants(str(refusal.value)))

    migrate.upgrade(stranger.url)
    assert migrate.check(stranger.url).ready


def test_a_schema_made_for_the_role_is_enough(bare: Database, stranger: Database) -> None:
    with stranger.connect() as connection:
        role = connection.execute("SELECT quote_ident(current_user)").fetchone()
    assert role is not None
    do(bare, [f"CREATE SCHEMA repair_service AUTHORIZATION {role[0]}"])

    migrate.upgrade(stranger.url)

    assert migrate.check(stranger.url).ready


def test_the_grant_on_the_schema_is_named_and_enough(bare: Database, stranger: Database) -> None:
    do(bare, ["CREATE SCHEMA repair_service"])

    with pytest.raises(LedgerForbidden, match="ON SCHEMA repair_service") as refusal:
        migrate.upgrade(stranger.url)
    do(bare, grants(str(refusal.value)))

    migrate.upgrade(stranger.url)

    assert migrate.check(stranger.url).ready


def test_a_worker_needs_only_to_read_and_write_the_tables(
    bare: Database, stranger: Database
) -> None:
    migrate.upgrade(bare.url)
    found = migrate.check(stranger.url)
    assert (found.ready, found.current.state) == (False, LedgerState.CLOSED)
    with pytest.raises(LedgerForbidden, match="GRANT USAGE ON SCHEMA"):
        migrate.upgrade(stranger.url)

    do(bare, grants(found.remedy))

    assert migrate.check(stranger.url).ready
    assert migrate.upgrade(stranger.url).applied == ()
    with Ledger(stranger.url) as ledger:
        run_id = ledger.runs.open(run(ledger.identify(stranger.url, "public")))
        assert ledger.runs.get(run_id) is not None


def test_a_single_right_that_is_missing_is_named(bare: Database, stranger: Database) -> None:
    migrate.upgrade(bare.url)
    do(bare, grants(migrate.check(stranger.url).remedy))
    with stranger.connect() as connection:
        role = connection.execute("SELECT quote_ident(current_user)").fetchone()
    assert role is not None
    do(bare, [f"REVOKE INSERT ON repair_service.repairs FROM {role[0]}"])

    found = migrate.check(stranger.url)

    assert not found.ready
    assert "INSERT ON repair_service.repairs" in found.remedy


def test_a_version_that_cannot_be_read_is_no_ledger_that_is_ready(
    bare: Database, stranger: Database
) -> None:
    migrate.upgrade(bare.url)
    do(bare, grants(migrate.check(stranger.url).remedy))
    with stranger.connect() as connection:
        role = connection.execute("SELECT quote_ident(current_user)").fetchone()
    assert role is not None
    do(bare, [f"REVOKE SELECT ON repair_service.alembic_version FROM {role[0]}"])

    found = migrate.check(stranger.url)

    assert (found.ready, found.current.state) == (False, LedgerState.CLOSED)
    assert "SELECT ON repair_service.alembic_version" in found.remedy


def test_a_ledger_that_cannot_be_written_says_so(bare: Database) -> None:
    migrate.upgrade(bare.url)
    standby = with_options(bare.url, options="-c default_transaction_read_only=on")

    assert "read-only" in migrate.check(standby).remedy
    with Ledger(standby) as ledger, pytest.raises(LedgerForbidden, match="read-only"):
        ledger.runs.open(run(ledger.identify(standby, "public")))
    migrate.downgrade(bare.url, "base")
    with pytest.raises(LedgerForbidden, match="read-only"):
        migrate.upgrade(standby)


def test_a_statement_that_is_refused_names_the_grant(bare: Database, stranger: Database) -> None:
    migrate.upgrade(bare.url)

    with Ledger(stranger.url) as ledger, pytest.raises(LedgerForbidden, match="GRANT USAGE"):
        ledger.runs.newest()
