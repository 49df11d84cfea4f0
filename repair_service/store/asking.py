"""Queries that the operator gives: asked so that they can be nothing but queries."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors, sql

from repair_service.errors import UsageError
from repair_service.store.connection import StoreConnection
from repair_service.store.statements import text_of

QUERY_CLASSES = ("42", "0A")
"""SQLSTATEs of a statement that cannot be meant: syntax, names, types, rights, features."""


@dataclass(frozen=True, slots=True)
class OwnQuery:
    """What one of the operator's queries is for.

    Attributes:
        flag: The flag that it was given with.
        statement: The statement of ours (queries/*.sql) in which it is a table, as `{query}`.
        needed: The sentence that says what it has to be.
        slow: The sentence that says what to do where it takes too long.
    """

    flag: str
    statement: str
    needed: str
    slow: str


def ask_own_query(
    connection: StoreConnection, own: OwnQuery, query: str, values: Mapping[str, Any]
) -> list[Any]:
    """The rows that our statement around the operator's query gives, in the open transaction.

    The query runs read-only and is rolled back to where it began, so it leaves nothing behind,
    whatever functions it calls.

    Args:
        connection: With an open transaction.
        own: What the query is for.
        query: Its text.
        values: The parameters of our statement.

    Raises:
        UsageError: The query failed; the message says how, without any value of a row.
    """
    asked = _statement(own, query)
    found: list[Any] = []

    def ask(raw: "psycopg.Connection[Any]") -> None:
        with raw.transaction(force_rollback=True), raw.cursor() as cursor:
            # Of a savepoint alone: it may write again once the savepoint is rolled back.
            cursor.execute(b"SET LOCAL transaction_read_only = on")
            found.extend(cursor.execute(asked, values).fetchall())

    try:
        connection.hand_over(ask)
    except psycopg.Error as failure:
        if isinstance(failure, psycopg.OperationalError) and not isinstance(
            failure, errors.QueryCanceled
        ):
            raise
        raise UsageError(_said(own, failure)) from None
    return found


def _statement(own: OwnQuery, query: str) -> sql.Composed:
    """The operator's query as a sub-select; its own % are no placeholders of psycopg's."""
    text = query.strip().removesuffix(";").replace("%", "%%")
    return sql.SQL(text_of(own.statement)).format(query=sql.SQL(text))


def _said(own: OwnQuery, failure: psycopg.Error) -> str:
    if isinstance(failure, errors.QueryCanceled):
        return f"{own.flag} took longer than --statement-timeout and was cancelled. {own.slow}"
    if isinstance(failure, errors.ReadOnlySqlTransaction):
        return f"{own.flag} writes, and may only read. Give a query that writes nothing."
    code = failure.sqlstate or type(failure).__name__
    # The other classes' messages may hold values of the application's rows.
    plain = failure.sqlstate is not None and failure.sqlstate.startswith(QUERY_CLASSES)
    said = failure.diag.message_primary if plain else None
    return f"{own.flag} failed ({f'{said}, ' if said else ''}SQLSTATE {code}). {own.needed}"
