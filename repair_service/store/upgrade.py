"""LangGraph's own tables: what the installed saver would make of them, and making it."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.rows import namedtuple_row

from repair_service.errors import Refused, StoreNotUnderstood
from repair_service.store.connection import CANCEL_SECONDS, Bounds, StoreConnection
from repair_service.store.facts import TABLES, StoreFacts
from repair_service.store.failures import connecting, querying, read_address
from repair_service.store.inspection import inspect
from repair_service.store.statements import statement, text_of

LOOK_TIMEOUT = 60_000
"""Milliseconds that one statement of a look may take."""

TABLE_LOCK, INDEX_LOCK = 2_000, 600_000
"""Milliseconds that one try waits for its locks. Who waits for a table's own lock holds up all who
come behind, the application too; who builds an index concurrently only waits for transactions that
are older, and holds up nobody."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
"""Seconds between two tries; each is twice as long as the one before."""

ATTEMPTS = 30
"""Tries for the locks of one step: about five minutes for those of a table."""

_INDEX = re.compile(r"\bCREATE\s+INDEX\b.*?\bEXISTS\s+(\w+)\s+ON\s+(\w+)", re.I | re.S)

Say = Callable[[str], None]
"""Told of each step, and of each wait, in a sentence."""


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of an upgrade.

    Attributes:
        migration: Its number in the saver's list.
        text: The statement, as the saver has it.
        index: The index that it makes; None where it makes none.
        table: The table of that index.
        rebuilds: Whether a broken index of that name is there, to be dropped first.
    """

    migration: int
    text: str
    index: str | None
    table: str | None
    rebuilds: bool


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """A store's tables against the installed saver's.

    Attributes:
        schema: Their schema.
        target: The store's address, without the password.
        recorded: The migration they are at.
        newest: The one that the installed saver makes.
        steps: What would be run, in order.
        building: Indexes that somebody builds at this moment.
        rows: The planner's estimate of each table's rows, where it has one.
        pooler: What stands between us and the server; None where nothing shows.
    """

    schema: str
    target: str
    recorded: int
    newest: int
    steps: tuple[Step, ...]
    building: tuple[str, ...]
    rows: Mapping[str, int]
    pooler: str | None


def status_of(facts: StoreFacts, indexes: Sequence[Any], migrations: Sequence[str]) -> StoreStatus:
    """What an upgrade would run.

    Args:
        facts: The store.
        indexes: Rows of queries/store_indexes.sql.
        migrations: The saver's list; a statement's place in it is its number
            (langgraph/checkpoint/postgres/base.py, MIGRATIONS).

    Raises:
        StoreNotUnderstood: The tables are of no layout that is understood, or which migrations have
            run cannot be seen.
    """
    if facts.refusal is not None:
        raise StoreNotUnderstood(facts.refusal)
    if not facts.migrations:
        raise StoreNotUnderstood(
            "Which migrations have run cannot be seen; GRANT SELECT on checkpoint_migrations to "
            f"{facts.role}."
        )
    recorded = max(facts.migrations)
    broken = {row.name for row in indexes if not row.valid and not row.building}
    steps = []
    for number, text in enumerate(migrations):
        made = _INDEX.search(text)
        index, table = made.groups() if made else (None, None)
        rebuilds = index in broken
        lacks_column = "task_path" in text and not facts.has_task_path
        if number > recorded or rebuilds or lacks_column:
            steps.append(Step(number, " ".join(text.split()), index, table, rebuilds))
    return StoreStatus(
        schema=facts.schema,
        target=facts.target,
        recorded=recorded,
        newest=len(migrations) - 1,
        steps=tuple(steps),
        building=tuple(row.name for row in indexes if row.building),
        rows={
            name: table.row_estimate
            for name, table in facts.tables.items()
            if table.row_estimate is not None
        },
        pooler=facts.pooler,
    )


def look(url: str, schema: str, migrations: Sequence[str]) -> StoreStatus:
    """Look a store over.

    Args:
        url: Address of the database.
        schema: The schema of the checkpoint tables, unquoted.
        migrations: The saver's statements, in order.

    Raises:
        UsageError: The address cannot be read.
        StoreError: The store cannot be reached, or is of no layout that is understood.
    """
    bounds = Bounds(LOOK_TIMEOUT)
    connection = StoreConnection(url, schema, "repair-service", bounds, read_only=True)
    try:
        facts = inspect(connection)
        with connection.reading():
            asked = {"schema": schema, "tables": list(TABLES)}
            indexes = connection.rows("store_indexes", asked)
    finally:
        connection.close()
    return status_of(facts, indexes, migrations)


class Upgrade:
    """Runs the steps of a status, each recorded as the saver records it.

    Each is a statement by itself, as an index that is built while the application writes has to be;
    broken off, it is taken up again by the next upgrade. Two at once are refused.
    """

    def __init__(self, url: str, *, say: Say, sleep: Callable[[float], None] = time.sleep) -> None:
        """Nothing is opened yet.

        Args:
            url: The server's own address: a transaction pooler keeps no session.
            say: Told of each step and each wait.
            sleep: Waits so many seconds.

        Raises:
            UsageError: The address cannot be read.
        """
        self._target = read_address(url)
        self._say = say
        self._sleep = sleep

    def run(self, agreed: StoreStatus, look: Callable[[], StoreStatus]) -> None:
        """Run what was agreed to.

        Args:
            agreed: The status that somebody has seen.
            look: Looks the store over anew.

        Raises:
            Refused: Another upgrade runs, an index is being built, the store is no longer what was
                agreed to, or there is a pooler in between.
            StoreError: The store was lost, a right is missing, or a lock could not be got.
        """
        if agreed.pooler is not None:
            raise Refused(
                f"There is {agreed.pooler} in between, and an upgrade needs a session of its own. "
                "Give the server's own address."
            )
        with self._session(agreed.schema) as connection:
            locked = connection.execute(
                statement("try_lock_upgrade", agreed.schema), {"schema": agreed.schema}
            ).fetchone()
            if locked is None or not locked.held:
                raise Refused("Another upgrade of this store runs; look again when it has ended.")
            now = look()
            if now.building:
                raise Refused(
                    f"The index {now.building[0]} is being built by somebody else; look again when "
                    "that has ended."
                )
            if now.steps != agreed.steps:
                raise Refused("The store has changed meanwhile; look again at what would be run.")
            for step in now.steps:
                self._say(f"Migration {step.migration}: {step.text}")
                self._patiently(connection, agreed.schema, step)

    def _patiently(self, connection: "psycopg.Connection[Any]", schema: str, step: Step) -> None:
        """Run a step as soon as its locks are free."""
        pause = FIRST_PAUSE
        for _ in range(ATTEMPTS - 1):
            try:
                return _run(connection, schema, step)
            except errors.LockNotAvailable:
                self._say(f"Somebody holds the table; trying again in {pause:g} s.")
            self._sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        return _run(connection, schema, step)

    @contextmanager
    def _session(self, schema: str) -> Iterator["psycopg.Connection[Any]"]:
        with connecting(self._target):
            connection = psycopg.connect(
                self._target.conninfo,
                autocommit=True,
                prepare_threshold=None,
                row_factory=namedtuple_row,
                application_name="repair-service",
            )
        with connection, querying(self._target):
            connection.execute(statement("session_settings", schema), {"schema": schema})
            try:
                yield connection
            except BaseException:
                # Else the server goes on building an index for somebody who is gone.
                connection.cancel_safe(timeout=CANCEL_SECONDS)
                raise


def _run(connection: "psycopg.Connection[Any]", schema: str, step: Step) -> None:
    timeout = TABLE_LOCK if step.index is None else INDEX_LOCK
    connection.execute(statement("lock_timeout", schema), {"lock_timeout": str(timeout)})
    if step.index is not None and _is_broken(connection, schema, step.index):
        # It was there, or a try before this one left it; "if not exists" would take it as it is.
        names = {"schema": sql.Identifier(schema), "index": sql.Identifier(step.index)}
        connection.execute(sql.SQL(text_of("drop_index")).format(**names))
    connection.execute(step.text.encode())
    connection.execute(statement("record_migration", schema), {"v": step.migration})


def _is_broken(connection: "psycopg.Connection[Any]", schema: str, index: str) -> bool:
    found = connection.execute(
        statement("store_indexes", schema), {"schema": schema, "tables": list(TABLES)}
    ).fetchall()
    return any(row.name == index and not row.valid for row in found)
