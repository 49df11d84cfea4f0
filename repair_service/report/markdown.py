"""A past run as Markdown, short enough for a ticket."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import IO

from repair_service.ledger.records.run import Run
from repair_service.report.advice import Step, headline, notes_of, steps_of
from repair_service.report.facts import facts_of
from repair_service.report.overview import GROUPS, FindingsAnew, Overview, Sums
from repair_service.report.rows import FaultRow, Row, row_of
from repair_service.report.table import printable
from repair_service.report.wording import counted, said_time

MOST_ROWS = 50
"""Threads in the table: a ticket of GitHub holds 65,536 characters."""

MOST_TOOLS = 8

_SPECIAL = re.compile(r"[&<>|`*\[\]\\~$@#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=:)//|(?<=www)\.")


def write_markdown(
    out: IO[str], run: Run, findings: FindingsAnew, *, most: int = MOST_ROWS
) -> None:
    """Write a run for a ticket: totals, the first threads, next steps; no content of a message.

    Args:
        out: Where it is written to.
        run: The run.
        findings: Gives its findings, from the start each time.
        most: How many threads are listed; the most pressing first.
    """
    overview = Overview.of(findings())
    sums = Sums.of(run, overview)
    for part in (
        _head(run, sums, overview),
        _totals(sums, overview),
        _next_steps(steps_of(run, sums, overview)),
        _threads(run, findings, overview, most),
        _facts(run),
    ):
        out.writelines(f"{line}\n" for line in part)


def text_of(text: str) -> str:
    """Text in which no character of it is markup, a mention, a reference or a link."""
    return _SPECIAL.sub(_harmless, printable(text))


def _harmless(found: re.Match[str]) -> str:
    character = found.group()
    if character in "@#":
        # A space without width: a mention is looked for in the text, where entities are no more.
        return f"{character}&#8203;"
    if character in ("//", "."):
        return f"&#8203;{character}"
    return f"&#{ord(character)};"


def code_of(text: str) -> str:
    """Text as code, also in a table.

    A code span is no place for backticks, for spaces at its ends, or in a table for pipes: a text
    with one of those is an element, with all but letters and digits as entities.
    """
    said = printable(text) or "(empty)"
    if any(each in said for each in ("`", "|", "\\")) or said != said.strip():
        entities = (each if each.isalnum() else f"&#{ord(each)};" for each in said)
        return f"<code>{''.join(entities)}</code>"
    return f"`{said}`"


def _head(run: Run, sums: Sums, overview: Overview) -> Iterator[str]:
    reason = f": {text_of(run.reason)}" if run.reason else ""
    yield f"# repair-service {text_of(run.verb)}, {said_time(run.started_at)}"
    yield ""
    yield f"**{headline(run, sums)[0]}**"
    yield ""
    yield f"Store {code_of(run.store)}, by {code_of(run.actor)}{reason}"
    for note in notes_of(run, sums, overview):
        yield ""
        yield f"> {note}"


def _totals(sums: Sums, overview: Overview) -> Iterator[str]:
    yield ""
    yield "## Totals"
    yield ""
    if sums.heads is not None:
        threads = "" if sums.threads is None else f" of {counted(sums.threads, 'thread')}"
        yield f"- {counted(sums.heads, 'head')}{threads} looked at"
    for verdict, count in sums.verdicts.items():
        yield f"- {count:,} {verdict.value}"
    if sums.faults:
        kinds = ", ".join(f"{count:,} {kind.value}" for kind, count in overview.kinds.most_common())
        yield f"- {counted(sums.faults, 'fault')}{f': {kinds}' if kinds else ''}"
    tools, others = overview.tools.most_common(MOST_TOOLS)
    if tools:
        said = [f"{code_of(name)} {count:,}" for name, count in tools]
        said += [f"all others {others:,}"] if others else []
        yield f"- Faults by tool: {', '.join(said)}"
    if sums.results:
        yield f"- Put in: {sums.results}"


def _next_steps(steps: list[Step]) -> Iterator[str]:
    yield ""
    yield "## What to do next"
    yield ""
    if not steps:
        yield "Nothing."
    for step in steps:
        title = f"{step.verdict.value}, {counted(step.count, 'head')}."
        yield f"- **{title}** {step.meaning} {step.action}"
        for reason, count in step.reasons:
            yield f"  - {count:,}: {text_of(reason)}"
        if step.other_reasons:
            yield f"  - {step.other_reasons:,} for other reasons"
        for command in step.commands:
            yield f"  - {code_of(command)}"


def _threads(run: Run, findings: FindingsAnew, overview: Overview, most: int) -> Iterator[str]:
    if not overview.findings:
        return
    yield ""
    yield "## Threads"
    yield ""
    yield "| Thread | Verdict | Faults | Evidence | Decision |"
    yield "| --- | --- | --- | --- | --- |"
    left = most
    for group in GROUPS:
        if left <= 0:
            break
        if any(overview.verdicts[verdict] for verdict in group.verdicts):
            of_group = (each for each in findings() if each.verdict in group.verdicts)
            for finding in islice(of_group, left):
                left -= 1
                yield _row(row_of(finding))
    if overview.findings > most:
        yield ""
        yield (
            f"{counted(overview.findings - most, 'more thread')} not listed here. All of them: "
            f"`repair-service report {run.id} --format html --output report.html`"
        )


def _row(row: Row) -> str:
    namespace = f"<br>namespace {code_of(row.namespace)}" if row.namespace else ""
    faults = [_fault(fault) for fault in row.faults]
    faults += [f"and {row.more_faults}"] if row.more_faults else []
    patch = [f"checkpoint {code_of(row.patch_id)}"] if row.patch_id else []
    cells = (
        code_of(row.thread_id) + namespace,
        row.verdict,
        "<br>".join(faults) or "none",
        "<br>".join(f"{name}: {text_of(value)}" for name, value in row.evidence),
        "<br>".join([text_of(row.reason), *map(text_of, row.written), *patch]),
    )
    return f"| {' | '.join(cells)} |"


def _fault(fault: FaultRow) -> str:
    tool = f" of {code_of(fault.tool)}" if fault.tool else ""
    model = f", by {text_of(fault.model)}" if fault.model else ""
    return f"{fault.kind}{tool} ({text_of(fault.place)}{model})"


def _facts(run: Run) -> Iterator[str]:
    yield ""
    yield "## The run"
    yield ""
    for name, value in facts_of(run):
        yield f"- {name}: {text_of(value)}"
