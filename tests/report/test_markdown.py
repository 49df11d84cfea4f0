"""The Markdown report: short, and nothing of it is markup that somebody else wrote."""

import io
import re

import pytest
from markdown_it import MarkdownIt

from repair_service.ledger.records.finding import Finding
from repair_service.repair.verdict import Verdict
from repair_service.report.markdown import write_markdown
from repair_service.report.table import printable
from tests.report.pages import Page
from tests.report.past_runs import HOSTILE, fault, finding, findings, run, totals

TICKET = 65_536
"""Characters of an issue on GitHub."""

TRICKS = (
    HOSTILE,
    "a|b`c``d\\|e",
    "\\",
    "|",
    "`",
    "``` x",
    "  two  spaces ",
    "[x](https://evil.example) ![x](//evil.example) <https://evil.example>",
    "*a* _b_ __c__ ~~d~~ &lt; # 1. - >",
    "line\nbreak\r\x00",
)


def markdown_of(*found: Finding, **changes: object) -> str:
    out = io.StringIO()
    write_markdown(out, run(**changes), lambda: found)
    return out.getvalue()


def rendered(text: str) -> Page:
    body = MarkdownIt("commonmark").enable("table").render(text)
    return Page(f"<body>{body}</body>")


def test_a_short_run_is_told_whole() -> None:
    text = markdown_of(
        finding("thread-1"),
        finding("thread-2", verdict=Verdict.MANUAL, reason="why; --allow orphan_result mends it"),
        totals=totals(10, {"healthy": 8, "repaired": 1, "manual": 1}, placeholders=1),
    )

    assert "**1 head needs a person; 1 head repaired.**" in text
    assert "- 10 heads of 10 threads looked at" in text
    assert "- Put in: 1 placeholder" in text
    assert "| `thread-1` | repaired | unanswered_call of `charge_card`" in text
    assert "`repair-service show THREAD`" in text
    assert "not listed here" not in text
    assert text.index("thread-2") < text.index("thread-1")


def test_no_findings_is_no_table() -> None:
    text = markdown_of(totals=totals(10, {"healthy": 10}))

    assert "**Nothing is wrong.**" in text
    assert "Nothing.\n" in text
    assert "| Thread" not in text


def test_a_long_run_fits_a_ticket_and_says_what_is_left_out() -> None:
    text = markdown_of(*findings(5000))

    assert text.count("| `customer-") == 50
    assert "4,950 more threads not listed here" in text
    assert len(text) < TICKET


@pytest.mark.parametrize("trick", TRICKS)
def test_hostile_text_is_text(trick: str) -> None:
    def page(text: str) -> Page:
        hostile = finding(
            text,
            checkpoint_ns=text,
            reason=text,
            faults=(fault(tool_name=text, channel=text, model=text),),
            route=(text,),
            pending=(text,),
            new_checkpoint_id=text,
        )
        return rendered(
            markdown_of(hostile, actor=text, store=text, reason=text, verb=text, host=text)
        )

    hostile, tame = page(trick), page("x")

    assert hostile.shape == tame.shape
    # The verb, the store, the actor and the reason.
    shown = hostile.shown.partition("Totals")[0].replace("\u200b", "")
    assert shown.count(printable(trick).strip()) >= 4
    assert not hostile.attributes("href")


def test_an_id_can_be_copied_from_the_rendered_table() -> None:
    for trick in ("a|b`c\\|d", " at both ends ", "<b>&lt;", "plain"):
        assert trick in rendered(markdown_of(finding(trick))).texts["code"]


def test_nobody_is_called_and_nothing_is_referred_to() -> None:
    text = markdown_of(finding(reason="@all see #12 and https://evil.example or www.evil.example"))

    [row] = [line for line in text.splitlines() if "`thread`" in line]
    assert not re.search(r"@\w|#\d+|://|www\.", row.replace("&#8203;", "\u200b"))
