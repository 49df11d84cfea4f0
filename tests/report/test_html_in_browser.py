"""The HTML report in Chromium: it fits the window, its style applies, and no script in it runs."""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from repair_service.ledger.records.finding import Finding
from repair_service.report.html import write_html
from tests.report.past_runs import HOSTILE, fault, finding, findings, run

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH")

QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)

WIDTHS = (1280, 400)

MEASURE = """
<script>
onload = () => {
  const measured = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument;
    const bar = page.querySelector("svg rect:not(.track)");
    return {
      width: frame.clientWidth,
      room: page.documentElement.clientWidth,
      needed: page.documentElement.scrollWidth,
      title: page.title,
      rows: page.querySelectorAll("tbody tr").length,
      as_table: getComputedStyle(page.querySelector("tbody tr") || page.body).display,
      background: getComputedStyle(page.body).backgroundColor,
      columns: getComputedStyle(page.querySelector(".tiles")).display,
      bar: bar && bar.getBoundingClientRect().width,
    };
  });
  document.querySelector("pre").textContent = JSON.stringify(measured);
};
</script>
"""

ATTACK = "<script>document.title = 'ran'</script><img src='x' onerror=\"document.title = 'ran'\">"


def measured(tmp_path: Path, report: str, *flags: str) -> list[dict[str, Any]]:
    """What a browser makes of the report, at each width."""
    (tmp_path / "report.html").write_text(report, encoding="utf-8")
    frames = "".join(
        f'<iframe src="report.html" style="width: {width}px; height: 900px; border: 0"></iframe>'
        for width in WIDTHS
    )
    outer = tmp_path / "frames.html"
    outer.write_text(f"<!doctype html>{MEASURE}<pre></pre>{frames}", encoding="utf-8")
    done = subprocess.run(
        [
            str(CHROMIUM),
            *QUIET,
            f"--user-data-dir={tmp_path / 'profile'}",
            # The outer page looks into the frames.
            "--allow-file-access-from-files",
            *flags,
            "--dump-dom",
            outer.as_uri(),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=300,
        check=True,
    )
    said = re.search(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)
    assert said is not None
    measures: list[dict[str, Any]] = json.loads(html.unescape(said.group(1)))
    return measures


def report(tmp_path: Path, found: Callable[[], Iterable[Finding]], **changes: Any) -> str:
    path = tmp_path / "written.html"
    with path.open("w", encoding="utf-8") as out:
        write_html(out, run(**changes), found)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("count", [0, 3, 5000])
def test_it_fits_a_window_and_a_telephone(tmp_path: Path, count: int) -> None:
    wide, narrow = measured(tmp_path, report(tmp_path, lambda: findings(count)))

    assert [wide["width"], narrow["width"]] == list(WIDTHS)
    for each in (wide, narrow):
        assert each["needed"] == each["room"]
        assert each["rows"] == count
        # The style applies though nothing but its hash is allowed.
        assert each["columns"] == "grid"
    if count:
        assert wide["as_table"] == "table-row"
        assert narrow["as_table"] == "block"
        assert wide["bar"] > 100


def test_long_names_and_ids_wrap(tmp_path: Path) -> None:
    long = "x" * 300
    faults = tuple(fault(tool_call_id=long, tool_name=long, model=long) for _ in range(3))
    found = finding(
        long, checkpoint_ns=long, faults=faults, reason=long, pending=(long,), route=(long,)
    )
    written = report(
        tmp_path, lambda: [found], store=long, actor=long, host=long, selection={long: long}
    )

    for each in measured(tmp_path, written):
        assert each["needed"] == each["room"]


def test_no_script_runs_even_if_one_came_in(tmp_path: Path) -> None:
    written = report(tmp_path, lambda: [finding(HOSTILE)], actor=HOSTILE)
    attacked = written.replace("<main>", "<main>" + ATTACK)
    assert attacked != written
    unprotected = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", attacked)

    assert {each["title"] == "ran" for each in measured(tmp_path, attacked)} == {False}
    # The attack itself works, so it was the policy that stopped it.
    assert {each["title"] for each in measured(tmp_path, unprotected)} == {"ran"}


def test_it_is_dark_where_the_reader_wants_it_dark(tmp_path: Path) -> None:
    written = report(tmp_path, lambda: findings(3))

    light = measured(tmp_path, written, "--blink-settings=preferredColorScheme=1")
    dark = measured(tmp_path, written, "--blink-settings=preferredColorScheme=0")

    assert {each["background"] for each in light} == {"rgb(255, 255, 255)"}
    assert {each["background"] for each in dark} == {"rgb(16, 20, 25)"}
