"""Transactions in the ledger's database, and its rows a page at a time."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Connection, Insert, Row, Select, Update, func, select

from repair_service.ledger.engine import explained, make_engine
from repair_service.ledger.raw import execute_on
from repair_service.store.failures import read_address

PAGE = 500
"""Rows a page: half a megabyte at most, and few enough to hold beside a sweep's own."""

Position = TypeVar("Position")


class Database:
    """The ledger's database: one short transaction a question.

    Nothing is held open between two pages of a long answer, for a reader that takes its time would
    keep the store's own vacuum from its work, and a pooler's connection from others.
    """

    def __init__(self, url: str, *, statement_seconds: float | None = None) -> None:
        """Nothing is connected yet.

        Args:
            url: The database's address.
            statement_seconds: How long one statement may take; None for as long as the server lets.

        Raises:
            UsageError: The address cannot be read.
        """
        self.url = url
        self._target = read_address(url)
        self._engine = make_engine(url)
        self._bound = None if statement_seconds is None else f"{int(statement_seconds * 1000)}ms"

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def explained(self) -> AbstractContextManager[None]:
        """Turns what goes wrong into an error of our tree."""
        return explained(self._target)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction; committed on the way out, undone where something goes wrong."""
        with self.explained(), self._engine.begin() as connection:
            if self._bound is not None:
                # Of the transaction, not of the session: a pooler may stand between.
                connection.execute(select(func.set_config("statement_timeout", self._bound, True)))
            yield connection

    def rows(self, statement: Select[Any]) -> list[Row[Any]]:
        """All rows of one statement."""
        with self.transaction() as connection:
            return list(connection.execute(statement).all())

    def write(
        self, connection: "psycopg.Connection[Any] | None", statement: Insert | Update
    ) -> int:
        """Run one statement, in the transaction that is open on a connection where one is given.

        Returns:
            How many rows it wrote.
        """
        if connection is not None:
            with self.explained():
                return execute_on(connection, statement)
        with self.transaction() as ours:
            # Of an INSERT it is forgotten otherwise.
            counted = ours.execution_options(preserve_rowcount=True)
            return counted.execute(statement).rowcount

    def pages(
        self,
        page: Callable[[Position | None], Select[Any]],
        position: Callable[[Row[Any]], Position],
    ) -> Iterator[Row[Any]]:
        """All rows of a long answer, a page at a time.

        Args:
            page: The statement for the page behind a position; None for the first.
            position: Where a row stands.
        """
        behind: Position | None = None
        while rows := self.rows(page(behind)):
            yield from rows
            behind = position(rows[-1])
