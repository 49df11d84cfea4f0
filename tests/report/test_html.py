"""The HTML report: whole, harmless, and the same numbers as the ledger's."""

import base64
import hashlib
import io
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import repair_service
from repair_service.ledger.records.finding import Finding
from repair_service.ledger.values import plain
from repair_service.repair.verdict import FaultKind, Placeholders, Policy, Verdict
from repair_service.report import html, tally
from repair_service.report.html import write_html
from tests.report.pages import Page, html_of
from tests.report.past_runs import (
    HOSTILE,
    NOON,
    PATCHED,
    fault,
    finding,
    findings,
    run,
    totals,
)

BUILD = """
import sys
from hatchling.build import build_wheel
print(build_wheel(sys.argv[1]))
"""


def page_of(*found: Finding, **changes: object) -> Page:
    return Page(html_of(run(**changes), lambda: found))


def everywhere(text: str) -> Finding:
    """A finding with this text wherever the store or the model has a say."""
    faults = (fault(channel=text, tool_call_id=text, tool_name=text, model=text),)
    return finding(
        text,
        checkpoint_ns=text,
        checkpoint_id=text,
        verdict=Verdict.REPAIRABLE,
        reason=text,
        channel=text,
        faults=faults,
        route=(text,),
        new_checkpoint_id=text,
        pending=(text,),
    )


def run_of(text: str) -> dict[str, object]:
    """The parts of a run that somebody else wrote, all of them this text."""
    names = ("verb", "store", "actor", "reason", "version", "host")
    settings = {"selection": {"threads": [text]}, "policy": {"placeholders": {text: text}}}
    return dict.fromkeys(names, text) | settings


@pytest.mark.parametrize("count", [0, 1, 3, 500])
def test_a_page_is_whole_and_lists_every_finding(count: int) -> None:
    page = Page(html_of(run(), lambda: findings(count)))

    listed = re.findall(r"customer-\d{5}", page.shown)
    assert sorted(listed) == [f"customer-{number:05}" for number in range(count)]
    identifiers = page.attributes("id")
    assert len(set(identifiers)) == len(identifiers)
    assert {"lang": "en"} in page.all("html")


def test_nothing_is_loaded_and_nothing_runs() -> None:
    page = page_of(*findings(50), everywhere(HOSTILE), **run_of(HOSTILE))

    assert not {"script", "link", "iframe", "object", "embed", "img", "form", "base"} & {
        *page.shape
    }
    targets = {"#" + identifier for identifier in page.attributes("id")}
    assert set(page.attributes("href")) <= targets
    for name in ("src", "srcset", "style", "action", "xlink:href"):
        assert page.attributes(name) == []
    assert not [name for _, values in page.elements for name in values if name.startswith("on")]
    [style] = page.texts["style"]
    assert not re.search(r"url\(|@import|expression", style)


def test_the_policy_allows_this_style_and_nothing_else() -> None:
    page = page_of(finding())

    [policy] = [
        each["content"]
        for each in page.all("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    ]
    digest = base64.b64encode(hashlib.sha256("".join(page.texts["style"]).encode()).digest())
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest.decode()}'; "
        "base-uri 'none'; form-action 'none'"
    )


def test_hostile_text_is_text() -> None:
    hostile = page_of(everywhere(HOSTILE), **run_of(HOSTILE))
    tame = page_of(everywhere("x"), **run_of("x"))

    assert hostile.shape == tame.shape
    assert [set(values) for _, values in hostile.elements] == [
        set(values) for _, values in tame.elements
    ]
    assert HOSTILE in hostile.texts["code"]
    assert HOSTILE in "".join(hostile.texts["p"])


def test_characters_that_turn_or_break_text_are_shown_as_codes() -> None:
    page = page_of(everywhere("a\u202e\x00\ud800\nb"))

    assert r"a\u202e\x00\ud800\nb" in page.texts["code"]
    assert not set("\u202e\x00\ud800") & set(page.shown)


def test_a_switch_in_a_reason_is_not_broken_over_lines() -> None:
    page = page_of(finding(reason="--allow orphan_result mends it <b>", verdict=Verdict.MANUAL))

    assert "--allow orphan_result" in page.texts["code"]
    assert " mends it <b>" in page.texts["p"]


