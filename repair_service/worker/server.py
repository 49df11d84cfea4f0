"""HTTP in a thread of its own: the main thread hears the signals, and says when it is to end."""

import threading
from typing import Any

import uvicorn

from repair_service.errors import UsageError

MOST_REQUESTS = 64
"""Requests at once: far more than a person, a probe and a scraper ask; others get a 503."""

ENDING_SECONDS = 5
"""Seconds that open requests have to end when the worker stops."""


class HttpServer:
    """Serves one application until it is told to stop."""

    def __init__(self, application: Any, host: str, port: int) -> None:
        """Listen; nothing is answered yet.

        Args:
            application: An ASGI application.
            host, port: Where to listen; port 0 is any free one.

        Raises:
            UsageError: Nothing can listen there.
        """
        settings = uvicorn.Config(
            application,
            host=host,
            port=port,
            # Requests are counted in the metrics; a line for each probe hides the others.
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            limit_concurrency=MOST_REQUESTS,
            timeout_graceful_shutdown=ENDING_SECONDS,
        )
        self._server = uvicorn.Server(settings)
        try:
            self._socket = settings.bind_socket()
        except (OSError, SystemExit):
            raise UsageError(
                f"Nothing can listen on {host}:{port}; another process may. Give another place "
                "with --listen HOST:PORT."
            ) from None
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what is open, and no more."""
        self._server.should_exit = True
        self._thread.join(ENDING_SECONDS * 2)
        self._socket.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])
