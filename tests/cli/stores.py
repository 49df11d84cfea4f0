"""A damaged store with its ledger, and what is asked of both."""

from typing import Any

import psycopg

from tests.conftest import Database

Rows = dict[str, list[tuple[Any, ...]]]

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


def rows_of(database: Database) -> Rows:
    """Every row of the three tables, as text."""
    with database.connect() as connection:
        return {
            table: connection.execute(
                psycopg.sql.SQL("SELECT t::text FROM {} AS t ORDER BY 1").format(
                    psycopg.sql.Identifier(table)
                )
            ).fetchall()
            for table in TABLES
        }


def asked(database: Database, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of one statement."""
    with database.connect() as connection:
        return connection.execute(statement.encode(), values).fetchall()


def done(database: Database, statement: str, *values: Any) -> None:
    """Run one statement; it has to be about a row."""
    with database.connect() as connection:
        assert connection.execute(statement.encode(), values).rowcount
