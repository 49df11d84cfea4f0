"""Whether the process lives, whether it is ready, and the metrics: what machines ask."""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from repair_service.worker.http.site import Site
from repair_service.worker.metrics import exposition
from repair_service.worker.state import WorkerState


async def healthz(request: Request) -> Response:
    """The process lives and answers; asks nothing, so that a lost database restarts nobody."""
    return as_json({"status": "alive"})


async def readyz(request: Request) -> Response:
    """Whether this replica can do its work, leading or not; the reasons where it cannot."""
    site: Site = request.app.state.site
    state = site.worker.state()
    reasons = list(unready(state))
    document = {
        "status": "not ready" if reasons else "ready",
        "leads": state.leads,
        "reasons": reasons,
    }
    return as_json(document, status=503 if reasons else 200)


async def metrics(request: Request) -> Response:
    """The metrics, in the format that the scraper asks for."""
    site: Site = request.app.state.site
    summaries = await site.summaries()
    accept = request.headers.get("accept", "")
    text, content_type = exposition(site.worker.state(), summaries, datetime.now(UTC), accept)
    return Response(text, headers={"Content-Type": content_type})


def unready(state: WorkerState) -> Iterator[str]:
    """What keeps a replica from its work, each with its remedy."""
    if state.ledger_problem is not None:
        yield state.ledger_problem
    for store in state.stores:
        if store.problem is not None:
            yield f"Store {store.name}: {store.problem}"
    if state.leader is None:
        yield (
            "No replica is known to hold the lease, so no schedule runs. One takes it within "
            "seconds of a start, or of the last one's end, where the ledger can be written."
        )


def as_json(document: object, status: int = 200) -> Response:
    """A JSON answer, indented for people."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2)
    return Response(text + b"\n", status_code=status, media_type="application/json")
