"""The table says what is there, and nothing in the store can move the reader's cursor."""

import io

import pytest

from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Fault, Verdict
from repair_service.report.table import TableReport, printable
from repair_service.transcript.fault import FaultKind
from tests.report.examples import patch


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def fault(kind: FaultKind, tool: str | None, mend: str) -> Fault:
    return Fault(kind, "messages", 1, "call", tool, None, mend)  # type: ignore[arg-type]


def diagnosis(**changes: object) -> Diagnosis:
    facts: dict[str, object] = {
        "thread_id": "t",
        "checkpoint_ns": "",
        "checkpoint_id": "old",
        "verdict": Verdict.REPAIRABLE,
        "reason": "why",
        "channel": "messages",
        "resume": "continue",
        "route": ("agent",),
        "route_source": "history",
        "patch": patch(salvaged=1, placeholders=2),
    }
    return Diagnosis(**(facts | changes))  # type: ignore[arg-type]


def lines(each: Diagnosis) -> list[str]:
    out = io.StringIO()
    TableReport(out).add(each)
    return [line.strip() for line in out.getvalue().splitlines()[1:]]


def test_a_repairable_head_says_what_would_be_written() -> None:
    faults = (
        fault(FaultKind.UNANSWERED_CALL, "pay", "placeholder"),
        fault(FaultKind.UNANSWERED_CALL, "ask", "placeholder"),
        fault(FaultKind.UNCOMMITTED_RESULT, None, "salvage"),
    )
    assert lines(diagnosis(faults=faults)) == [
        "repairable  t",
        "2 unanswered_call (ask, pay), 1 uncommitted_result",
        "1 salvaged result, 2 placeholders; goes on at agent (history)",
    ]


@pytest.mark.parametrize(
    ("resume", "said"),
    [
        ("park", "parked: ready for a new message"),
        ("keep", "pending tasks stay as they are"),
    ],
)
def test_where_it_goes_on_is_said(resume: str, said: str) -> None:
    assert lines(diagnosis(resume=resume, route=()))[-1].endswith(said)


def test_a_head_that_is_left_says_why() -> None:
    left = diagnosis(verdict=Verdict.MANUAL, patch=None, resume=None, route=(), faults=())
    assert lines(left) == ["manual      t", "why"]


def test_a_namespace_has_its_line() -> None:
    assert lines(diagnosis(checkpoint_ns="tools:1"))[1] == "namespace tools:1"


def test_a_long_id_is_not_broken_so_that_it_can_be_copied() -> None:
    assert lines(diagnosis(thread_id="x" * 200))[0] == "repairable  " + "x" * 200


def test_markup_in_an_id_is_text() -> None:
    assert lines(diagnosis(thread_id="[red]a[/red] :smile:"))[0].endswith("[red]a[/red] :smile:")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\r\n", r"\x1b[2J\r\n"),
        ("a\u202eb", r"a\u202eb"),
        ("Grüße, 线程 🧵", "Grüße, 线程 🧵"),
        ("", ""),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
