"""Stores that cannot be used: a sentence that says what to mend, and no traceback."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.cli.conftest import Command
from tests.conftest import Database, Server, with_options

READING = [["audit"], ["show", "t"], ["repair", "t", "--dry-run"]]


@pytest.fixture
def reader(server: Server, database: Database) -> Iterator[str]:
    """The address of a role that may read the tables and write nothing."""
    name = f"repair_reader_{uuid.uuid4().hex[:12]}"
    role = sql.Identifier(name)
    with database.connect() as connection:
        try:
            connection.execute(sql.SQL("CREATE ROLE {}").format(role))
        except psycopg.errors.InsufficientPrivilege:
            pytest.skip("the role of REPAIR_TEST_DSN may not create roles")
        schema = sql.Identifier(database.schema)
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, role))
        connection.execute(
            sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(schema, role)
        )
        yield with_options(database.url, options=f"-c role={name}")
        connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
        connection.execute(sql.SQL("DROP ROLE {}").format(role))


@pytest.mark.parametrize("arguments", [*READING, ["sweep", "--yes"]])
def test_no_checkpoint_tables(
    command: Command, empty_database: Database, arguments: list[str]
) -> None:
    ran = command(*arguments, "--database-url", empty_database.url)
    assert (ran.code, ran.out) == (1, "")
    assert "cannot be found in the schema public" in ran.err


@pytest.mark.parametrize("arguments", READING)
def test_no_such_schema(command: Command, database: Database, arguments: list[str]) -> None:
    ran = command(*arguments, "--database-url", database.url, "--schema", 'no"where')
    assert (ran.code, ran.out) == (1, "")
    assert "Give it with --schema" in ran.err


def test_no_such_database(command: Command, server: Server) -> None:
    ran = command("audit", "--database-url", with_options(server.url, dbname="repair_no_such"))
    assert (ran.code, ran.out) == (1, "")
    assert "there is no such database; correct the name" in ran.err


def test_an_empty_store_has_nothing_wrong(command: Command, database: Database) -> None:
    address = ["--database-url", database.url, "--schema", database.schema]
    ran = command("audit", *address)
    assert (ran.code, ran.out) == (0, "0 threads, 0 heads.\n")
    assert command("doctor", *address).code == 0


@pytest.mark.parametrize("arguments", [["sweep", "--yes"], ["repair", "t"]])
def test_a_role_that_may_not_write_is_told_the_grant(
    command: Command, reader: str, arguments: list[str]
) -> None:
    ran = command(*arguments, "--database-url", reader)
    assert (ran.code, ran.out) == (1, "")
    assert "may not write" in ran.err
    assert "GRANT INSERT ON" in ran.err


def test_a_role_that_may_not_write_can_audit_and_doctor_warns(
    command: Command, reader: str
) -> None:
    assert command("audit", "--database-url", reader).code == 0
    ran = command("doctor", "--database-url", reader, "--format", "json")
    [rights] = [check for check in ran.document["checks"] if check["name"] == "rights"]
    assert (ran.code, rights["status"]) == (0, "warn")
    assert "GRANT INSERT ON" in rights["mend"]


def test_doctor_claims_nothing_of_rows_that_it_may_not_read(
    command: Command, database: Database, reader: str
) -> None:
    with database.connect() as connection:
        connection.execute(
            sql.SQL("REVOKE SELECT ON ALL TABLES IN SCHEMA {} FROM {}").format(
                sql.Identifier(database.schema), sql.Identifier(reader.rpartition("role%3D")[2])
            )
        )
    ran = command("doctor", "--database-url", reader, "--format", "json")
    checks = {check["name"]: check for check in ran.document["checks"]}
    assert (ran.code, checks["rights"]["status"], checks["layout"]["status"]) == (1, "fail", "warn")
    reading, writing = checks["rights"]["mend"].split(" For repairs too: ")
    assert ("GRANT SELECT ON" in reading, "INSERT" in reading) == (True, False)
    assert ("GRANT INSERT ON" in writing, "SELECT" in writing) == (True, False)


def test_doctor_fails_where_the_tables_are_missing(
    command: Command, empty_database: Database
) -> None:
    ran = command("doctor", "--database-url", empty_database.url, "--format", "json")
    [tables] = [check for check in ran.document["checks"] if check["name"] == "tables"]
    assert (ran.code, tables["status"], ran.document["next_command"]) == (1, "fail", None)
    assert "PostgresSaver.setup()" in tables["mend"]


def test_doctor_warns_of_values_that_are_never_opened(command: Command, database: Database) -> None:
    with database.connect() as connection:
        connection.execute(
            "INSERT INTO checkpoint_blobs VALUES ('t', '', 'c', '1', 'pickle', '\\x80'), "
            "('t', '', 'd', '1', 'msgpack+aes', '\\x00')"
        )
    address = ["--database-url", database.url, "--schema", database.schema]
    checks = {
        check["name"]: check
        for check in command("doctor", *address, "--format", "json").document["checks"]
    }
    assert checks["types"]["status"] == "warn"
    assert "pickle" in checks["types"]["mend"]
    assert checks["key"]["status"] == "fail"
    assert "LANGGRAPH_AES_KEY" in checks["key"]["mend"]
