"""One connection to a store: transactions with bounds, statements by name, errors of our tree."""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import psycopg
from psycopg import IsolationLevel
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import namedtuple_row, tuple_row
from psycopg.types.json import set_json_loads

from repair_service.checkpoint.document import read_document
from repair_service.errors import ReplicaConflict, StoreForbidden
from repair_service.store.failures import Target, connecting, querying, read_address
from repair_service.store.notice import CHANNEL, Notice
from repair_service.store.statements import statement

CANCEL_SECONDS = 1.0

CONNECT_SECONDS = 10
"""A host that does not answer must not hold up a scheduled sweep for the system's two minutes."""


KEEPALIVE_SECONDS = 60
"""A run that waits for a quieter server keeps its connections: load balancers and address
translations forget one that was silent for some minutes."""

RETRIES = (0.1, 0.3, 1.0, 3.0)
"""Seconds before a batch is read again that a replica cancelled: what stood in its way is replayed
by then, and a replica that cancels five times in a row will do so again."""

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long the server may take; both in milliseconds, 0 for as long as it likes.

    Attributes:
        statement_timeout: For one statement. A batch reads in well under a second; a minute means a
            server in trouble.
        lock_timeout: For a lock on a table, while the application's migrations hold it.
    """

    statement_timeout: int = 60_000
    lock_timeout: int = 2_000


class StoreConnection:
    """A connection that is opened at once, and again where it was lost between transactions.

    Nothing of it lives longer than a transaction: no session setting, no prepared statement, no
    cursor on the server. So it works through a pooler that hands out connections by transaction.
    """

    def __init__(
        self, url: str, schema: str, application_name: str, bounds: Bounds, read_only: bool
    ) -> None:
        self.target: Target = read_address(url)
        self.schema = schema
        self.application_name = application_name
        self._bounds = bounds
        self._read_only = read_only
        self._connection = self._open()

    def close(self) -> None:
        self._connection.close()

    def another(self) -> "StoreConnection":
        """A second connection to the same store."""
        return StoreConnection(
            self.target.conninfo, self.schema, self.application_name, self._bounds, self._read_only
        )

    def cancel(self) -> None:
        """Ends the statement that runs; may be called from another thread."""
        with contextlib.suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=CANCEL_SECONDS)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A read-only transaction that sees one moment of the store."""
        with self._transaction(IsolationLevel.REPEATABLE_READ, read_only=True):
            yield

    def read(self, read: Callable[[], Read]) -> Read:
        """Reads in such a transaction, and again in a new one where a replica cancelled it.

        Args:
            read: Reads, and does nothing else.

        Raises:
            ReplicaConflict: It was cancelled each time.
        """
        for pause in RETRIES:
            try:
                with self.reading():
                    return read()
            except ReplicaConflict:
                time.sleep(pause)
        with self.reading():
            return read()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """A read-only transaction whose every statement sees what others have committed by then.

        For a question behind a lock: the answer is as of when the lock was got.
        """
        with self._transaction(IsolationLevel.READ_COMMITTED, read_only=True):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction whose every statement sees what others have committed by then.

        Raises:
            StoreForbidden: The store was opened for reading only.
        """
        if self._read_only:
            raise StoreForbidden("The store was opened for reading only; nothing was written.")
        with self._transaction(IsolationLevel.READ_COMMITTED, read_only=False):
            yield

    def rows(
        self, name: str, values: Mapping[str, Any] | None = None, *, task_path: bool = True
    ) -> list[Any]:
        """Runs the statement of that name in the open transaction; its rows as named tuples."""
        with self._connection.cursor(binary=True) as cursor:
            return cursor.execute(statement(name, self.schema, task_path), values or {}).fetchall()

    def tuples(
        self, name: str, values: Mapping[str, Any], *, task_path: bool = True
    ) -> list[tuple[Any, ...]]:
        """The same, its rows as plain tuples: for the statements that a scan asks of every head."""
        with self._connection.cursor(binary=True, row_factory=tuple_row) as cursor:
            return cursor.execute(statement(name, self.schema, task_path), values).fetchall()

    def change(self, name: str, values: Mapping[str, Any]) -> int:
        """Runs an INSERT or DELETE of that name; the number of rows that it was about."""
        with self._connection.cursor() as cursor:
            return cursor.execute(statement(name, self.schema), values).rowcount

    @contextmanager
    def copying(
        self, name: str, values: Mapping[str, Any] | None = None, *, task_path: bool = True
    ) -> Iterator["psycopg.Copy"]:
        """Runs the COPY of that name in the open transaction."""
        text = statement(name, self.schema, task_path)
        with self._connection.cursor() as cursor, cursor.copy(text, values) as copy:
            yield copy

    def hand_over(self, use: Callable[["psycopg.Connection[Any]"], None]) -> None:
        """Lets somebody else take part in the open transaction."""
        use(self._connection)

    def address(self) -> str:
        """Where the store is, as an address without user and password."""
        info = self._connection.info
        return f"postgresql://{quote(info.host, safe='')}:{info.port}/{quote(info.dbname, safe='')}"

    def notify(self, notice: Notice) -> None:
        """Tells who listens of what the open transaction does, once it is committed."""
        payload = notice.payload(self.address(), self.schema)
        self.rows("notify", {"channel": CHANNEL, "payload": payload})

    def backend_pid(self) -> int:
        """The server process as the other end of the connection announced it."""
        return self._connection.info.backend_pid

    def local_port(self) -> int | None:
        """Our own port of a TCP connection, None for a Unix socket."""
        with socket.socket(fileno=os.dup(self._connection.fileno())) as ours:
            if ours.family == socket.AF_UNIX:
                return None
            port: int = ours.getsockname()[1]
            return port

    def _open(self) -> "psycopg.Connection[Any]":
        with connecting(self.target):
            connection = psycopg.connect(
                self.target.conninfo,
                prepare_threshold=None,
                row_factory=namedtuple_row,
                application_name=self.application_name,
                client_encoding="utf8",
                **self._unless_given(),
            )
        set_json_loads(read_document, connection)
        return connection

    def _unless_given(self) -> dict[str, Any]:
        """Parameters of libpq that the address may set otherwise."""
        given = conninfo_to_dict(self.target.conninfo)
        ours = {"connect_timeout": CONNECT_SECONDS, "keepalives_idle": KEEPALIVE_SECONDS}
        return {name: value for name, value in ours.items() if name not in given}

    @contextmanager
    def _transaction(self, isolation: IsolationLevel, *, read_only: bool) -> Iterator[None]:
        if self._connection.closed:
            self._connection = self._open()
        with querying(self.target):
            self._connection.isolation_level = isolation
            self._connection.read_only = read_only
            with self._connection.transaction():
                self.rows(
                    "transaction_settings",
                    {
                        "statement_timeout": str(self._bounds.statement_timeout),
                        "lock_timeout": str(self._bounds.lock_timeout),
                    },
                )
                yield
