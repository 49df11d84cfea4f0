"""Threads that run now, as the operator's own query names them."""

from collections.abc import Sequence

import psycopg
from psycopg import errors, sql

from repair_service.errors import UsageError
from repair_service.store.connection import StoreConnection
from repair_service.store.loading import storable
from repair_service.store.statements import text_of

QUERY_CLASSES = ("42", "0A")
"""SQLSTATEs of a statement that cannot be meant: syntax, names, types, rights, features."""


def active_among(connection: StoreConnection, query: str, ids: Sequence[str]) -> frozenset[str]:
    """Those of the threads that the query names, asked in the open transaction.

    The query runs read-only and is rolled back to where it began, so it leaves nothing behind,
    whatever functions it calls.

    Args:
        connection: With an open transaction.
        query: A query whose first column is a thread's id.
        ids: The threads.

    Raises:
        UsageError: The query failed; the message says how, without any value of a row.
    """
    asked = _statement(query)
    found: frozenset[str] = frozenset()

    def ask(raw: "psycopg.Connection[object]") -> None:
        nonlocal found
        with raw.transaction(force_rollback=True), raw.cursor() as cursor:
            # Of a savepoint alone: it may write again once the savepoint is rolled back.
            cursor.execute(b"SET LOCAL transaction_read_only = on")
            rows = cursor.execute(asked, {"threads": storable(ids)}).fetchall()
            found = frozenset(row[0] for row in rows)  # type: ignore[index]  # a named tuple

    try:
        connection.hand_over(ask)
    except psycopg.Error as failure:
        if isinstance(failure, psycopg.OperationalError) and not isinstance(
            failure, errors.QueryCanceled
        ):
            raise
        raise UsageError(_said(failure)) from None
    return found


def _statement(query: str) -> sql.Composed:
    """The operator's query as a sub-select; its own % are no placeholders of psycopg's."""
    own = query.strip().removesuffix(";").replace("%", "%%")
    return sql.SQL(text_of("active_threads")).format(query=sql.SQL(own))


def _said(failure: psycopg.Error) -> str:
    if isinstance(failure, errors.QueryCanceled):
        return (
            "--active-query took too long and was cancelled. It is asked for 50 threads at a time; "
            "give it an index, or let it read less."
        )
    if isinstance(failure, errors.ReadOnlySqlTransaction):
        return "--active-query writes, and may only read. Give a query that writes nothing."
    code = failure.sqlstate or type(failure).__name__
    # The other classes' messages may hold values of the application's rows.
    plain = failure.sqlstate is not None and failure.sqlstate.startswith(QUERY_CLASSES)
    said = failure.diag.message_primary if plain else None
    return (
        f"--active-query failed ({f'{said}, ' if said else ''}SQLSTATE {code}). It has to be one "
        "query whose first column is the id of a thread that runs now."
    )
