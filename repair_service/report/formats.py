"""The formats a run can be reported in, by name."""

from typing import IO, Literal

from repair_service.report.document import Report

Format = Literal["table", "json", "jsonl"]


def report_as(name: Format, out: IO[str]) -> Report:
    """A report in the format of this name, written to `out`."""
    # Each format is loaded when asked for: rich alone costs as much as all of the others.
    if name == "json":
        from repair_service.report.json import JsonReport

        return JsonReport(out)
    if name == "jsonl":
        from repair_service.report.jsonl import JsonLinesReport

        return JsonLinesReport(out)
    from repair_service.report.table import TableReport

    return TableReport(out)
