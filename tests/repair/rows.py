"""Real rows of the corpus, and ways to damage them that no program knows.

A damaged thread stands for what a disk, a hand or another release may leave behind: parts of the
documents are replaced, bytes are changed, rows are dropped, doubled and renamed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from random import Random
from typing import Any

import msgspec

from repair_service.checkpoint.quick import is_plain
from repair_service.checkpoint.rows import (
    BlobRow,
    CheckpointRow,
    HeadRows,
    ScannedHead,
    ThreadRows,
    WriteRow,
)
from repair_service.store.gateway import Store
from tests.conftest import Server
from tests.corpus import loader

WORDS = (
    "",
    "\x00",
    "messages",
    "__root__",
    "__start__",
    "__pregel_tasks",
    "__interrupt__",
    "__resume__",
    "__error__",
    "branch:to:model",
    "branch:to:tools",
    "join:a+b:tools",
    "start:agent",
    "tools",
    "00000000-0000-0000-0000-000000000000",
    "00000000000000000000000000000009.0.5",
    "1f1ecfe3-cfd4-628b-8003-544fedb14bd2",
    "\N{SNOWMAN}" * 3,
    "9" * 400,
)
TYPES = ("msgpack", "json", "null", "empty", "bytes", "bytearray", "pickle", "", "msgpack+x", "x")
BYTES = (
    b"",
    b"\xc0",
    b"\x80",
    b"\x90",
    b"[]",
    b"{}",
    b"null",
    b"\xc1",
    b"\x91" * 2000,
    b"[" * 2000,
    b"\xdd\xff\xff\xff\xff",
    b"\xc7\x05\x07\x91\x81\xa4type\xa2ai",
    b"\x92\x90\xc3",
    b"\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00",
)


def scanned(rows: HeadRows) -> ScannedHead:
    """A head as a scan of the store meets it."""
    row = rows.row
    checkpoint, metadata = (
        msgspec.json.encode(each).decode() for each in (row.checkpoint, row.metadata)
    )
    return ScannedHead(
        row.thread_id,
        row.checkpoint_ns,
        row.checkpoint_id,
        row.parent_checkpoint_id,
        checkpoint,
        metadata,
        is_plain(checkpoint, metadata, row.checkpoint_id),
        dict(rows.blobs),
        rows.writes,
        rows.parent_writes,
    )


def load_threads(server: Server) -> list[ThreadRows]:
    """Every thread of the corpus, with its history."""
    threads: list[ThreadRows] = []
    with ExitStack() as names:
        for version in loader.VERSIONS:

            def fill(connection: Any, version: str = version) -> None:
                loader.load(connection, version)

            database = server.fresh(version, fill, names)
            with Store.connect(database.url, schema=database.schema) as store:
                ids = [each.thread_id for each in loader.expected() if each.version == version]
                threads.extend(store.threads(ids).values())
    return threads


def size_of(thread: ThreadRows) -> int:
    """The bytes of a thread's values, and the length of its documents in text."""
    rows = [*thread.heads.values(), *(row for chain in thread.ancestors.values() for row in chain)]
    return sum(
        len(repr(row.row))
        + sum(len(blob.blob or b"") for blob in row.blobs.values())
        + sum(len(write.blob) for write in (*row.writes, *row.parent_writes))
        for row in rows
    )


def damaged(thread: ThreadRows, random: Random) -> ThreadRows:
    """The same thread, damaged in one place."""
    namespace = random.choice(list(thread.heads))
    chain = thread.ancestors.get(namespace, ())
    if random.random() < 0.1:
        return _other_thread(thread, namespace, random)
    if chain and random.random() < 0.3:
        place = random.randrange(len(chain))
        rows = list(chain)
        rows[place : place + 1] = _damaged_chain(rows[place], random)
        return replace(thread, ancestors={**thread.ancestors, namespace: tuple(rows)})
    head = _damaged_rows(thread.heads[namespace], random)
    return replace(thread, heads={**thread.heads, namespace: head})


def _other_thread(thread: ThreadRows, namespace: str, random: Random) -> ThreadRows:
    heads, ancestors = dict(thread.heads), dict(thread.ancestors)
    kind = random.randrange(4)
    if kind == 0 and len(heads) > 1:
        del heads[random.choice(list(heads))]
    elif kind == 1:
        ancestors.pop(namespace, None)
    elif kind == 2:
        return replace(thread, pruned=frozenset(heads))
    else:
        name = random.choice(["tools:x", "|", ":", f"{namespace}|deep:1", namespace + ":", "a:b:c"])
        head = heads[namespace]
        heads[name] = replace(head, row=replace(head.row, checkpoint_ns=name))
    return replace(thread, heads=heads, ancestors=ancestors)


