"""The application: its routes, and what is around them."""

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from repair_service.errors import RepairServiceError
from repair_service.worker.http import asking, pages, probes, reading
from repair_service.worker.http.guard import Guard
from repair_service.worker.http.problems import (
    Problem,
    on_error,
    on_http,
    on_problem,
    on_unexpected,
)
from repair_service.worker.http.server import HttpServer
from repair_service.worker.http.settings import HttpSettings
from repair_service.worker.http.site import Site
from repair_service.worker.state import Worker

API = "/api/v1"

READING = (
    Route("/healthz", probes.healthz),
    Route("/readyz", probes.readyz),
    Route("/metrics", probes.metrics),
    Route("/", pages.status),
    Route("/runs/{run_id}", pages.report),
    Route("/thread", pages.thread),
    Route(f"{API}/status", reading.status),
    Route(f"{API}/stores", reading.stores),
    Route(f"{API}/schedules", reading.schedules),
    Route(f"{API}/runs", reading.runs),
    Route(f"{API}/runs/{{run_id}}", reading.run),
    Route(f"{API}/runs/{{run_id}}/report", reading.report),
    # An id may hold slashes.
    Route(f"{API}/stores/{{store}}/threads/{{thread_id:path}}", reading.thread),
)

WRITING = (
    Route(f"{API}/audit", asking.audit, methods=["POST"]),
    Route(f"{API}/sweep", asking.sweep, methods=["POST"]),
    Route(f"{API}/repair", asking.repair, methods=["POST"]),
    Route(f"{API}/undo", asking.undo, methods=["POST"]),
    Route(f"{API}/pause", asking.pause, methods=["POST"]),
    Route(f"{API}/resume", asking.resume, methods=["POST"]),
)


def make_app(site: Site) -> ASGIApp:
    """The application. Without a token the routes that write do not exist."""
    routes = READING if site.settings.token is None else READING + WRITING
    app = Starlette(
        routes=routes,
        exception_handlers={
            Problem: on_problem,
            RepairServiceError: on_error,
            HTTPException: on_http,
            Exception: on_unexpected,
        },
    )
    app.router.redirect_slashes = False
    app.state.site = site
    return Guard(app, site.settings)


@contextmanager
def serving(worker: Worker, settings: HttpSettings, ledger_url: str) -> Iterator[HttpServer]:
    """Answer over HTTP, from a thread of its own, until the context is left.

    It holds at most `readers.THREADS` database connections of its own at once, one of them between
    requests.

    Args:
        worker: The worker; its methods are called from other threads.
        settings: What the HTTP side is told.
        ledger_url: The address of the ledger's database.

    Raises:
        UsageError: The ledger's address cannot be read.
        RepairServiceError: The address cannot be listened on.
    """
    site = Site(worker, settings, ledger_url)
    try:
        with HttpServer(make_app(site), settings) as server:
            yield server
    finally:
        site.close()
