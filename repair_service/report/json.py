"""A run as one JSON document."""

import shutil
import tempfile
from typing import IO

import msgspec

from repair_service.repair.diagnosis import Diagnosis
from repair_service.report.document import SCHEMA_VERSION, Ending
from repair_service.report.items import Item, item_of

IN_MEMORY = 4 * 1024 * 1024
"""Bytes of items kept in memory; a run over a large store goes on in a temporary file."""


class JsonReport:
    """Writes the document at the end, since the totals stand before the items."""

    def __init__(self, out: IO[str], *, in_memory: int = IN_MEMORY) -> None:
        """Prepare a document.

        Args:
            out: Where it is written to.
            in_memory: Bytes of items kept in memory; 0 for all of them.
        """
        self._out = out
        self._encoder = msgspec.json.Encoder()
        self._items = tempfile.SpooledTemporaryFile(  # noqa: SIM115  # open until the end
            max_size=in_memory if _has_place_for_files() else 0,
            mode="w+",
            encoding="utf-8",
            newline="",
        )
        self._count = 0

    def add(self, diagnosis: Diagnosis) -> None:
        """Keep one item until the end."""
        self.add_item(item_of(diagnosis))

    def add_item(self, item: Item) -> None:
        """Keep one item that is made already."""
        separator = ",\n    " if self._count else "\n    "
        self._items.write(separator + self._text(item))
        self._count += 1

    def end(self, ending: Ending) -> None:
        """Write the whole document."""
        out = self._out
        out.write(f'{{\n  "schema_version": {SCHEMA_VERSION},\n')
        out.write(f'  "run": {self._text(ending.run)},\n')
        out.write(f'  "totals": {self._text(ending.totals)},\n')
        out.write('  "items": [')
        with self._items as items:
            items.seek(0)
            shutil.copyfileobj(items, out)
        out.write("\n  ],\n" if self._count else "],\n")
        out.write(f'  "exit_code": {self._text(ending.exit_code)},\n')
        out.write(f'  "next_command": {self._text(ending.next_command)}\n}}\n')
        out.flush()

    def _text(self, value: object) -> str:
        return self._encoder.encode(value).decode()


def _has_place_for_files() -> bool:
    """Whether a temporary file can be made: where the whole file system is read-only none can."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return False
    return True
