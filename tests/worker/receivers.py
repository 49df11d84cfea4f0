"""A receiver of webhooks: a real HTTP server that answers as a test wants."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

PATIENCE = 20


@dataclass(frozen=True, slots=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def document(self) -> dict[str, Any]:
        loaded: dict[str, Any] = msgspec.json.decode(self.body)
        return loaded

    @property
    def thread_id(self) -> str:
        return str(self.document["data"]["thread_id"])


Answering = Callable[["Receiver", Received], int]
"""What a receiver answers to a request: a status; 0 for not a word."""


@dataclass(slots=True)
class Receiver:
    """What a server has received.

    Attributes:
        answering: How it answers.
        location: Where a redirect leads.
        hung: Set when it is to stop hanging.
    """

    answering: Answering
    url: str = ""
    location: str = ""
    received: list[Received] = field(default_factory=list)
    hung: threading.Event = field(default_factory=threading.Event)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def threads(self) -> list[str]:
        return [each.thread_id for each in self.received]


def ok(receiver: Receiver, received: Received) -> int:
    return 204


def hangs(receiver: Receiver, received: Received) -> int:
    receiver.hung.wait(PATIENCE)
    return 0


@contextmanager
def receiver(answering: Answering = ok, *, wrap: Any = None) -> Iterator[Receiver]:
    """A server on the loopback; `wrap` makes a TLS socket of its own."""
    made = Receiver(answering)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            received = Received(self.path, headers, body)
            with made.lock:
                made.received.append(received)
                made.at_once += 1
                made.most_at_once = max(made.most_at_once, made.at_once)
            try:
                status = made.answering(made, received)
            finally:
                with made.lock:
                    made.at_once -= 1
            if status:
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("location", made.location)
                self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64  # a batch comes at once

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        if wrap is not None:
            server.socket = wrap(server.socket)
        scheme = "http" if wrap is None else "https"
        made.url = f"{scheme}://127.0.0.1:{server.server_address[1]}/hook"
        serving = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        serving.start()
        try:
            yield made
        finally:
            made.hung.set()
            server.shutdown()
            serving.join()
