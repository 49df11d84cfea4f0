"""What tells whether a thread's rows are the same at two places, in whatever order they come."""

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from xxhash import xxh3_128_intdigest

from repair_service.transfer.tables import CopiedTable
from repair_service.transfer.wire import fields_of, jsonb, row_of, thread_of

_MODULUS = 1 << 128


class Digests:
    """A digest for each thread: the sum of its rows' hashes, and how many there are."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, int]] = {}

    def add(self, table: CopiedTable, row: bytes) -> None:
        """Take a row in."""
        thread = thread_of(row)
        total, count = self._sums.get(thread, (0, 0))
        # The same bytes in two tables are two rows.
        hashed = xxh3_128_intdigest(table.name.encode() + row)
        self._sums[thread] = (total + hashed) % _MODULUS, count + 1

    def of(self, thread: str) -> tuple[int, int]:
        """The digest of a thread: the sum, and the number of rows."""
        return self._sums.get(thread, (0, 0))

    def differing(self, other: "Digests", threads: Iterable[str]) -> frozenset[str]:
        """The threads that are not the same in both."""
        return frozenset(each for each in threads if self.of(each) != other.of(each))


def canonical(table: CopiedTable, row: bytes) -> bytes:
    """A row whose documents are written in one way, whatever wrote them.

    Postgres keeps a document as jsonb and writes it as it likes; one that comes from elsewhere is
    the same when keys, texts and numbers are.
    """
    if not table.documents_at:
        return row
    fields = fields_of(row)
    for at in table.documents_at:
        field = fields[at]
        if field is not None:
            # The first byte is jsonb's version.
            fields[at] = jsonb(_canonical(field[1:]))
    return row_of(fields)


def _canonical(document: bytes) -> bytes:
    parsed = json.loads(document, parse_float=_number, parse_int=_number)
    return json.dumps(parsed, sort_keys=True, ensure_ascii=False).encode()


def _number(text: str) -> Any:
    """A number as a text that no string of a document equals."""
    return ["number", str(Decimal(text).normalize())]
