"""Looks a store over, before anything else is asked of it."""

import time
from collections.abc import Mapping
from typing import Any

from repair_service.store.connection import StoreConnection
from repair_service.store.facts import (
    TABLES,
    Kind,
    StoreFacts,
    TableFacts,
    missing_rights,
    refusal_of,
)

SAMPLED_BLOCKS = 128
"""One MB of each table: enough to see every type in use, milliseconds to read."""


def sample_percent(connection: StoreConnection, table: str, blocks: int) -> float:
    """The share of a table that is about so many blocks, in per cent, for TABLESAMPLE SYSTEM."""
    found = connection.rows("table_blocks", {"schema": connection.schema, "table": table})
    total = found[0].blocks if found else 0
    return 100.0 if total <= blocks else 100.0 * blocks / total


def inspect(connection: StoreConnection) -> StoreFacts:
    """Everything `doctor` says of a store, and the reason to refuse it where there is one."""
    names = list(TABLES)
    schema = connection.schema
    asked_for = {"schema": schema, "tables": names}
    with connection.reading():
        asked = time.time()
        server = connection.rows("server")[0]
        # The server read its clock about half-way between our two looks.
        ahead = server.clock - (asked + time.time()) / 2
        columns: dict[str, dict[str, str]] = {name: {} for name in names}
        for row in connection.rows("columns", asked_for):
            columns[row.name][row.column] = row.type
        keys: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
        for row in connection.rows("primary_keys", asked_for):
            keys[row.name] += (row.column,)
        tables = {
            row.name: TableFacts(
                columns=columns[row.name],
                primary_key=keys[row.name],
                may_select=row.may_select,
                may_insert=row.may_insert,
                row_security=row.row_security,
                row_estimate=row.row_estimate,
            )
            for row in connection.rows("tables", asked_for)
        }
        others = tuple(row.name for row in connection.rows("schemas") if row.name != schema)
        migrations = _migrations(connection, tables)
        refusal = refusal_of(schema, tables, migrations, others)
        readable = refusal is None and all(table.may_select for table in tables.values())
        types = _types(connection) if readable else ()
        kinds = _version_kinds(connection) if readable else frozenset()
    has_task_path = "task_path" in columns["checkpoint_writes"]
    return StoreFacts(
        target=connection.target.text,
        server_version=server.server_version,
        encoding=server.encoding,
        role=server.role,
        schema=schema,
        tables={name: tables[name] for name in names if name in tables},
        other_schemas=() if "checkpoints" in tables else others,
        migrations=migrations,
        kind=_kind(kinds),
        has_task_path=has_task_path,
        pooler=_pooler(connection, server),
        read_only=server.in_recovery,
        clock_ahead_seconds=ahead,
        types=types,
        encrypted=any("+" in each for each in types),
        refusal=refusal,
        missing_rights=missing_rights(schema, server.role, tables),
    )


def _migrations(
    connection: StoreConnection, tables: Mapping[str, TableFacts]
) -> tuple[int, ...] | None:
    table = tables.get("checkpoint_migrations")
    if table is None or not table.may_select or table.columns.get("v") != "integer":
        return None
    return tuple(row.v for row in connection.rows("migrations"))


def _types(connection: StoreConnection) -> tuple[str, ...]:
    rows = connection.rows(
        "sampled_types",
        {
            "blobs_percent": sample_percent(connection, "checkpoint_blobs", SAMPLED_BLOCKS),
            "writes_percent": sample_percent(connection, "checkpoint_writes", SAMPLED_BLOCKS),
        },
    )
    return tuple(row.type for row in rows)


def _version_kinds(connection: StoreConnection) -> frozenset[str]:
    percent = sample_percent(connection, "checkpoints", SAMPLED_BLOCKS)
    return frozenset(row.kind for row in connection.rows("sampled_versions", {"percent": percent}))


def _kind(version_kinds: frozenset[str]) -> Kind:
    """LangGraph.js counts channel versions in numbers, Python writes them as text."""
    if {"number", "string"} <= version_kinds:
        return "both"
    if "number" in version_kinds:
        return "js"
    return "python" if version_kinds else "empty"


def _pooler(connection: StoreConnection, server: Any) -> str | None:
    """A pooler announces a process id of its own and reaches the server from its own port."""
    if connection.backend_pid() != server.backend_pid:
        return "a connection pooler"
    ours = connection.local_port()
    if ours is not None and ours != server.client_port:
        return "a pooler, a proxy or a translated address"
    return None
