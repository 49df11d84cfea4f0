"""The pages in Chromium: they fit the window, wide or narrow, and nothing in them runs."""

import html
import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.report.test_html_in_browser import ATTACK, CHROMIUM, QUIET, WIDTHS
from tests.worker.http.conftest import Served
from tests.worker.http.workers import (
    TOKEN,
    RememberingWorker,
    running_state,
    schedule_state,
    store_state,
    worker_state,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH")

MEASURE = """
<script>
onload = () => {
  document.querySelector("pre").textContent = JSON.stringify(
    [...document.querySelectorAll("iframe")].map(({contentDocument: page}) => ({
      room: page.documentElement.clientWidth,
      needed: page.documentElement.scrollWidth,
      title: page.title,
      background: getComputedStyle(page.body).backgroundColor,
    })));
};
</script>
"""


def measured(directory: Path, page: str, *flags: str) -> list[dict[str, object]]:
    """What a browser makes of a page, at each width."""
    (directory / "page.html").write_text(page, encoding="utf-8")
    frames = "".join(
        f'<iframe src="page.html" style="width: {width}px; height: 900px; border: 0"></iframe>'
        for width in WIDTHS
    )
    outer = directory / "frames.html"
    outer.write_text(f"<!doctype html>{MEASURE}<pre></pre>{frames}", encoding="utf-8")
    profile = f"--user-data-dir={directory / 'profile'}"
    # The outer page looks into the frames.
    looks = ("--allow-file-access-from-files", "--virtual-time-budget=2000", "--dump-dom")
    done = subprocess.run(
        [str(CHROMIUM), *QUIET, profile, *flags, *looks, outer.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search("<pre>(.*?)</pre>", done.stdout, re.DOTALL)
    assert found is not None
    frames_seen: list[dict[str, object]] = json.loads(html.unescape(found.group(1)))
    return frames_seen


def status(serve: Served, worker: RememberingWorker, *, running: bool) -> str:
    """The status page of a worker whose settings hold the names that hurt most."""
    long = "a-very-long-name-" * 8
    worker.now = worker_state(
        replica=f"{long}{ATTACK}",
        stores=(store_state(), store_state("other", problem=f"It is out of reach. {ATTACK}")),
        schedules=(schedule_state(), schedule_state(long, trigger=ATTACK)),
        running=(running_state(),) if running else (),
        ledger_problem=None,
    )
    return serve().get("/", headers={"Authorization": f"Bearer {TOKEN}"}).text


@pytest.mark.parametrize("running", [True, False])
def test_the_status_page_fits_and_runs_nothing(
    serve: Served, worker: RememberingWorker, tmp_path: Path, running: bool
) -> None:
    page = status(serve, worker, running=running)

    assert ('http-equiv="refresh"' in page) is running
    for seen in measured(tmp_path, page.replace('http-equiv="refresh"', "data-refresh")):
        assert seen["needed"] == seen["room"]
        assert seen["title"] != "ran"


def test_the_page_is_dark_where_the_reader_wants_it(
    serve: Served, worker: RememberingWorker, tmp_path: Path
) -> None:
    page = status(serve, worker, running=False)

    bright = measured(tmp_path, page)[0]["background"]
    dark = measured(tmp_path, page, "--blink-settings=preferredColorScheme=0")[0]["background"]
    assert bright != dark
