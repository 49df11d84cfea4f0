"""The server under clients that are slow, many, or rude."""

import socket
import threading
import time
from typing import Any

import pytest

from repair_service.errors import RepairServiceError
from repair_service.worker.http import asking, server
from repair_service.worker.http.application import serving
from repair_service.worker.http.problems import Problem
from repair_service.worker.http.readers import Readers
from repair_service.worker.http.settings import HttpSettings
from tests.worker.http.conftest import NOWHERE, Served
from tests.worker.http.workers import TOKEN, RememberingWorker


def connected(client: Any) -> socket.socket:
    """A bare connection to the same server, on which an answer has some seconds to come."""
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=10)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: local"], ids=["nothing", "half"])
def test_a_client_that_never_ends_its_head_is_given_up(
    serve: Served, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)

    with connected(serve()) as connection:
        connection.sendall(sent)
        assert connection.recv(100) == b""


def test_a_kept_connection_is_given_up_like_a_new_one(
    serve: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.3)

    with connected(serve()) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(10_000).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /hea")
        while connection.recv(10_000):
            pass


def test_a_body_that_comes_too_slowly_is_not_waited_for(
    serve: Served, worker: RememberingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "BODY_SECONDS", 0.2)
    head = (
        "POST /api/v1/pause HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: 10\r\n\r\n"
    )

    with connected(serve()) as connection:
        connection.sendall(head.encode() + b"{")
        assert connection.recv(10_000).startswith(b"HTTP/1.1 408")
    assert worker.said == []


def test_what_is_no_http_is_refused_without_a_word_too_many(
    serve: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    with connected(serve()) as connection:
        connection.sendall(b"\x16\x03\x01 my secret \r\n\r\n")
        assert connection.recv(10_000).startswith(b"HTTP/1.1 400")
    assert "secret" not in "".join(capfd.readouterr())


def test_a_port_that_is_taken_is_said_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = HttpSettings(port=taken.getsockname()[1])

        with (
            pytest.raises(RepairServiceError, match=r"cannot listen on 127\.0\.0\.1, port"),
            serving(RememberingWorker(), settings, NOWHERE),
        ):
            pass


@pytest.mark.parametrize("host", ["no such host.invalid", "192.0.2.1"])
def test_an_address_that_is_not_ours_is_said_at_once(host: str) -> None:
    with (
        pytest.raises(RepairServiceError, match="cannot listen on"),
        serving(RememberingWorker(), HttpSettings(host=host, port=0), NOWHERE),
    ):
        pass


def test_it_listens_on_ipv6_too(serve: Served) -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        with serving(RememberingWorker(), HttpSettings(host="::1", port=0), NOWHERE) as served:
            assert served.url == f"http://[::1]:{served.address[1]}"
    except RepairServiceError:
        pytest.skip("this machine has no IPv6")


def test_it_stops_with_no_thread_left() -> None:
    before = set(threading.enumerate())
    with serving(RememberingWorker(), HttpSettings(port=0), NOWHERE) as served:
        assert served.address[1]
    assert {thread for thread in set(threading.enumerate()) - before if thread.is_alive()} == set()


def test_work_in_threads_is_bounded_in_number_and_time() -> None:
    import asyncio

    from repair_service.worker.http import readers

    async def ask() -> tuple[int, int, str]:
        pool, hold = Readers(threads=1), threading.Event()
        with pytest.raises(Problem) as slow:
            await pool.run(hold.wait, seconds=0.05)
        # Its thread still works, so there is none for another.
        with pytest.raises(Problem) as busy:
            await pool.run(lambda: "never")
        hold.set()
        answer = await pool.run(lambda: "at last")
        pool.close()
        return slow.value.status, busy.value.status, answer

    patience, readers.PATIENCE = readers.PATIENCE, 0.05
    try:
        began = time.monotonic()
        assert asyncio.run(ask()) == (504, 503, "at last")
        assert time.monotonic() - began < 5
    finally:
        readers.PATIENCE = patience
