"""The documents are whole, in any number of items."""

import io
import json
import tempfile

import pytest

from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Verdict
from repair_service.report import json as json_report
from repair_service.report.document import Ending, RunItem, totals_item
from repair_service.report.json import JsonReport
from repair_service.report.jsonl import JsonLinesReport
from repair_service.sweep.totals import Totals

RUN = RunItem("id", "audit", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "store", {})
ENDING = Ending(RUN, totals_item(Totals()), 2, "repair-service sweep")


def head(number: int) -> Diagnosis:
    return Diagnosis(f"thread \u2028 {number}", "", "id", Verdict.MANUAL, 'why "quoted"')


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_document_is_valid_json(count: int) -> None:
    out = io.StringIO()
    report = JsonReport(out)
    for number in range(count):
        report.add(head(number))
    assert out.getvalue() == ""
    report.end(ENDING)
    document = json.loads(out.getvalue())
    assert list(document) == [
        "schema_version",
        "run",
        "totals",
        "items",
        "exit_code",
        "next_command",
    ]
    assert [item["thread_id"] for item in document["items"]] == [
        f"thread \u2028 {number}" for number in range(count)
    ]


def test_a_document_that_does_not_fit_into_memory_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = []
    for limit in (json_report.IN_MEMORY, 10):
        monkeypatch.setattr(json_report, "IN_MEMORY", limit)
        out = io.StringIO()
        report = JsonReport(out)
        report.add(head(1))
        report.add(head(2))
        report.end(ENDING)
        documents.append(out.getvalue())
    assert documents[0] == documents[1]


def test_it_stays_in_memory_where_no_file_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    out = io.StringIO()
    report = JsonReport(out, in_memory=1)
    report.add(head(1))
    report.end(ENDING)
    assert len(json.loads(out.getvalue())["items"]) == 1


def test_lines_are_written_as_heads_come() -> None:
    out = io.StringIO()
    report = JsonLinesReport(out)
    report.add(head(1))
    assert json.loads(out.getvalue())["thread_id"] == "thread \u2028 1"
    report.end(ENDING)
    lines = out.getvalue().split("\n")
    assert (len(lines), lines[-1]) == (3, "")
    assert "items" not in json.loads(lines[1])
