"""The pages for people: the worker's status, a run's report, a thread."""

import io
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from repair_service.errors import LedgerError
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.run import Run
from repair_service.report.html import write_html
from repair_service.worker.http import overview
from repair_service.worker.http.problems import Problem
from repair_service.worker.http.reading import REPORT_SECONDS, found_run, looked_at, reportable
from repair_service.worker.http.rendering import page
from repair_service.worker.http.site import Site

RUNS = 15
"""Runs on the status page; the API pages through all of them."""

MOST_ROWS = 1_000
"""Threads in a report over HTTP: 1.5 MB; the command writes more of them."""


async def status(request: Request) -> Response:
    """The worker at a glance; it loads itself again while something runs."""
    site: Site = request.app.state.site
    state, now = site.worker.state(), datetime.now(UTC)
    summaries = None if state.ledger_problem is not None else await site.summaries()
    runs: list[Run] = []
    if summaries is not None:
        try:
            runs = await site.ledger(lambda ledger: ledger.runs.newest(RUNS))
        except (LedgerError, Problem):
            summaries = None
    headline, tone = overview.headline(state, summaries)
    return page(
        "status.html.jinja",
        state=state,
        now=now,
        headline=headline,
        tone=tone,
        notes=list(overview.notes(state, summaries)),
        cards=overview.cards(state, summaries or {}, now),
        runs=overview.run_rows(runs, now),
        ledger_read=summaries is not None,
        refresh=overview.REFRESH_SECONDS if overview.refreshes(state, runs, now) else None,
        may_write=site.settings.token is not None,
    )


async def report(request: Request) -> Response:
    """One run's report: the page of `report RUN --format html`."""
    site: Site = request.app.state.site
    found = reportable(await found_run(site, request.path_params["run_id"]))

    def write(ledger: Ledger) -> str:
        out = io.StringIO()
        write_html(out, found, lambda: ledger.findings.all(found.id), most=MOST_ROWS)
        return out.getvalue()

    return HTMLResponse(await site.ledger(write, REPORT_SECONDS))


async def thread(request: Request) -> Response:
    """One thread, as `show` shows it."""
    site: Site = request.app.state.site
    store = request.query_params.get("store", "")
    thread_id = request.query_params.get("id", "").strip()
    heads = await looked_at(site, store, thread_id)
    return page(
        "thread.html.jinja",
        store=store,
        thread_id=thread_id,
        heads=heads,
        content=site.settings.show_content,
        refresh=None,
    )
