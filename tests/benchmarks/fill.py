"""Stores of any size, filled in a minute: the rows of real conversations, many times over.

`python -m tests.benchmarks.fill --threads 20000 --database-url URL` fills an empty database.
"""

import argparse
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tests.benchmarks.program import converse, make_graph

SAMPLES = 20
"""Different conversations that the threads are copies of."""

EARLIER = "earlier"
"""The conversation that longer threads have before their own, again and again."""

CHECKPOINTS = 15
"""Checkpoints of one conversation."""

TICK = 10_000_000
"""UUIDv6 ticks in a second."""

COLUMNS = {
    "checkpoints": (
        "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"
    ),
    "checkpoint_blobs": "checkpoint_ns, channel, version, type, blob",
    "checkpoint_writes": (
        "checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path"
    ),
}
"""The columns that a copy of a thread takes over. Ids of checkpoints are unique in a thread, so
they stay, and with them the ids of tasks, which are hashes of where they stand."""


SHIFTED = (
    "lpad((split_part(version, '.', 1)::integer + %s)::text, 32, '0') || '.' ||"
    " split_part(version, '.', 2)"
)
"""A blob's version with another integer part."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What to fill a store with.

    Attributes:
        threads: How many threads.
        checkpoints: Checkpoints of each: a multiple of CHECKPOINTS. The later ones of a longer
            thread are those of a shorter one, so that both have the same heads.
        damaged: The share of threads that are left as a crash in a tool leaves them.
    """

    threads: int
    checkpoints: int = CHECKPOINTS
    damaged: float = 0.01


