"""The answer of `migrate copy`."""

from collections.abc import Mapping
from typing import IO, Any

from repair_service.report.answer import Lines, write_document
from repair_service.report.document import SCHEMA_VERSION
from repair_service.transfer.copy import CopyTotals
from repair_service.transfer.lane import DIFFERENT, Fate

LEFT = frozenset({Fate.DIFFERS, Fate.UNREADABLE})
"""Threads that are not in the other store as they are in this one."""


class CopyReport:
    """Says what was left as it comes, and the totals at the end.

    Attributes:
        left: How many threads were left.
    """

    def __init__(self, out: IO[str], *, as_json: bool, dry_run: bool) -> None:
        """Nothing is written yet.

        Args:
            out: Where it goes.
            as_json: Whether it is for programs.
            dry_run: Whether nothing is written to the other store.
        """
        self.left = 0
        self._json = as_json
        self._out = out
        self._lines = Lines(out)
        self._dry_run = dry_run
        self._items: list[Mapping[str, Any]] = []

    def add(self, thread: str, fate: Fate, reason: str) -> None:
        """Say what became of a thread, where it was left."""
        if fate not in LEFT:
            return
        self.left += 1
        if self._json:
            self._items.append({"thread_id": thread, "fate": fate.value, "reason": reason})
        else:
            self._lines.line(f"{fate.value}  {thread}")
            if fate is Fate.UNREADABLE:
                self._lines.wrapped(reason, indent=4)

    def end(self, totals: CopyTotals, code: int) -> None:
        """Say the totals."""
        counts = {fate.value: totals.threads[fate] for fate in Fate}
        if self._json:
            sizes = {"rows": totals.rows, "bytes": totals.bytes}
            write_document(
                self._out,
                {
                    "schema_version": SCHEMA_VERSION,
                    "dry_run": self._dry_run,
                    "totals": {"threads": totals.threads.total(), **counts, **sizes},
                    "items": self._items,
                    "exit_code": code,
                },
            )
            return
        copied = "would be copied" if self._dry_run else "copied"
        size = "" if self._dry_run else f" ({totals.rows:,} rows, {totals.bytes / 1e6:,.1f} MB)"
        said = [f"{counts['copied']:,} {copied}{size}", f"{counts['same']:,} there already"]
        said += [f"{counts[fate]:,} {fate.value}" for fate in Fate if fate in LEFT and counts[fate]]
        self._lines.wrapped(f"Threads: {', '.join(said)}.")
        if counts[Fate.DIFFERS]:
            self._lines.wrapped(f"Of those that differ nothing was written: {DIFFERENT}.")
