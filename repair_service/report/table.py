"""A run for people: a few lines a head, readable at 80 columns, and the totals."""

import textwrap
from collections import Counter
from typing import IO

from rich.console import Console
from rich.text import Text

from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Fault, Verdict
from repair_service.report.document import Ending

NARROWEST = 60
WIDEST = 120
"""Longer lines are hard to read; a wider terminal is left empty."""

VERDICT_WIDTH = 12

STYLES = {
    Verdict.REPAIRABLE: "yellow",
    Verdict.REPAIRED: "green",
    Verdict.MANUAL: "magenta",
    Verdict.UNREADABLE: "red",
    Verdict.FAILED: "bold red",
}


class TableReport:
    """Writes each head at once: its verdict, its name, its faults, and what becomes of it."""

    def __init__(self, out: IO[str]) -> None:
        """Prepare the table.

        Args:
            out: Where it is written to; in colour when that is a terminal (and NO_COLOR is unset).
        """
        self._console = Console(file=out, highlight=False, markup=False, emoji=False)
        self._width = min(max(self._console.width, NARROWEST), WIDEST)
        self._heads = 0

    def add(self, diagnosis: Diagnosis) -> None:
        """Write one head."""
        if not self._heads:
            self._line(Text(f"{'VERDICT':<{VERDICT_WIDTH}}THREAD", style="bold"))
        self._heads += 1
        label = Text(
            f"{diagnosis.verdict.value:<{VERDICT_WIDTH}}", STYLES.get(diagnosis.verdict, "")
        )
        self._line(label + Text(printable(diagnosis.thread_id)))
        if diagnosis.checkpoint_ns:
            self._indented(f"namespace {printable(diagnosis.checkpoint_ns)}")
        if diagnosis.faults:
            self._indented(said_faults(diagnosis.faults))
        if done := said_patch(diagnosis):
            if not diagnosis.faults:
                self._indented(printable(diagnosis.reason))
            self._indented(done)
        elif diagnosis.reason:
            self._indented(printable(diagnosis.reason))

    def end(self, ending: Ending) -> None:
        """Write the totals and what to type next."""
        if self._heads:
            self._line(Text())
        totals = ending.totals
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in totals.verdicts.items())
        self._wrapped(
            f"{_count(totals.threads, 'thread')}, {_count(totals.heads, 'head')}"
            + (f": {verdicts}." if verdicts else ".")
        )
        if since := ending.run.options.get("incremental_since"):
            self._wrapped(
                f"Incremental: the heads that changed since {since}, and what was not final then."
            )
        if run := ending.run.options.get("goes_on_from"):
            self._wrapped(f"It went on from run {run}, which reported the first part.")
        if totals.faults:
            faults = ", ".join(f"{count} {kind}" for kind, count in totals.faults.items())
            self._wrapped(f"Faults: {faults}.")
        if written := said_results(totals.salvaged, totals.placeholders):
            tense = "Written" if totals.verdicts.get(Verdict.REPAIRED.value) else "To write"
            self._wrapped(f"{tense}: {written}.")
        if totals.throttled_seconds >= 1:
            self._wrapped(f"Waited {totals.throttled_seconds:.0f} s for a quieter server.")
        if ending.next_command:
            self._line(Text("Next: ", style="bold") + Text(ending.next_command))

    def _indented(self, text: str) -> None:
        indent = " " * VERDICT_WIDTH
        self._wrapped(text, indent)

    def _wrapped(self, text: str, indent: str = "") -> None:
        lines = textwrap.wrap(
            text,
            width=self._width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines:
            self._line(Text(line))

    def _line(self, text: Text) -> None:
        # A name longer than the line is not cut, so that it can be copied.
        self._console.print(text, soft_wrap=True)


def said_faults(faults: tuple[Fault, ...]) -> str:
    """The faults in short, by kind and tool: `2 unanswered_call (search, slow)`."""
    kinds: Counter[str] = Counter(fault.kind.value for fault in faults)
    said = []
    for kind, count in kinds.items():
        tools = sorted(
            {fault.tool_name for fault in faults if fault.kind == kind} - {None}, key=str
        )
        named = f" ({', '.join(printable(str(tool)) for tool in tools)})" if tools else ""
        said.append(f"{count} {kind}{named}")
    return ", ".join(said)


def said_patch(diagnosis: Diagnosis) -> str:
    """What is, or was, written behind a head; empty where nothing is."""
    if diagnosis.verdict not in (Verdict.REPAIRABLE, Verdict.REPAIRED):
        return ""
    mends = Counter(fault.mend for fault in diagnosis.faults)
    parts = [
        said_results(mends["salvage"], mends["placeholder"]),
        _count(mends["move"], "result moved", "results moved") if mends["move"] else "",
        _count(mends["remove"], "result removed", "results removed") if mends["remove"] else "",
        said_resume(diagnosis),
    ]
    return "; ".join(part for part in parts if part)


def said_results(salvaged: int, placeholders: int) -> str:
    """How many results are put in, and of which kind; empty for none."""
    parts = [
        _count(salvaged, "salvaged result") if salvaged else "",
        _count(placeholders, "placeholder") if placeholders else "",
    ]
    return ", ".join(part for part in parts if part)


def said_resume(diagnosis: Diagnosis) -> str:
    """Where the thread goes on behind the patch."""
    if diagnosis.resume == "continue":
        route = ", ".join(printable(node) for node in diagnosis.route) or "its end"
        source = f" ({diagnosis.route_source})" if diagnosis.route_source else ""
        return f"goes on at {route}{source}"
    if diagnosis.resume == "park":
        return "parked: ready for a new message"
    if diagnosis.resume == "keep":
        return "pending tasks stay as they are"
    return ""


def printable(text: str) -> str:
    """Text from the store without characters that would move a terminal's cursor."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _count(number: int, one: str, several: str | None = None) -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"