def fill(url: str, shape: Shape) -> None:
    """Fill an empty database; its statistics and its visibility map are up to date then.

    Args:
        url: Its address.
        shape: With what.
    """
    from langgraph.checkpoint.postgres import PostgresSaver

    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        PostgresSaver(connection).setup()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS sample CASCADE; CREATE SCHEMA sample")
        for table in COLUMNS:
            connection.execute(f"CREATE TABLE sample.{table} (LIKE {table} INCLUDING ALL)")
        _write_samples(url)
        for kind in range(SAMPLES):
            _cut(connection, f"sample-{kind}", f"damaged-{kind}")
            for thread_id in (f"sample-{kind}", f"damaged-{kind}"):
                _lengthen(connection, thread_id, shape.checkpoints // CHECKPOINTS)
        with _without_indexes(connection):
            _multiply(connection, shape)
        connection.execute("DROP SCHEMA sample CASCADE")
        for table in COLUMNS:
            connection.execute(f"VACUUM ANALYZE {table}")


@contextmanager
def _without_indexes(connection: "psycopg.Connection[Any]") -> Iterator[None]:
    """Take the indexes away while much is inserted, and make the same ones again behind it."""
    indexes = connection.execute(
        "SELECT indexrelid::regclass::text, indrelid::regclass::text, indisprimary,"
        " pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = ANY(%s::regclass[])",
        [list(COLUMNS)],
    ).fetchall()
    for name, table, primary, _ in indexes:
        connection.execute(
            f"ALTER TABLE {table} DROP CONSTRAINT {name}" if primary else f"DROP INDEX {name}"
        )
    yield
    connection.execute("SET maintenance_work_mem = '512MB'")
    for name, table, primary, definition in indexes:
        connection.execute(definition)
        if primary:
            connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY USING INDEX {name}")


def _write_samples(url: str) -> None:
    """Let the agent talk into the tables of samples."""
    from langgraph.checkpoint.postgres import PostgresSaver

    with psycopg.connect(
        url, autocommit=True, row_factory=dict_row, options="-c search_path=sample"
    ) as connection:
        graph = make_graph(PostgresSaver(connection))
        for thread_id in (*(f"sample-{kind}" for kind in range(SAMPLES)), EARLIER):
            converse(graph, thread_id)


def _lengthen(connection: "psycopg.Connection[Any]", thread_id: str, times: int) -> None:
    """Put earlier conversations before a sample's own.

    The versions of its channels go up, so that every earlier checkpoint keeps values of its own.
    """
    if times < 2:
        return
    own_rows, rows = (
        connection.execute(
            "SELECT checkpoint_id, parent_checkpoint_id, checkpoint, metadata"
            " FROM sample.checkpoints WHERE thread_id = %s ORDER BY checkpoint_id",
            [name],
        ).fetchall()
        for name in (thread_id, EARLIER)
    )
    step = max(_integers(row[2]) for row in rows)
    own = (times - 1) * step
    connection.execute(
        f"UPDATE sample.checkpoint_blobs SET version = {SHIFTED} WHERE thread_id = %s",
        [own, thread_id],
    )
    for identifier, _, document, _ in own_rows:
        connection.execute(
            "UPDATE sample.checkpoints SET checkpoint = %s"
            " WHERE thread_id = %s AND checkpoint_id = %s",
            [Jsonb(_shifted_versions(document, own)), thread_id, identifier],
        )
    last_id: str | None = None
    for round_ in range(times - 1):
        ticks = (round_ + 1 - times) * 3600 * TICK
        for identifier, parent, document, metadata in rows:
            parent_id = last_id if parent is None else _shifted_id(parent, ticks)
            last_id = _shifted_id(identifier, ticks)
            copied = _shifted_versions(document, round_ * step) | {"id": last_id}
            connection.execute(
                "INSERT INTO sample.checkpoints (thread_id, checkpoint_ns, checkpoint_id,"
                " parent_checkpoint_id, checkpoint, metadata) VALUES (%s, '', %s, %s, %s, %s)",
                [thread_id, last_id, parent_id, Jsonb(copied), Jsonb(metadata)],
            )
            connection.execute(
                "INSERT INTO sample.checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id,"
                " task_id, idx, channel, type, blob, task_path)"
                " SELECT %s, checkpoint_ns, %s, task_id, idx, channel, type, blob, task_path"
                " FROM sample.checkpoint_writes WHERE thread_id = %s AND checkpoint_id = %s",
                [thread_id, last_id, EARLIER, identifier],
            )
        connection.execute(
            "INSERT INTO sample.checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type,"
            f" blob) SELECT %s, checkpoint_ns, channel, {SHIFTED}, type, blob"
            " FROM sample.checkpoint_blobs WHERE thread_id = %s",
            [thread_id, round_ * step, EARLIER],
        )
    connection.execute(
        "UPDATE sample.checkpoints SET parent_checkpoint_id = %s"
        " WHERE thread_id = %s AND checkpoint_id = %s",
        [last_id, thread_id, own_rows[0][0]],
    )


def _cut(connection: "psycopg.Connection[Any]", thread_id: str, cut_id: str) -> None:
    """Copy a sample as a process leaves it that dies in the second tool of the last turn."""
    for table, columns in COLUMNS.items():
        connection.execute(
            f"INSERT INTO sample.{table} (thread_id, {columns})"
            f" SELECT %s, {columns} FROM sample.{table} WHERE thread_id = %s",
            [cut_id, thread_id],
        )
    row = connection.execute(
        "SELECT checkpoint_id, checkpoint FROM sample.checkpoints WHERE thread_id = %s"
        " ORDER BY checkpoint_id DESC OFFSET 2 LIMIT 1",
        [cut_id],
    ).fetchone()
    assert row is not None
    head, greatest = row[0], _integers(row[1])
    connection.execute(
        "DELETE FROM sample.checkpoints WHERE thread_id = %s AND checkpoint_id > %s",
        [cut_id, head],
    )
    connection.execute(
        "DELETE FROM sample.checkpoint_blobs WHERE thread_id = %s"
        " AND split_part(version, '.', 1)::integer > %s",
        [cut_id, greatest],
    )
    connection.execute(
        "DELETE FROM sample.checkpoint_writes WHERE thread_id = %s AND (checkpoint_id > %s"
        " OR (checkpoint_id = %s AND task_path LIKE '~__pregel_push, 0000000001%%'))",
        [cut_id, head, head],
    )


def _multiply(connection: "psycopg.Connection[Any]", shape: Shape) -> None:
    """Copy the samples to as many threads as are asked for, spread evenly over the ids."""
    every = round(1 / shape.damaged) if shape.damaged else 0
    connection.execute(
        "CREATE TABLE sample.threads AS SELECT md5('thread ' || number)::uuid::text AS thread_id,"
        " CASE WHEN number %% greatest(%(every)s, 1) < sign(%(every)s)"
        " THEN 'damaged-' || number / greatest(%(every)s, 1) %% %(samples)s"
        " ELSE 'sample-' || number %% %(samples)s END AS sample"
        " FROM generate_series(1, %(threads)s) AS number",
        {"every": every, "samples": SAMPLES, "threads": shape.threads},
    )
    for table, columns in COLUMNS.items():
        # What is put into a table that the same transaction emptied goes past the WAL where
        # wal_level is minimal, and is there after a crash for all that.
        with connection.transaction():
            connection.execute(f"TRUNCATE {table}")
            # By thread, so that the rows of a thread lie together as they do in a store.
            connection.execute(
                f"INSERT INTO {table} (thread_id, {columns})"
                f" SELECT threads.thread_id, {columns} FROM sample.threads CROSS JOIN LATERAL ("
                f"SELECT {columns} FROM sample.{table} AS s WHERE s.thread_id = threads.sample"
                " OFFSET 0) AS copied"
            )


def _integers(document: dict[str, Any]) -> int:
    """The greatest integer part among a checkpoint's channel versions."""
    return max(int(version.split(".")[0]) for version in document["channel_versions"].values())


def _shifted_versions(document: dict[str, Any], shift: int) -> dict[str, Any]:
    def shifted(versions: dict[str, str]) -> dict[str, str]:
        return {
            channel: f"{int(version.split('.')[0]) + shift:032}.{version.split('.')[1]}"
            for channel, version in versions.items()
        }

    seen = {node: shifted(versions) for node, versions in document["versions_seen"].items()}
    return document | {
        "channel_versions": shifted(document["channel_versions"]),
        "versions_seen": seen,
    }


def _shifted_id(identifier: str, ticks: int) -> str:
    """A UUIDv6 so many ticks later."""
    value = uuid.UUID(identifier).int
    high, low = value >> 80, (value >> 64) & 0xFFF
    time_ = ((high << 12) | low) + ticks
    rest = value & ((1 << 64) - 1)
    return str(uuid.UUID(int=((time_ >> 12) << 80) | (6 << 76) | ((time_ & 0xFFF) << 64) | rest))


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database-url", required=True)
    parser.add_argument("--threads", type=int, default=1_000)
    parser.add_argument("--checkpoints", type=int, default=CHECKPOINTS)
    arguments = parser.parse_args()
    began = time.monotonic()
    fill(arguments.database_url, Shape(arguments.threads, arguments.checkpoints))
    print(json.dumps({"threads": arguments.threads, "seconds": round(time.monotonic() - began)}))


if __name__ == "__main__":
    _main()
