"""A past run as the ledger keeps it, in any format."""

from dataclasses import dataclass
from typing import IO, Any, Literal, assert_never

from repair_service.ledger.records.base import Base, Earlier
from repair_service.ledger.records.run import Run
from repair_service.report.document import Ending, RunItem, TotalsItem, scope_options
from repair_service.report.items import item_of_finding
from repair_service.report.overview import FindingsAnew, Overview, Sums
from repair_service.report.runs import moment

Format = Literal["table", "json", "jsonl", "markdown", "html"]


def write_past(
    name: Format, out: IO[str], run: Run, findings: FindingsAnew, next_command: str | None
) -> None:
    """Write the report of a past run.

    Args:
        name: The format.
        out: Where it is written to, as UTF-8.
        run: The run.
        findings: Gives its findings, from the start each time.
        next_command: What to type next; the longer reports say that by themselves.
    """
    # Each format is loaded when asked for, as for a run that goes on.
    match name:
        case "html":
            from repair_service.report.html import write_html

            write_html(out, run, findings)
        case "markdown":
            from repair_service.report.markdown import write_markdown

            write_markdown(out, run, findings)
        case "table":
            from repair_service.report.table import TableReport

            table = TableReport(out)
            for finding in findings():
                table.add(finding.diagnosis())
            table.end(ending_of(run, findings, next_command))
        case "json" | "jsonl":
            from repair_service.report.json import JsonReport
            from repair_service.report.jsonl import JsonLinesReport

            document = JsonReport(out) if name == "json" else JsonLinesReport(out)
            for finding in findings():
                document.add_item(item_of_finding(finding))
            document.end(ending_of(run, findings, next_command))
        case _:
            assert_never(name)


def ending_of(run: Run, findings: FindingsAnew, next_command: str | None) -> Ending:
    """The ending of a past run, as it reported it itself."""
    overview = Overview.of(findings())
    sums = Sums.of(run, overview)
    said = run.totals or {}
    faults = said.get("faults")
    kinds = faults if isinstance(faults, dict) else overview.kinds
    return Ending(
        RunItem(
            id=str(run.id),
            verb=run.verb,
            started_at=moment(run.started_at),
            finished_at=moment(run.finished_at) if run.finished_at else None,
            store=run.store,
            options=_options(run),
        ),
        TotalsItem(
            threads=sums.threads or 0,
            heads=sums.heads or 0,
            verdicts={verdict.value: count for verdict, count in sums.verdicts.items()},
            faults={str(kind): count for kind, count in kinds.items() if count},
            salvaged=sums.salvaged,
            placeholders=sums.placeholders,
        ),
        run.exit_code,
        next_command,
    )


@dataclass(frozen=True, slots=True)
class _Scope:
    base: Base | None
    earlier: Earlier | None


def _options(run: Run) -> dict[str, Any]:
    scope = _Scope(Base.within(run.selection), Earlier.within(run.selection))
    asked = {name: said for name, said in run.selection.items() if name not in ("base", "earlier")}
    kept = {"reason": run.reason, "actor": run.actor}
    return {**asked, **run.policy, **scope_options(scope), **kept}
