"""Runs the ledger's migrations in one transaction, one process at a time.

Alembic runs this file. The connection comes from repair_service.ledger.migrate, which retries where
a lock was not to be had; without one (`--sql`) the statements are printed.
"""

from typing import Any

from alembic import context
from alembic.ddl.postgresql import PostgresqlImpl
from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, Table, Text, text

from repair_service.ledger.tables import SCHEMA, VERSION_TABLE, metadata

LOCK = 5_157_206_418_339_127_841
"""The advisory lock that a migrating process holds; any number, the same in every release."""

WAIT_FOR_OTHERS = "60s"
"""Ten pods that start at once wait for the first, whose migration is short."""

WAIT_FOR_TABLES = "5s"
"""A statement that waits for a table makes everyone behind it wait too; then rather try again."""


class LedgerImpl(PostgresqlImpl):
    """Postgres as Alembic has it, but for the version table, whose text may be of any length."""

    __dialect__ = "postgresql"

    def version_table_impl(
        self, *, version_table: str, version_table_schema: str | None, **_: Any
    ) -> Table:
        return Table(
            version_table,
            MetaData(),
            Column("version_num", Text, nullable=False),
            PrimaryKeyConstraint("version_num", name=f"{version_table}_pkey"),
            schema=version_table_schema,
        )


def offline() -> None:
    """Print the statements, in a transaction."""
    context.configure(
        dialect_name="postgresql",
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        version_table_schema=SCHEMA,
        literal_binds=True,
    )
    with context.begin_transaction():
        context.execute(f"SET LOCAL statement_timeout = '{WAIT_FOR_OTHERS}'")
        context.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        context.execute(f"SET LOCAL lock_timeout = '{WAIT_FOR_TABLES}'")
        context.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        context.run_migrations()


def online(connection: Connection) -> None:
    """Migrate in the transaction that is open on the connection."""
    # A lock by transaction, for a pooler may hand each transaction another connection.
    connection.execute(text(f"SET LOCAL lock_timeout = '{WAIT_FOR_OTHERS}'"))
    connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
    connection.execute(text(f"SET LOCAL lock_timeout = '{WAIT_FOR_TABLES}'"))
    # IF NOT EXISTS asks for the right to make a schema even where it is there.
    if connection.scalar(text("SELECT to_regnamespace(:name) IS NULL"), {"name": SCHEMA}):
        connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        version_table_schema=SCHEMA,
        include_schemas=True,
        include_name=lambda name, kind, _: kind != "schema" or name == SCHEMA,
    )
    context.run_migrations()


if context.is_offline_mode():
    offline()
else:
    online(context.config.attributes["connection"])