def _damaged_chain(rows: HeadRows, random: Random) -> list[HeadRows]:
    if random.random() < 0.2:
        return random.choice([[], [rows, rows]])
    return [_damaged_rows(rows, random)]


def _damaged_rows(rows: HeadRows, random: Random) -> HeadRows:
    kind = random.randrange(8)
    if kind <= 1:
        return replace(rows, row=_damaged_row(rows.row, random))
    if kind <= 4 and rows.blobs:
        channel = random.choice(list(rows.blobs))
        blobs = dict(rows.blobs)
        blob = _damaged_blob(blobs.pop(channel), random)
        if blob is not None:
            blobs[random.choice([channel, channel, blob.channel])] = blob
        return replace(rows, blobs=blobs)
    if rows.writes and random.random() < 0.8:
        return replace(rows, writes=_damaged_writes(rows.writes, random))
    return replace(rows, parent_writes=_damaged_writes(rows.parent_writes or rows.writes, random))


def _damaged_row(row: CheckpointRow, random: Random) -> CheckpointRow:
    kind = random.randrange(10)
    if kind < 6:
        return replace(row, checkpoint=_damaged_value(row.checkpoint, random))
    if kind < 8:
        return replace(row, metadata=_damaged_value(row.metadata, random))
    if kind == 8:
        return replace(row, parent_checkpoint_id=random.choice([None, *WORDS]))
    name = random.choice(WORDS)
    return replace(row, checkpoint_id=name, checkpoint={**_mapping(row.checkpoint), "id": name})


def _damaged_blob(blob: BlobRow, random: Random) -> BlobRow | None:
    kind = random.randrange(6)
    if kind == 0:
        return None
    if kind == 1:
        return replace(blob, type=random.choice(TYPES))
    if kind == 2:
        return replace(blob, blob=None)
    if kind == 3:
        return replace(blob, problem="it is encrypted", cipher="aes")
    if kind == 4:
        return replace(blob, channel=random.choice(WORDS))
    return replace(blob, blob=_damaged_bytes(blob.blob or b"", random))


def _damaged_writes(writes: Sequence[WriteRow], random: Random) -> tuple[WriteRow, ...]:
    if not writes:
        return ()
    place = random.randrange(len(writes))
    write = writes[place]
    changes: list[Callable[[], Mapping[str, Any]]] = [
        lambda: {"type": random.choice(TYPES)},
        lambda: {"channel": random.choice([*WORDS, *(each.channel for each in writes)])},
        lambda: {"task_id": random.choice([*WORDS, *(each.task_id for each in writes)])},
        lambda: {"task_path": random.choice([*WORDS, "~__pregel_pull, tools", "~~0, x"])},
        lambda: {"idx": random.choice([-4, -3, -1, 0, 1, 2**31 - 1])},
        lambda: {"problem": "it is encrypted", "cipher": "aes"},
        lambda: {"blob": _damaged_bytes(write.blob, random)},
        lambda: {"blob": _damaged_bytes(write.blob, random)},
    ]
    kind = random.randrange(len(changes) + 2)
    if kind == len(changes):
        return (*writes[:place], *writes[place + 1 :])
    if kind > len(changes):
        return (*writes, replace(write, idx=write.idx + 1))
    return (*writes[:place], replace(write, **changes[kind]()), *writes[place + 1 :])


def _damaged_bytes(data: bytes, random: Random) -> bytes:
    if random.random() < 0.1:
        return random.choice(BYTES)
    at, width = random.randrange(len(data) + 1), random.randrange(5)
    piece = random.choice([random.randbytes(random.randrange(4)), random.choice(BYTES)])
    return data[:at] + piece + data[at + width :]


def _damaged_value(value: Any, random: Random) -> Any:
    """A JSON value with one place in it replaced, left out or added."""
    if isinstance(value, dict) and value and random.random() < 0.93:
        key = random.choice(list(value))
        kind = random.random()
        if kind < 0.1:
            return {name: each for name, each in value.items() if name != key}
        if kind < 0.2:
            return {**value, random.choice(WORDS): _any_value(random)}
        return {**value, key: _damaged_value(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.8:
        place = random.randrange(len(value))
        return [*value[:place], _damaged_value(value[place], random), *value[place + 1 :]]
    return _any_value(random)


def _any_value(random: Random) -> Any:
    return random.choice(
        [
            None,
            True,
            False,
            0,
            -1,
            2.5,
            10**400,
            -1e308,
            [],
            {},
            [None],
            {"": None},
            [[1, 2]],
            {"messages": [0, 1]},
            random.choice(WORDS),
            random.choice(WORDS),
        ]
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