def test_a_row_has_the_evidence_and_the_decision() -> None:
    found = finding(
        "thread-1",
        checkpoint_ns="sub:1",
        verdict=Verdict.REPAIRED,
        faults=(fault(tool_call_id="call_a"), fault(tool_call_id="call_b", mend="salvage")),
        idle_seconds=3 * 3600 + 12 * 60,
        pending=("tools", "audit"),
        interrupts=1,
    )

    [row] = re.findall("thread-1.*", page_of(found).shown.partition("Threads")[2], re.DOTALL)

    for said in (
        "namespace sub:1",
        "unanswered_call of charge_card",
        "messages, message 3, call call_a, by gpt-5",
        "→ placeholder",
        "→ real result taken up",
        "Idle 3 h 12 min",
        "Head at 2026-03-01 12:00:00 UTC",
        "Pending tools, audit",
        "Questions 1 interrupt without an answer",
        "Route agent, learned from this thread's history",
        "Written: 1 real result taken up, 1 placeholder.",
        "Goes on at agent.",
        f"checkpoint {PATCHED}",
    ):
        assert said in row


def test_what_was_not_written_is_not_said_to_be() -> None:
    drifted = finding(verdict=Verdict.DRIFTED, reason="the head moved on")

    shown = page_of(drifted).shown

    assert PATCHED not in shown
    assert "Written:" not in shown
    assert "→ placeholder" not in shown


def test_a_thread_with_many_faults_says_how_many_more() -> None:
    faults = tuple(fault(tool_call_id=f"call_{number}") for number in range(10))

    shown = page_of(finding(faults=faults)).shown

    assert "call_5" in shown
    assert "call_6" not in shown
    assert "and 4 unanswered_call" in shown


def test_charts_say_their_numbers_in_words() -> None:
    found = (
        finding("a", faults=(fault(), fault(tool_name=None, model=None)), idle_seconds=59),
        finding("b", faults=(fault(kind=FaultKind.ORPHAN_RESULT),), idle_seconds=7200),
        finding("c", faults=(), verdict=Verdict.ACTIVE, idle_seconds=None),
    )

    page = page_of(*found, totals=totals(9, {"healthy": 6, "repaired": 2, "active": 1}))

    assert page.texts["desc"] == [
        "repaired: 2; active: 1.",
        "unanswered_call: 2; orphan_result: 1.",
        "charge_card: 2; (no name recorded): 1.",
        "gpt-5: 2; (not recorded): 1.",
        "under 10 minutes: 2; 10 minutes to 1 hour: 0; 1 to 24 hours: 1.",
    ]
    charts = [each for each in page.all("svg") if each.get("role") == "img"]
    identifiers = set(page.attributes("id"))
    assert len(charts) == 5
    for chart in charts:
        assert set((chart["aria-labelledby"] or "").split()) <= identifiers
        assert len((chart["aria-labelledby"] or "").split()) == 2


def test_a_chart_of_very_many_tools_stays_small() -> None:
    names = [f"tool_{number}" for number in range(tally.MOST_NAMES + 50)]

    def many() -> Iterator[Finding]:
        return (finding(name, faults=(fault(tool_name=name),)) for name in names)

    page = Page(html_of(run(), many, most=1))

    assert f"all others: {len(names) - 8:,}." in page.texts["desc"][2]


def test_the_most_pressing_come_first() -> None:
    shown = Page(html_of(run(), lambda: findings(9))).shown
    places = [
        shown.index(f"customer-0000{number}")
        # manual, unreadable, failed; repairable, drifted; repaired; waiting, active
        for number in (1, 4, 8, 3, 7, 0, 5, 2, 6)
    ]

    assert places == sorted(places)


def test_what_is_not_listed_is_counted() -> None:
    page = Page(html_of(run(), lambda: findings(90), most=35))

    assert len(re.findall(r"customer-\d{5}", page.shown)) == 35
    # 30 need a person, 20 are for a sweep, 20 repaired, 20 left alone.
    assert "15 more threads not listed here" in page.shown
    assert page.shown.count("20 more threads not listed here") == 2


def test_every_verdict_has_a_next_step_but_healthy() -> None:
    found = [finding(verdict.value, verdict=verdict) for verdict in Verdict]

    page = page_of(*found)

    steps = page.shown.partition("What to do next")[2].partition("Where it is wrong")[0]
    assert [verdict.value for verdict in Verdict if f"{verdict.value} 1 head" not in steps] == [
        "healthy"
    ]
    assert f"repair-service undo --dry-run --run {run().id}" in steps


