"""Around every request: who may ask, what a browser may do with the answer, no traceback."""

import os
import traceback

import structlog
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from repair_service.report.page import digest, report_style
from repair_service.worker.http.access import check_access
from repair_service.worker.http.problems import Problem, problem_response
from repair_service.worker.http.rendering import page_style
from repair_service.worker.http.settings import HttpSettings

STYLES = f"'sha256-{digest(report_style())}' 'sha256-{digest(page_style())}'"

SECURITY_HEADERS = {
    # No script at all, two styles by their hashes, and forms that only lead back here.
    "Content-Security-Policy": (
        f"default-src 'none'; style-src {STYLES}; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_log = structlog.get_logger("repair_service.worker")


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: HttpSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        try:
            check_access(self._settings, scope["method"], scope["path"], scope["headers"])
            await self._app(scope, receive, guarded)
        except ClientDisconnect:
            return
        except Problem as problem:
            await problem_response(problem)(scope, receive, guarded)
        except Exception as error:  # noqa: BLE001  # the last one to see it
            _say_unexpected(error)
            if begun:  # half an answer cannot be taken back; the server breaks it off
                return
            failed = Problem(
                500, "The worker failed at this; its log says where. Please report it."
            )
            await problem_response(failed)(scope, receive, guarded)


def _say_unexpected(error: Exception) -> None:
    """Its kind and place, not its text, which may hold content."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(last.filename)}, line {last.lineno}"
    _log.error("a request failed", error=type(error).__name__, place=place)
