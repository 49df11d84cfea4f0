"""A run as JSON lines: each item as it comes, and the summary as the last line."""

from typing import IO

import msgspec

from repair_service.repair.diagnosis import Diagnosis
from repair_service.report.document import SCHEMA_VERSION, Ending, RunItem, TotalsItem
from repair_service.report.items import Item, item_of


class Summary(msgspec.Struct, frozen=True):
    """The last line: the document without its items."""

    schema_version: int
    run: RunItem
    totals: TotalsItem
    exit_code: int | None
    next_command: str | None


class JsonLinesReport:
    """Writes each item at once, and keeps none."""

    def __init__(self, out: IO[str]) -> None:
        """Prepare the lines.

        Args:
            out: Where they are written to; flushed after each line, so that a reader at the other
                end of a pipe sees a head when it was judged.
        """
        self._out = out
        self._encoder = msgspec.json.Encoder()

    def add(self, diagnosis: Diagnosis) -> None:
        """Write one item."""
        self.add_item(item_of(diagnosis))

    def add_item(self, item: Item) -> None:
        """Write one item that is made already."""
        self._line(item)

    def end(self, ending: Ending) -> None:
        """Write the summary."""
        self._line(
            Summary(
                SCHEMA_VERSION, ending.run, ending.totals, ending.exit_code, ending.next_command
            )
        )

    def _line(self, value: object) -> None:
        self._out.write(self._encoder.encode(value).decode() + "\n")
        self._out.flush()