def test_reasons_are_counted() -> None:
    found = [finding(f"m{number}", verdict=Verdict.MANUAL, reason="why") for number in range(3)]

    steps = page_of(*found).shown.partition("What to do next")[2]

    assert "3 why" in steps


def test_a_run_without_faults_says_so() -> None:
    shown = page_of(totals=totals(1204, {"healthy": 1204})).shown

    assert "Nothing is wrong." in shown
    assert "1,204" in shown
    assert "No head with a fault was found." in shown
    assert "Where it is wrong" not in shown


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ({"repaired": 1}, "1 damaged head repaired, and nothing is left."),
        ({"repaired": 2, "repairable": 3}, "3 heads left for a sweep; 2 heads repaired."),
        (
            {"manual": 1, "drifted": 2, "repaired": 4},
            "1 head needs a person, 2 others left for a sweep; 4 heads repaired.",
        ),
        ({"waiting": 5, "active": 5}, "Nothing is wrong."),
    ],
)
def test_the_headline_says_the_outcome(verdicts: dict[str, int], said: str) -> None:
    page = page_of(totals=totals(20, verdicts))

    assert said in page.texts["p"]


def test_a_run_that_did_not_end_is_not_called_clean() -> None:
    shown = page_of(
        totals=totals(10, {"healthy": 10}), finished_at=None, complete=False, exit_code=None
    ).shown

    assert "Nothing is wrong." not in shown
    assert "This run has not ended" in shown


def test_a_run_that_stopped_early_says_so() -> None:
    shown = page_of(totals=totals(10, {"healthy": 10}), complete=False).shown

    assert "Nothing is wrong." not in shown
    assert "before it had looked at every head" in shown


def test_findings_that_were_let_go_of_are_missed() -> None:
    shown = page_of(finding(), totals=totals(10, {"repaired": 4, "healthy": 6})).shown

    assert "keeps 1 of the 4 findings" in shown
    assert "4 damaged heads repaired" in shown


def test_the_facts_of_the_run() -> None:
    page = page_of(
        shard_index=2,
        shard_count=4,
        selection={"threads": ["t"] * 30, "since": NOON.timestamp(), "namespace": None},
        policy={"min_idle": 600.0, "allow": ["at_rest"], "last": None, "x": {"y": True}},
        finished_at=NOON + timedelta(minutes=61),
    )

    facts = dict(zip(page.texts["dt"][-14:], page.texts["dd"][-14:], strict=True))
    assert (
        facts
        | {
            "Shard": "2 of 4",
            "Finished": "2026-03-01 13:01:00 UTC, after 1 h 1 min",
            "Looked at": "every head of its selection",
            "Exit code": "2: faults were found, or left",
            "Host": "pod-1",
            "threads": ", ".join(["t"] * 20) + " and 10 more",
            "since": "2026-03-01 12:00:00 UTC",
            "min_idle": "10 min",
            "allow": "at_rest",
            "x.y": "yes",
        }
        == facts
    )


def test_settings_are_not_listed_at_any_length() -> None:
    own = plain(Policy(placeholders=Placeholders(interrupted="Own " * 200)))

    shown = page_of(policy=own).shown

    assert "Own Own" in shown
    assert "… (800 characters)" in shown
    # The other one is what every run has that asks for nothing else.
    assert Placeholders().invalid not in shown


class Counting(io.StringIO):
    """Counts the rows that were written."""

    rows = 0

    def write(self, text: str) -> int:
        self.rows += text.count("</tr>")
        return len(text)


def test_rows_are_written_while_they_are_read() -> None:
    out, behind = Counting(), 0
    count = 400

    def watched() -> Iterator[Finding]:
        nonlocal behind
        for number in range(count):
            # Nothing is written while the counts are made.
            behind = max(behind, number - out.rows) if out.rows else behind
            yield finding(f"t{number}")

    write_html(out, run(), watched)

    assert out.rows == count + 1
    assert 0 < behind < html.PIECES_AT_ONCE


def test_a_wheel_has_the_template_and_the_style(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    checkout = Path(repair_service.__file__).parent.parent
    if not (checkout / "pyproject.toml").exists():
        pytest.skip("the package is installed, not a checkout")
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path)],
        cwd=checkout,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    names = zipfile.ZipFile(tmp_path / built.stdout.strip()).namelist()

    templates = {name for name in names if name.startswith("repair_service/report/templates/")}
    assert templates == {
        "repair_service/report/templates/report.css",
        "repair_service/report/templates/report.html.jinja",
    }
