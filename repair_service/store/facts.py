"""What a store is, and whether it can be worked with: plain values for `doctor` to print."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["python", "js", "both", "empty"]

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_migrations")

NEWEST_MIGRATION = 9
"""The last migration known: langgraph/checkpoint/postgres/base.py, MIGRATIONS (3.2.0)."""

PRIMARY_KEYS: Mapping[str, tuple[str, ...]] = {
    "checkpoints": ("thread_id", "checkpoint_ns", "checkpoint_id"),
    "checkpoint_blobs": ("thread_id", "checkpoint_ns", "channel", "version"),
    "checkpoint_writes": ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"),
}

TEXT = frozenset({"text", "character varying"})

COLUMN_TYPES: Mapping[str, Mapping[str, frozenset[str]]] = {
    "checkpoints": {
        "thread_id": TEXT,
        "checkpoint_ns": TEXT,
        "checkpoint_id": TEXT,
        "parent_checkpoint_id": TEXT,
        "checkpoint": frozenset({"jsonb"}),
        "metadata": frozenset({"jsonb"}),
    },
    "checkpoint_blobs": {
        "thread_id": TEXT,
        "checkpoint_ns": TEXT,
        "channel": TEXT,
        "version": TEXT,
        "type": TEXT,
        "blob": frozenset({"bytea"}),
    },
    "checkpoint_writes": {
        "thread_id": TEXT,
        "checkpoint_ns": TEXT,
        "checkpoint_id": TEXT,
        "task_id": TEXT,
        "idx": frozenset({"integer"}),
        "channel": TEXT,
        "type": TEXT,
        "blob": frozenset({"bytea"}),
    },
    "checkpoint_migrations": {"v": frozenset({"integer"})},
}
"""The columns every layout has; `checkpoint_writes.task_path` is Python's alone."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One checkpoint table.

    Attributes:
        columns: Type by column, in order.
        primary_key: The key's columns, in order; empty where there is none.
        may_select, may_insert: Whether our role may.
        row_security: Whether row-level security hides rows from our role.
        row_estimate: The planner's estimate; None for a table that was never analysed.
    """

    columns: Mapping[str, str]
    primary_key: tuple[str, ...]
    may_select: bool
    may_insert: bool
    row_security: bool
    row_estimate: int | None


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """A store as it was found.

    Attributes:
        target: Database, host, port and user, without the password.
        server_version: For instance "16.4".
        encoding: The database's encoding.
        role: The role that statements run as.
        schema: The schema that was looked into.
        tables: The checkpoint tables found there.
        other_schemas: Other schemas with a table `checkpoints`, where this one has none.
        migrations: The migration numbers; None where they may not be read.
        kind: Who writes here, by the columns and by a sample of channel versions.
        has_task_path: Whether `checkpoint_writes` has that column.
        pooler: A hint that something stands between us and the server; None where nothing shows.
        read_only: Whether the server is a standby.
        clock_ahead_seconds: The server's clock minus ours.
        types: Serialization types in a sample of the rows, with their cipher suffix.
        encrypted: Whether one of them is encrypted.
        refusal: Why the store cannot be worked with, and what to do; None where it can.
        missing_rights: What to GRANT before a repair can write, one statement each.
    """

    target: str
    server_version: str
    encoding: str
    role: str
    schema: str
    tables: Mapping[str, TableFacts]
    other_schemas: tuple[str, ...]
    migrations: tuple[int, ...] | None
    kind: Kind
    has_task_path: bool
    pooler: str | None
    read_only: bool
    clock_ahead_seconds: float
    types: tuple[str, ...]
    encrypted: bool
    refusal: str | None
    missing_rights: tuple[str, ...]

    def rights_to_read(self) -> tuple[str, ...]:
        """What to GRANT before the store can be audited, one statement each."""
        return missing_rights(self.schema, self.role, self.tables, ("SELECT",))

    def rights_to_write(self) -> tuple[str, ...]:
        """What to GRANT besides before a repair can write, one statement each."""
        return missing_rights(self.schema, self.role, self.tables, ("INSERT",))

    def right_to_migrate(self) -> str | None:
        """What to GRANT besides before a migration can write; None where nothing is missing."""
        if self.tables["checkpoint_writes"].may_insert:
            return None
        return f"GRANT INSERT ON {_quoted(self.schema)}.checkpoint_writes TO {_quoted(self.role)};"


def refusal_of(
    schema: str,
    tables: Mapping[str, TableFacts],
    migrations: tuple[int, ...] | None,
    other_schemas: tuple[str, ...],
) -> str | None:
    """Why tables are not a checkpoint store that is understood; None where they are.

    Args:
        schema: The schema that was looked into.
        tables: The checkpoint tables found there.
        migrations: The migration numbers; None where they may not be read.
        other_schemas: Other schemas with a table `checkpoints`.

    Returns:
        One or two sentences: what is not as expected, and what to do.
    """
    missing = [name for name in TABLES if name not in tables]
    if missing:
        return _missing_tables(schema, missing, other_schemas)
    if "checkpoint_id" not in tables["checkpoints"].primary_key:
        columns = tables["checkpoints"].columns
        if "checkpoint_id" not in columns or tables["checkpoints"].primary_key:
            return (
                "The tables are a shallow saver's, which keeps one checkpoint a thread and nothing "
                "to go back to; nothing can be added behind a checkpoint. Use PostgresSaver."
            )
    for name, wanted in COLUMN_TYPES.items():
        for column, types in wanted.items():
            found = tables[name].columns.get(column)
            if found == "uuid":
                return (
                    f"The column {name}.{column} is of type uuid: these tables belong to the "
                    "LangGraph API server (langgraph-api), not to PostgresSaver, and are not "
                    "understood. Give the database of an application that uses PostgresSaver."
                )
            if found not in types:
                there = "is missing" if found is None else f"is of type {found}"
                return (
                    f"The column {name}.{column} {there}; the tables are of no layout that is "
                    "understood. See that PostgresSaver.setup() has run to its end."
                )
    for name, key in PRIMARY_KEYS.items():
        if tables[name].primary_key != key:
            return (
                f"The primary key of {name} is not ({', '.join(key)}); the tables are of no layout "
                "that is understood. Restore the key that PostgresSaver.setup() makes."
            )
    if migrations is not None and not migrations:
        return "No migration has been recorded; let PostgresSaver.setup() run to its end."
    if migrations is not None and (newest := max(migrations)) > NEWEST_MIGRATION:
        return (
            f"The tables are at migration {newest}, and {NEWEST_MIGRATION} is the last one known. "
            "Use a newer repair-service."
        )
    return None


def _missing_tables(schema: str, missing: list[str], other_schemas: tuple[str, ...]) -> str:
    names = ", ".join(missing)
    plural = "s" if len(missing) > 1 else ""
    if "checkpoints" in missing and other_schemas:
        return (
            f"There is no table {missing[0]} in the schema {schema}; the schema "
            f"{other_schemas[0]} has one. Give it with --schema."
        )
    return (
        f"The table{plural} {names} cannot be found in the schema {schema}. Check the database and "
        "--schema, and let PostgresSaver.setup() run to its end."
    )


def missing_rights(
    schema: str,
    role: str,
    tables: Mapping[str, TableFacts],
    kinds: Sequence[str] = ("SELECT", "INSERT"),
) -> tuple[str, ...]:
    """The GRANT statements that a role still needs, ready to be run by the tables' owner.

    Args:
        schema: The tables' schema.
        role: The role.
        tables: The checkpoint tables.
        kinds: The rights to look at: `SELECT` is all that an audit needs, a repair needs both.
    """
    needed = []
    for name, table in tables.items():
        lacking = {
            "SELECT": not table.may_select,
            "INSERT": name in ("checkpoints", "checkpoint_blobs") and not table.may_insert,
        }
        rights = [kind for kind in kinds if lacking[kind]]
        if rights:
            needed.append(
                f"GRANT {', '.join(rights)} ON {_quoted(schema)}.{name} TO {_quoted(role)};"
            )
    if "SELECT" in kinds and needed and not any(table.may_select for table in tables.values()):
        needed.insert(0, f"GRANT USAGE ON SCHEMA {_quoted(schema)} TO {_quoted(role)};")
    return tuple(needed)


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
