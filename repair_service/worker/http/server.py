"""The server: uvicorn in a thread of its own, on a socket that is bound before anything starts."""

import asyncio
import socket
import threading
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from repair_service.errors import RepairServiceError
from repair_service.worker.http.settings import HttpSettings

HEAD_SECONDS = 10.0
"""How long a client may take to send the head of a request; it needs a fraction of a second."""

IDLE_SECONDS = 5
"""How long a connection is kept for a next request."""

SHUTDOWN_SECONDS = 5
"""How long answers that go on may take once the worker stops."""

MOST_CONNECTIONS = 200
"""More are answered 503 at once: a page and a few scrapers need a handful."""

BACKLOG = 128


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that gives up a client which is slow to say what it wants."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._answering():
            self._stop_waiting()
        elif self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self._answering():
            self.transport.close()


class HttpServer:
    """Serves an application from a thread of its own until it is stopped."""

    def __init__(self, app: ASGIApp, settings: HttpSettings) -> None:
        """Binds the address, so that a port that is taken is known at once.

        Args:
            app: The application.
            settings: Where it listens.

        Raises:
            RepairServiceError: The address cannot be listened on.
        """
        self._socket = _bound(settings)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=PatientProtocol,
                ws="none",
                lifespan="off",
                # A path may hold a thread's id, so no access is logged.
                access_log=False,
                log_config=None,
                log_level="warning",
                proxy_headers=False,
                server_header=False,
                limit_concurrency=MOST_CONNECTIONS,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            )
        )
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """The address and port it listens on."""
        host, port, *_ = self._socket.getsockname()
        return str(host), int(port)

    @property
    def url(self) -> str:
        """Where to find it, as a URL without a path."""
        host, port = self.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Begin to answer."""
        self._socket.listen(BACKLOG)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, and let answers that have begun come to their end."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(SHUTDOWN_SECONDS + 5)
        self._socket.close()

    def __enter__(self) -> "HttpServer":
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])


def _bound(settings: HttpSettings) -> socket.socket:
    place = f"{settings.host}, port {settings.port}"
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise RepairServiceError(f"The worker cannot listen on {place}: {_said(error)}.") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        listener.close()
        raise RepairServiceError(
            f"The worker cannot listen on {place}: {_said(error)}. Give another address or port."
        ) from None
    return listener


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
