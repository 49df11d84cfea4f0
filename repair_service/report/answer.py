"""Short answers: a JSON document at once, or some lines at 80 columns."""

import textwrap
from typing import IO

import msgspec
from rich.console import Console
from rich.text import Text

NARROWEST, WIDEST = 60, 120


def write_document(out: IO[str], document: object) -> None:
    """Write one JSON document for programs, indented for people."""
    out.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


class Lines:
    """Writes lines for people: wrapped, and in colour on a terminal."""

    def __init__(self, out: IO[str]) -> None:
        """Nothing is written yet.

        Args:
            out: Where they are written to; in colour when that is a terminal (and NO_COLOR is
                unset).
        """
        self._console = Console(file=out, highlight=False, markup=False, emoji=False)
        self._width = min(max(self._console.width, NARROWEST), WIDEST)

    def line(self, text: str, style: str = "") -> None:
        """Write one line as it is: a name in it can be copied."""
        self._console.print(Text(text, style), soft_wrap=True)

    def wrapped(self, text: str, indent: int = 0) -> None:
        """Write a text over as many lines as it needs."""
        margin = " " * indent
        for line in textwrap.wrap(
            text,
            width=self._width,
            initial_indent=margin,
            subsequent_indent=margin,
            break_long_words=False,
            break_on_hyphens=False,
        ):
            self.line(line)

    def next(self, command: str | None) -> None:
        """Write what to type next, where there is something."""
        if command:
            self._console.print(Text("Next: ", style="bold") + Text(command), soft_wrap=True)
