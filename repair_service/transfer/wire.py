"""Rows in COPY's binary format, taken apart only where a value is to be encrypted.

PostgreSQL's documentation, COPY, "Binary Format": a signature, flags and an extension's length;
each row a count of fields and, for each, its length and its bytes; -1 for a length is NULL, and for
a count the end. Every type used here (text, integer, bytea, jsonb) reads the same on all servers.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END = b"\xff\xff"

_COUNT, _LENGTH = struct.Struct(">h"), struct.Struct(">i")
JSONB_VERSION = b"\x01"

Field = bytes | None


def rows_of(messages: Iterable[bytes | bytearray | memoryview]) -> Iterator[bytes]:
    """The rows of a COPY, one message each, without its beginning and its end."""
    for message in messages:
        row = bytes(message)
        if row.startswith(HEADER):
            row = row[len(HEADER) :]
        if row and row != END:
            yield row


def thread_of(row: bytes) -> str:
    """The first field of a row: the thread's id."""
    (length,) = _LENGTH.unpack_from(row, 2)
    return row[6 : 6 + length].decode()


def fields_of(row: bytes) -> list[Field]:
    """The fields of a row."""
    (count,) = _COUNT.unpack_from(row)
    fields: list[Field] = []
    at = _COUNT.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(row, at)
        at += _LENGTH.size
        fields.append(None if length < 0 else row[at : at + length])
        at += max(length, 0)
    return fields


def row_of(fields: Sequence[Field]) -> bytes:
    """A row of these fields."""
    parts = [_COUNT.pack(len(fields))]
    for field in fields:
        parts.append(_LENGTH.pack(-1 if field is None else len(field)))
        parts.append(field or b"")
    return b"".join(parts)


def integer(value: int) -> bytes:
    """A field of type integer."""
    return _LENGTH.pack(value)


def text(value: str | None) -> Field:
    """A field of type text."""
    return None if value is None else value.encode()


def jsonb(document: bytes) -> bytes:
    """A field of type jsonb, of a JSON text."""
    return JSONB_VERSION + document
