"""The routes that write, for programs with the token: start, repair, undo, pause, resume."""

import asyncio
from typing import Annotated, TypeVar
from uuid import UUID

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from repair_service.report.document import SCHEMA_VERSION
from repair_service.report.table import printable
from repair_service.worker.http.probes import as_json
from repair_service.worker.http.problems import Problem
from repair_service.worker.http.site import Site
from repair_service.worker.state import Request as Asked
from repair_service.worker.state import Verb

LARGEST_BODY = 16 * 1024
"""Bytes: a request is a few names and a reason."""

BODY_SECONDS = 10.0
"""How long a client may take to send it."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Reason = Annotated[str, msgspec.Meta(max_length=1_000)]
ThreadId = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000, pattern=r"^[^\x00]+\Z")]


class Anyone(msgspec.Struct, forbid_unknown_fields=True):
    """Who asks: many may share the token."""

    actor: Name = "somebody"

    @property
    def said_actor(self) -> str:
        """The actor for the ledger."""
        return f"{printable(self.actor)} over HTTP"


class Start(Anyone):
    """Look at a whole store."""

    store: Name = msgspec.field(default="")
    reason: Reason | None = None


class RepairThread(Start):
    """Repair one thread."""

    thread: ThreadId | None = None


class Undo(RepairThread):
    """Take back the patches of one thread, or of one run."""

    run: UUID | None = None


Body = TypeVar("Body", bound=Anyone)


async def audit(request: Request) -> Response:
    """Start an audit of a store now."""
    return await _ask(request, "audit", await _body(request, Start))


async def sweep(request: Request) -> Response:
    """Start a sweep of a store now."""
    return await _ask(request, "sweep", await _body(request, Start))


async def repair(request: Request) -> Response:
    """Repair one thread."""
    asked = await _body(request, RepairThread)
    if asked.thread is None:
        raise Problem(422, "thread: the id of the thread to repair is needed.")
    return await _ask(request, "repair", asked, thread_id=asked.thread)


async def undo(request: Request) -> Response:
    """Take back the patches of one thread or of one run."""
    asked = await _body(request, Undo)
    if (asked.thread is None) == (asked.run is None):
        raise Problem(422, "Either thread or run is needed: what is to be taken back.")
    return await _ask(request, "undo", asked, thread_id=asked.thread, run_id=asked.run)


async def pause(request: Request) -> Response:
    """Start nothing more on a schedule, on any replica; what runs ends."""
    site: Site = request.app.state.site
    actor = (await _body(request, Anyone)).said_actor
    await site.readers.run(lambda: site.worker.pause(actor))
    return as_json({"schema_version": SCHEMA_VERSION, "paused": True})


async def resume(request: Request) -> Response:
    """Let the schedules run again."""
    site: Site = request.app.state.site
    actor = (await _body(request, Anyone)).said_actor
    await site.readers.run(lambda: site.worker.resume(actor))
    return as_json({"schema_version": SCHEMA_VERSION, "paused": False})


async def _ask(
    request: Request,
    verb: Verb,
    asked: Start,
    *,
    thread_id: str | None = None,
    run_id: UUID | None = None,
) -> Response:
    site: Site = request.app.state.site
    site.store(asked.store)
    wanted = Asked(
        verb=verb,
        store=asked.store,
        actor=asked.said_actor,
        reason=asked.reason,
        thread_id=thread_id,
        run_id=run_id,
    )
    request_id = await site.readers.run(lambda: site.worker.ask(wanted))
    # The replica that leads does it soon; its run is in the ledger then.
    return as_json({"schema_version": SCHEMA_VERSION, "request": request_id}, status=202)


async def _body(request: Request, kind: type[Body]) -> Body:
    """The body as what a route takes.

    Raises:
        Problem: 415 where it is no JSON, 413 where it is too large, 408 where it comes too slowly,
            422 where it is not what the route takes.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise Problem(415, "The body has to be JSON: send Content-Type: application/json.")
    if not request.headers.get("content-length", "0").isdigit():
        raise Problem(400, "Content-Length is no number.")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            raw = await _read(request)
    except TimeoutError:
        raise Problem(
            408, "The body came too slowly. Send it again.", (("Connection", "close"),)
        ) from None
    try:
        return msgspec.json.decode(raw or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(422, f"The body is not what this route takes: {_said(error)}.") from None


async def _read(request: Request) -> bytes:
    too_large = Problem(
        413, f"The body has more than {LARGEST_BODY:,} bytes.", (("Connection", "close"),)
    )
    if int(request.headers.get("content-length", "0")) > LARGEST_BODY:
        raise too_large
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if len(raw) > LARGEST_BODY:
            raise too_large
    return bytes(raw)


def _said(error: Exception) -> str:
    """What is wrong with a body, without what is in it."""
    if not isinstance(error, msgspec.ValidationError):
        return "it is no valid JSON"
    text = str(error)
    # Of a field that nobody knows the name is the client's own text.
    if text.startswith("Object contains unknown field"):
        return "it has a field that is not known here"
    return text[:1].lower() + text[1:]
