"""Threads of a langgraph-checkpoint-sqlite store, as rows of the Postgres saver.

SQLite's saver keeps a checkpoint with all its values in one document, Postgres' keeps the values
apart, each once (langgraph/checkpoint/sqlite/__init__.py, `put`; langgraph/checkpoint/postgres/
__init__.py, `put`). A value's bytes are taken over as they are.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from repair_service.errors import StoreNotUnderstood, Unreadable, UsageError
from repair_service.store.encryption import CIPHER, decrypt, encrypt, split_type
from repair_service.store.statements import text_of
from repair_service.transfer.store import Chosen
from repair_service.transfer.tables import BLOBS, CHECKPOINTS, WRITES, CopiedTable
from repair_service.transfer.wire import Field, integer, jsonb, row_of, text

INLINE_SINCE = 4
"""From this layout on the Postgres saver leaves simple values in the document."""

_SIMPLE = (type(None), str, int, float, bool)


class SqliteSource:
    """A file of langgraph-checkpoint-sqlite, read only."""

    def __init__(self, path: Path, key: bytes | None) -> None:
        """Open the file.

        Args:
            path: The file.
            key: The key of encrypted values; None where there is none.

        Raises:
            UsageError: There is no such file.
            StoreNotUnderstood: It is no such store.
        """
        if not path.is_file():
            raise UsageError(f"There is no file {path}; give the SQLite file of the application.")
        self._key = key
        try:
            self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
            tables = {
                name: {row[1] for row in self._connection.execute(f"PRAGMA table_info({name})")}
                for name in ("checkpoints", "writes")
            }
        except sqlite3.Error as error:
            raise StoreNotUnderstood(
                f"{path} cannot be read as a SQLite database ({error}); give the file that "
                "SqliteSaver writes."
            ) from None
        if not {"thread_id", "type", "checkpoint"} <= tables["checkpoints"] or not tables["writes"]:
            raise StoreNotUnderstood(
                f"{path} has not the tables of langgraph-checkpoint-sqlite; give the file that "
                "SqliteSaver writes."
            )
        self._all_writes = text_of("sqlite_writes").format(
            task_path="task_path" if "task_path" in tables["writes"] else "''"
        )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A transaction that sees one moment of the file."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.rollback()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def next_threads(self, after: str | None, limit: int) -> list[str]:
        """The threads behind one, in the order of their bytes."""
        values = {"after": after, "limit": limit}
        found = self._connection.execute(text_of("sqlite_threads"), values)
        return [thread for (thread,) in found]

    def heads(self, threads: Sequence[str]) -> Iterator[tuple[str, str]]:
        """For each head of some threads its thread and its id."""
        yield from self._connection.execute(
            text_of("sqlite_heads"), {"threads": json.dumps(list(threads))}
        )

    def choose(self, threads: Sequence[str], *, heads_only: bool) -> Chosen:
        """All of some threads.

        Raises:
            UsageError: Only the heads are wanted, which is done from Postgres to Postgres.
        """
        if heads_only:
            raise UsageError("--heads-only copies from Postgres; a SQLite file is copied whole.")
        return Chosen(threads)

    def rows(self, table: CopiedTable, chosen: Chosen) -> Iterator[bytes]:
        """Rows of one table, as COPY would have them."""
        for thread in chosen.threads:
            if table is WRITES:
                yield from self._writes(thread)
            elif table is BLOBS:
                yield from self._blobs(thread)
            elif table is CHECKPOINTS:
                yield from self._checkpoints(thread)

    def cancel(self) -> None:
        """End the statement that runs; may be called from another thread."""
        self._connection.interrupt()

    def _writes(self, thread: str) -> Iterator[bytes]:
        with closing(self._connection.execute(self._all_writes, {"thread": thread})) as found:
            for namespace, checkpoint, task, idx, channel, kind, value, path in found:
                yield row_of(
                    [
                        *map(text, (thread, namespace, checkpoint, task)),
                        integer(idx),
                        text(channel),
                        text(kind),
                        bytes(value or b""),
                        text(path),
                    ]
                )

    def _blobs(self, thread: str) -> Iterator[bytes]:
        """Each value once: checkpoints that share a version share the value."""
        seen: set[tuple[str, str, str]] = set()
        for document in self._documents(thread):
            for channel, version, kind, value in document.values():
                if (document.namespace, channel, version) in seen:
                    continue
                seen.add((document.namespace, channel, version))
                fields = (thread, document.namespace, channel, version, kind)
                yield row_of([*map(text, fields), value])

    def _checkpoints(self, thread: str) -> Iterator[bytes]:
        for document in self._documents(thread):
            keys = (thread, document.namespace, document.id, document.parent, None)
            yield row_of([*map(text, keys), jsonb(document.plain()), jsonb(document.metadata)])

    def _documents(self, thread: str) -> Iterator["_Document"]:
        with closing(
            self._connection.execute(text_of("sqlite_checkpoints"), {"thread": thread})
        ) as found:
            for namespace, checkpoint, parent, kind, value, metadata in found:
                encoding, cipher = split_type(kind)
                plain, problem = bytes(value), None
                if cipher is not None:
                    plain, problem = decrypt(cipher, plain, self._key)
                if problem is not None:
                    raise Unreadable(f"The checkpoint {checkpoint} cannot be read: {problem}.")
                seal = self._key if cipher is not None else None
                yield _Document(
                    namespace, checkpoint, parent, encoding, plain, bytes(metadata or b"{}"), seal
                )


class _Document:
    """One checkpoint of a SQLite store, its values kept as the bytes they are."""

    def __init__(
        self,
        namespace: str,
        checkpoint: str,
        parent: str | None,
        encoding: str,
        document: bytes,
        metadata: bytes,
        seal: bytes | None,
    ) -> None:
        self.namespace = namespace
        self.id = checkpoint
        self.parent = parent
        self.metadata = metadata
        self._encoding = encoding
        self._seal = seal
        self._decode: Any = msgspec.msgpack.decode if encoding == "msgpack" else msgspec.json.decode
        if encoding not in ("msgpack", "json"):
            raise Unreadable(
                f"The checkpoint {checkpoint} is of type {encoding or 'none'}; only msgpack and "
                "json are read, and nothing is unpickled."
            )
        try:
            parts: dict[str, Raw] = self._decode(document, type=dict[str, Raw])
            self._values: dict[str, Raw] = self._part(parts.pop("channel_values", None))
            parts.pop("pending_sends", None)
            self._rest: dict[str, Any] = {name: self._decode(part) for name, part in parts.items()}
            if b"\\u0000" in self.metadata or "\\u0000" in json.dumps(self._rest):
                raise Unreadable(
                    f"The checkpoint {checkpoint} holds a NUL character in its document, and "
                    "Postgres keeps none."
                )
        except (msgspec.DecodeError, RecursionError, TypeError, ValueError):
            raise Unreadable(
                f"The checkpoint {checkpoint} cannot be read as a checkpoint of LangGraph."
            ) from None

    def _part(self, raw: Raw | None) -> dict[str, Raw]:
        return {} if raw is None else self._decode(raw, type=dict[str, Raw])

    @property
    def _versions(self) -> Mapping[str, Any]:
        versions = self._rest.get("channel_versions")
        return versions if isinstance(versions, dict) else {}

    def _split(self) -> tuple[dict[str, Any], dict[str, Raw]]:
        """The values that the Postgres saver leaves in the document, and those it keeps apart."""
        inline: dict[str, Any] = {}
        apart: dict[str, Raw] = {}
        layout = self._rest.get("v")
        simple = isinstance(layout, int) and layout >= INLINE_SINCE
        for channel, raw in self._values.items():
            value = self._decode(raw) if _begins_simple(self._encoding, bytes(raw)) else ...
            if simple and isinstance(value, _SIMPLE):
                inline[channel] = value
            else:
                apart[channel] = raw
                if _is_snapshot(self._encoding, bytes(raw)):
                    inline[channel] = True
        return inline, apart

    def values(self) -> Iterator[tuple[str, str, str, Field]]:
        """Its values as blobs: channel, version, type, bytes."""
        for channel, raw in self._split()[1].items():
            version = self._versions.get(channel)
            if version is None:
                continue
            kind, value = self._encoding, bytes(raw)
            if self._seal is not None:
                kind, value = f"{kind}+{CIPHER}", encrypt(CIPHER, value, self._seal)
            yield channel, str(version), kind, value

    def plain(self) -> bytes:
        """The document as Postgres keeps it."""
        document = {**self._rest, "channel_values": self._split()[0]}
        return json.dumps(document, ensure_ascii=False).encode()


def _begins_simple(encoding: str, raw: bytes) -> bool:
    """Whether a value can be a text, a number, a truth value or nothing."""
    if encoding == "json":
        return raw[:1] not in (b"{", b"[")
    code = raw[0]
    return code <= 0x7F or 0xA0 <= code <= 0xBF or code in _SIMPLE_CODES or code >= 0xE0


_SIMPLE_CODES = frozenset({0xC0, 0xC2, 0xC3, *range(0xCA, 0xD4), 0xD9, 0xDA, 0xDB})
"""msgpack: nil, false, true, floats, integers, texts."""


def _is_snapshot(encoding: str, raw: bytes) -> bool:
    """Whether a value is a delta channel's whole value: the extension 7 of jsonplus."""
    if encoding != "msgpack":
        return False
    at = {0xC7: 2, 0xC8: 3, 0xC9: 5, **dict.fromkeys(range(0xD4, 0xD9), 1)}.get(raw[0])
    return at is not None and raw[at : at + 1] == b"\x07"
