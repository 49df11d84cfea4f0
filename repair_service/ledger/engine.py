"""Connections to the ledger's database, and what goes wrong there as one sentence of ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors
from sqlalchemy import Engine, NullPool, QueuePool, create_engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from repair_service.errors import (
    LedgerError,
    LedgerForbidden,
    LedgerMismatch,
    LedgerUnreachable,
    RepairServiceError,
    StoreUnreachable,
)
from repair_service.store.failures import Target, connecting, read_address

CONNECT_SECONDS = 10
"""As for the store: a host that does not answer must not hold up a sweep for minutes."""

POOL_SIZE = 1
"""A run asks one thing at a time; a status page beside it asks more, and connects anew for it."""

POOL_SECONDS = 300
"""A pooler or a firewall closes connections that idle longer; ours are younger than that."""


def make_engine(url: str, *, pooled: bool = True) -> Engine:
    """An engine for an address of any form that libpq takes; nothing is connected yet.

    Nothing of a connection outlives a transaction (no session setting, no prepared statement), so a
    pooler that hands out connections by transaction may stand between.

    Args:
        url: The database's address.
        pooled: Whether to keep a connection between transactions.

    Raises:
        UsageError: The address cannot be read.
    """
    target = read_address(url)
    defaults: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS}
    if "connect_timeout" in target.conninfo:
        defaults.clear()

    def connect() -> "psycopg.Connection[Any]":
        try:
            with connecting(target):
                return psycopg.connect(
                    target.conninfo,
                    prepare_threshold=None,
                    application_name="repair-service ledger",
                    client_encoding="utf8",
                    **defaults,
                )
        except StoreUnreachable as failure:
            raise LedgerUnreachable(f"The ledger cannot be reached. {failure}") from None

    # The address is not given to the engine, whose repr and errors may show it; nor are values.
    settings: dict[str, Any] = {
        "creator": connect,
        "hide_parameters": True,
        "use_native_hstore": False,  # looking for it costs a statement a connection
    }
    if not pooled:
        return create_engine("postgresql+psycopg://", poolclass=NullPool, **settings)
    return create_engine(
        "postgresql+psycopg://",
        poolclass=QueuePool,
        pool_size=POOL_SIZE,
        pool_pre_ping=True,
        pool_recycle=POOL_SECONDS,
        **settings,
    )


@contextmanager
def explained(target: Target) -> Iterator[None]:
    """Turns what goes wrong in the ledger's database into an error of our tree."""
    try:
        yield
    except RepairServiceError:
        raise
    except DBAPIError as failure:
        raise explanation(failure.orig, target) from None
    except psycopg.Error as failure:
        raise explanation(failure, target) from None
    except SQLAlchemyError as failure:
        raise LedgerError(
            f"The ledger in {target.text} failed ({type(failure).__name__}). Try again, and report "
            "it if it stays so."
        ) from None


def explanation(failure: BaseException | None, target: Target) -> LedgerError:
    """The error of our tree for one of psycopg's: what happened, and what to do."""
    match failure:
        case errors.InsufficientPrivilege():
            return LedgerForbidden(
                f"The role may not read or write the ledger in {target.text}. As the owner of its "
                "tables, grant it: GRANT USAGE ON SCHEMA repair_service TO role; GRANT SELECT, "
                "INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA repair_service TO role."
            )
        case errors.ReadOnlySqlTransaction():
            return LedgerForbidden(
                f"Nothing can be written to the ledger in {target.text}: it is read-only (a "
                "standby?). Give the address of the primary with --ledger-url."
            )
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.InvalidSchemaName():
            return LedgerMismatch(
                f"The ledger's tables are missing, or not this release's, in {target.text}. Run "
                "`repair-service db upgrade`."
            )
        case errors.LockNotAvailable() | errors.DeadlockDetected() | errors.QueryCanceled():
            return LedgerError(
                f"The ledger in {target.text} was held by others for too long. Try again; see "
                "pg_stat_activity for who holds it."
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return LedgerUnreachable(
                f"The connection to the ledger in {target.text} was lost; an open transaction was "
                "undone. Try again."
            )
        case psycopg.Error():
            code = failure.sqlstate or type(failure).__name__
            return LedgerError(
                f"The ledger in {target.text} refused a statement (SQLSTATE {code}). The server's "
                "log says more."
            )
        case _:
            return LedgerError(f"The ledger in {target.text} failed. Try again.")
