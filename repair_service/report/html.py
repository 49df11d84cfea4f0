"""A past run as one HTML file that needs nothing from elsewhere and runs nothing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO

from jinja2 import Environment
from markupsafe import Markup, escape

from repair_service.ledger.records.run import Run
from repair_service.report.advice import headline, notes_of, steps_of
from repair_service.report.charts import charts_of
from repair_service.report.facts import facts_of, policy_of, selection_of
from repair_service.report.overview import GROUPS, FindingsAnew, Group, Overview, Sums
from repair_service.report.page import digest, page_environment, report_style
from repair_service.report.rows import Row, row_of
from repair_service.report.table import printable

MOST_ROWS = 10_000
"""Threads that are listed: 15 MB of HTML, about what a browser still scrolls at ease."""

PIECES_AT_ONCE = 200
"""Pieces of the template that are joined before they are written: about ten threads."""

_SWITCH = re.compile(r"(?<!\S)--[a-z][a-z-]*( [a-z_]+(?=\s+mends))?")


@dataclass(frozen=True, slots=True)
class Section:
    """The threads of one group, as they are listed.

    Attributes:
        group: The group.
        count: How many findings it has.
        left_out: How many of them are not listed.
        rows: The others, made while the file is written.
    """

    group: Group
    count: int
    left_out: int
    rows: Iterator[Row]


def write_html(out: IO[str], run: Run, findings: FindingsAnew, *, most: int = MOST_ROWS) -> None:
    """Write the report of a run: one file, no script, nothing loaded, no content of a message.

    It is written while the findings are read, in memory that does not grow with them. They are
    read once for the counts, and once for each group of verdicts that was found.

    Args:
        out: Where it is written to, as UTF-8.
        run: The run.
        findings: Gives its findings, from the start each time.
        most: How many threads are listed; the most pressing first.
    """
    overview = Overview.of(findings())
    sums = Sums.of(run, overview)
    verdict_line, tone = headline(run, sums)
    style = report_style()
    stream = (
        _environment()
        .get_template("report.html.jinja")
        .stream(
            style=Markup(style),  # noqa: S704  # the package's own file
            style_digest=digest(style),
            run=run,
            verb=printable(run.verb),
            store=printable(run.store),
            actor=printable(run.actor),
            reason=printable(run.reason or ""),
            headline=verdict_line,
            tone=tone,
            notes=list(notes_of(run, sums, overview)),
            sums=sums,
            groups=GROUPS,
            steps=steps_of(run, sums, overview),
            charts=charts_of(sums, overview),
            sections=list(_sections(findings, overview, most)),
            facts=facts_of(run),
            selection=selection_of(run),
            policy=policy_of(run),
        )
    )
    stream.enable_buffering(PIECES_AT_ONCE)
    for text in stream:
        out.write(text)


def _sections(findings: FindingsAnew, overview: Overview, most: int) -> Iterator[Section]:
    for group in GROUPS:
        count = sum(overview.verdicts[verdict] for verdict in group.verdicts)
        if count:
            shown = min(count, most)
            most -= shown
            yield Section(group, count, count - shown, _rows(findings, group, shown))


def _rows(findings: FindingsAnew, group: Group, most: int) -> Iterator[Row]:
    if most:
        of_group = (each for each in findings() if each.verdict in group.verdicts)
        yield from map(row_of, islice(of_group, most))


def _environment() -> Environment:
    environment = page_environment("repair_service.report")
    environment.filters["switches"] = _switches
    return environment


def _switches(text: str) -> Markup:
    """The text, escaped, with its `--switches` as code, so that no line breaks in one."""
    escaped = _SWITCH.sub(r'<code class="switch">\g<0></code>', str(escape(text)))
    return Markup(escaped)  # noqa: S704  # escaped before the only markup was put in
