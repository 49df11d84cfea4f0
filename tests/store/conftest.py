"""A role with few rights, for the store's tests."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import sql

from tests.conftest import Database, with_options


@dataclass(frozen=True, slots=True)
class Role:
    """A role that may connect to one test's database and nothing else.

    Attributes:
        name: Its name.
        url: The database's address, with every statement run as that role.
    """

    name: str
    url: str
    database: Database

    def grant(self, rights: str, on: str) -> None:
        """Grants rights on something of the database, as `GRANT rights ON on`."""
        with self.database.connect() as connection:
            connection.execute(
                sql.SQL("GRANT {} ON {} TO {}").format(
                    sql.SQL(rights), sql.SQL(on), sql.Identifier(self.name)
                )
            )


@pytest.fixture
def role(database: Database) -> Iterator[Role]:
    """A role without a right on the tables of `database`."""
    name = f"repair_test_{uuid.uuid4().hex}"
    with database.connect() as connection:
        try:
            connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
        except psycopg.errors.InsufficientPrivilege:
            pytest.skip("the role of REPAIR_TEST_DSN may not create roles")
        connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(name)))
        connection.execute(b"REVOKE ALL ON SCHEMA public FROM PUBLIC")
    try:
        yield Role(name, with_options(database.url, options=f"-c role={name}"), database)
    finally:
        with database.connect() as connection:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
