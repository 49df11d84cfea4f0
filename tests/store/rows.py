"""Rows put into a store by hand, and checkpoint ids in the order of time."""

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

_BEFORE_1970 = 0x01B21DD213814000
"""Ticks of 100 ns from the beginning of the calendar of UUIDs (1582) to 1970."""


def checkpoint_id(seconds: float) -> str:
    """The UUIDv6 of a moment, in seconds since 1970."""
    ticks = f"{_BEFORE_1970 + round(seconds * 10_000_000):015x}"
    return f"{ticks[:8]}-{ticks[8:12]}-6{ticks[12:]}-8000-000000000000"


def put_checkpoint(
    connection: "psycopg.Connection[Any]",
    thread_id: str,
    moment: str,
    *,
    namespace: str = "",
    parent: str | None = None,
    checkpoint: Any = None,
    metadata: Any = None,
) -> None:
    """One row of `checkpoints`; by default of an empty state of version 4."""
    connection.execute(
        "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id,"
        " checkpoint, metadata) VALUES (%s, %s, %s, %s, %s, %s)",
        (
            thread_id,
            namespace,
            moment,
            parent,
            Jsonb({"v": 4, "channel_versions": {}} if checkpoint is None else checkpoint),
            Jsonb({} if metadata is None else metadata),
        ),
    )


def put_blob(
    connection: "psycopg.Connection[Any]",
    thread_id: str,
    channel: str,
    version: str,
    blob: bytes | None,
    *,
    type: str = "msgpack",
    namespace: str = "",
) -> None:
    """One row of `checkpoint_blobs`."""
    connection.execute(
        "INSERT INTO checkpoint_blobs VALUES (%s, %s, %s, %s, %s, %s)",
        (thread_id, namespace, channel, version, type, blob),
    )


def put_write(
    connection: "psycopg.Connection[Any]",
    thread_id: str,
    moment: str,
    channel: str,
    blob: bytes = b"\xc0",
    **columns: Any,
) -> None:
    """One row of `checkpoint_writes`; other columns by name."""
    values: Mapping[str, Any] = {
        "thread_id": thread_id,
        "checkpoint_ns": "",
        "checkpoint_id": moment,
        "task_id": "task",
        "idx": 0,
        "channel": channel,
        "type": "msgpack",
        "blob": blob,
    } | columns
    names = ", ".join(values)
    places = ", ".join(["%s"] * len(values))
    connection.execute(
        f"INSERT INTO checkpoint_writes ({names}) VALUES ({places})", tuple(values.values())
    )
