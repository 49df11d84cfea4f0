"""The JSON API, to be read: stores, schedules, runs, a run's report, a thread's transcript."""

import io
from itertools import islice
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.run import Run
from repair_service.report.document import SCHEMA_VERSION
from repair_service.report.items import item_of_finding
from repair_service.report.json import JsonReport
from repair_service.report.past import ending_of
from repair_service.report.runs import past_repair, past_run
from repair_service.report.thread import view_thread
from repair_service.report.transcript import HeadView
from repair_service.store.connection import Bounds
from repair_service.store.gateway import Store
from repair_service.worker.http.probes import as_json
from repair_service.worker.http.problems import Problem
from repair_service.worker.http.readers import STATEMENT_SECONDS
from repair_service.worker.http.settings import StoreDoor
from repair_service.worker.http.site import Site

PAGE, LARGEST_PAGE = 20, 200
"""Runs a page, and at most."""

MOST_HEADS = 10_000
"""Heads of a report that is given over HTTP: about 10 MB, which is held while it is sent."""

REPORT_SECONDS = 60.0
"""Its findings are read several times over, a page at a time; each statement has its own bound."""

MOST_REPAIRS = 1_000
"""Patches of a run that are listed over HTTP."""

LONGEST_ID = 1_000
"""Characters of a thread's id that is looked for."""


async def status(request: Request) -> Response:
    """This replica, and what it knows of the others."""
    site: Site = request.app.state.site
    state = site.worker.state()
    return as_json(
        {
            "schema_version": SCHEMA_VERSION,
            "replica": state.replica,
            "leads": state.leads,
            "leader": state.leader,
            "lease_until": state.lease_until,
            "paused": state.paused,
            "ledger_problem": state.ledger_problem,
            "running": state.running,
        }
    )


async def stores(request: Request) -> Response:
    """The stores of the settings, with what the ledger says of each."""
    site: Site = request.app.state.site
    summaries = await site.summaries() or {}
    items = [
        {
            "name": store.name,
            "target": store.target,
            "problem": store.problem,
            "summary": summaries.get(store.name),
        }
        for store in site.worker.state().stores
    ]
    return as_json({"schema_version": SCHEMA_VERSION, "stores": items})


async def schedules(request: Request) -> Response:
    """The schedules of the settings, with their next and last runs."""
    site: Site = request.app.state.site
    state = site.worker.state()
    return as_json(
        {
            "schema_version": SCHEMA_VERSION,
            "paused": state.paused,
            "schedules": state.schedules,
        }
    )


async def runs(request: Request) -> Response:
    """The runs of the ledger, newest first; `limit` a page, `before` the last id of the page."""
    site: Site = request.app.state.site
    limit = _limit(request)
    last = request.query_params.get("before")
    before = None if last is None else await found_run(site, last)
    page = await site.ledger(lambda ledger: ledger.runs.newest(limit + 1, before=before))
    shown = page[:limit]
    return as_json(
        {
            "schema_version": SCHEMA_VERSION,
            "runs": [past_run(run) for run in shown],
            "next": str(shown[-1].id) if len(page) > limit else None,
        }
    )


async def run(request: Request) -> Response:
    """One run, with the patches that it wrote."""
    site: Site = request.app.state.site
    found = await found_run(site, request.path_params["run_id"])
    repairs = await site.ledger(lambda ledger: ledger.repairs.page_of_run(found.id, MOST_REPAIRS))
    return as_json(
        {
            "schema_version": SCHEMA_VERSION,
            "run": past_run(found),
            "repairs": [past_repair(repair) for repair in repairs],
            "repairs_left_out": len(repairs) == MOST_REPAIRS,
        }
    )


async def report(request: Request) -> Response:
    """One run's report: the document of `report RUN --format json`."""
    site: Site = request.app.state.site
    found = reportable(await found_run(site, request.path_params["run_id"]))
    text = await site.ledger(lambda ledger: _report_of(ledger, found), REPORT_SECONDS)
    return Response(text, media_type="application/json")


async def thread(request: Request) -> Response:
    """One thread's transcript with its faults and patch: the document of `show --format json`."""
    site: Site = request.app.state.site
    thread_id = request.path_params["thread_id"]
    views = await looked_at(site, request.path_params["store"], thread_id)
    return as_json(
        {
            "schema_version": SCHEMA_VERSION,
            "thread_id": thread_id,
            "heads": views,
            "next_command": None,
        }
    )


async def found_run(site: Site, name: str) -> Run:
    """A run by its id.

    Raises:
        Problem: 404 where there is none.
    """
    try:
        run_id = UUID(name)
    except ValueError:
        run_id = None
    found = await site.ledger(lambda ledger: ledger.runs.get(run_id)) if run_id else None
    if found is None:
        raise Problem(404, "There is no run of that id; /api/v1/runs lists them.")
    return found


def reportable(run: Run) -> Run:
    """A run that looked at heads.

    Raises:
        Problem: 404 for one that did not.
    """
    if run.verb == "undo":
        raise Problem(404, "An undo looks at no heads; see what it did at /api/v1/runs/RUN.")
    return run


async def looked_at(site: Site, store: str, thread_id: str) -> list[HeadView]:
    """A thread as it is now; with the text of its messages where the settings allow it.

    Raises:
        Problem: 404 where there is no such store or thread; 503 where the store has a problem.
    """
    door, state = site.store(store)
    if state.problem is not None:
        raise Problem(503, state.problem, (("Retry-After", "30"),))
    content = site.settings.show_content
    views = None
    if "\0" not in thread_id and len(thread_id) <= LONGEST_ID:
        views = await site.readers.run(lambda: _look(door, thread_id, content=content))
    if views is None:
        raise Problem(404, "There is no such thread in that store; check its id and the store.")
    return views


def _look(door: StoreDoor, thread_id: str, *, content: bool) -> list[HeadView] | None:
    with Store.connect(
        door.url,
        schema=door.schema,
        aes_key=door.aes_key,
        bounds=Bounds(statement_timeout=int(STATEMENT_SECONDS * 1000)),
        application_name="repair-service page",
        read_only=True,
    ) as store:
        return view_thread(store, thread_id, door.policy, content=content)


def _report_of(ledger: Ledger, run: Run) -> str:
    found = list(islice(ledger.findings.all(run.id), MOST_HEADS + 1))
    if len(found) > MOST_HEADS:
        raise Problem(
            422,
            f"This run has more than {MOST_HEADS:,} heads that are not healthy, too many to report "
            f"over HTTP. Use: repair-service report {run.id} --format json.",
        )
    out = io.StringIO()
    # In memory: the file system of a container may have no place for it.
    document = JsonReport(out, in_memory=0)
    for finding in found:
        document.add_item(item_of_finding(finding))
    document.end(ending_of(run, lambda: found, None))
    return out.getvalue()


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(PAGE))
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= LARGEST_PAGE):
        raise Problem(422, f"limit: a number from 1 to {LARGEST_PAGE} is needed.")
    return int(text)
