"""The webhook: signed, in order by thread, at least once, and never past its bounds."""

import multiprocessing
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from repair_service.errors import UsageError
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.migrate import upgrade
from repair_service.ledger.records.run import StoreIdentity
from repair_service.worker import delivery, webhook
from repair_service.worker.delivery import MOST_ATTEMPTS, Delivered, Delivery, wait_before
from repair_service.worker.webhook import Webhook
from tests.conftest import Database
from tests.ledger.examples import repair, run
from tests.worker.receivers import Received, Receiver, hangs, receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + "QUJD" * 8
STORE = StoreIdentity("postgresql://db:5432/app", "here/lang%20graph", True)

Tell = Callable[..., None]


@pytest.fixture
def told(empty_database: Database) -> Database:
    """A database with a ledger."""
    if empty_database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    upgrade(empty_database.url)
    return empty_database


@pytest.fixture
def ledger(told: Database) -> Iterator[Ledger]:
    with Ledger(told.url, tells=True) as opened:
        yield opened


@pytest.fixture
def tell(told: Database, ledger: Ledger) -> Tell:
    """Puts an event into the outbox for each thread named."""
    run_id: UUID = ledger.runs.open(run(STORE))

    def record(*thread_ids: str) -> None:
        with psycopg.connect(told.url) as connection:
            for thread_id in thread_ids:
                ledger.repairs.record(connection, repair(run_id, STORE, thread_id))

    return record


def deliver(ledger: Ledger, to: Receiver, secret: str = SECRET) -> Delivered:
    return Delivery(ledger, Webhook.of(to.url, secret)).run_once()


def later(database: Database, passed: timedelta = timedelta(days=1)) -> None:
    """As if time had passed."""
    with database.connect() as connection:
        connection.execute(
            "UPDATE repair_service.outbox SET due_at = due_at - %(past)s,"
            " claimed_until = claimed_until - %(past)s WHERE state = 'due'",
            {"past": passed},
        )


def test_an_event_can_be_verified_as_standard_webhooks_are(ledger: Ledger, tell: Tell) -> None:
    tell("thread ü")
    with receiver() as there:
        assert deliver(ledger, there) == Delivered(sent=1)

    (received,) = there.received
    document = Verifier(SECRET).verify(received.body, received.headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(OTHER).verify(received.body, received.headers)
    assert document["type"] == "thread.repaired"
    data = document["data"]
    assert (data["thread_id"], data["schema"]) == ("thread ü", "lang graph")
    assert (data["store"], data["resume"]) == (STORE.address, "continue")
    assert received.headers["content-type"] == "application/json"
    assert ledger.outbox.counts().sent == 1


def test_while_a_secret_is_changed_both_sign(ledger: Ledger, tell: Tell) -> None:
    tell("thread")
    with receiver() as there:
        deliver(ledger, there, f"{OTHER} {SECRET}")
    for secret in (OTHER, SECRET):
        Verifier(secret).verify(there.received[0].body, there.received[0].headers)


def test_a_500_is_sent_again_with_the_same_id_and_body(
    told: Database, ledger: Ledger, tell: Tell
) -> None:
    tell("thread")
    answers = [500, 200]
    with receiver(lambda there, received: answers.pop(0)) as there:
        done = deliver(ledger, there)
        assert (done.failed, done.problem) == (1, "it answered 500")
        assert deliver(ledger, there) == Delivered()  # it waits
        later(told)
        assert deliver(ledger, there) == Delivered(sent=1)

    first, second = there.received
    assert (first.id, first.body) == (second.id, second.body)


def test_the_events_of_a_thread_come_in_order_whatever_fails(
    told: Database, ledger: Ledger, tell: Tell
) -> None:
    tell("a", "b", "a", "a", "b")
    failing = {"a"}

    def answering(there: Receiver, received: Received) -> int:
        return 503 if received.thread_id in failing else 204

    with receiver(answering) as there:
        deliver(ledger, there)
        assert sorted(there.threads()) == ["a", "b", "b"]
        failing.clear()
        later(told)
        deliver(ledger, there)

    with told.connect() as connection:
        order = connection.execute(
            "SELECT id::text FROM repair_service.outbox WHERE thread_id = 'a' ORDER BY position"
        ).fetchall()
    came = [each.id for each in there.received if each.thread_id == "a"]
    assert came == [order[0][0], *(id for (id,) in order)]
    assert ledger.outbox.counts().due == 0


def test_a_redirect_is_not_followed(ledger: Ledger, tell: Tell) -> None:
    tell("thread")
    with receiver() as elsewhere, receiver(lambda there, received: 307) as there:
        there.location = elsewhere.url
        done = deliver(ledger, there)
    assert done.problem is not None
    assert "307, a redirect" in done.problem
    assert elsewhere.received == []


def test_a_receiver_that_hangs_is_left_after_a_while_and_loses_no_more_attempts(
    told: Database, ledger: Ledger, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "WHOLE_SECONDS", 0.3)
    monkeypatch.setattr(delivery, "AT_ONCE", 2)
    tell("a", "b", "c", "d")
    with receiver(hangs) as there:
        began = time.monotonic()
        done = deliver(ledger, there)
        assert time.monotonic() - began < 5
    assert (done.failed, done.problem) == (2, "no answer in time")
    with told.connect() as connection:
        attempts = connection.execute(
            "SELECT attempts FROM repair_service.outbox ORDER BY position"
        ).fetchall()
    assert attempts == [(1,), (1,), (0,), (0,)]


def test_an_answer_that_never_ends_is_not_read(
    ledger: Ledger, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "WHOLE_SECONDS", 5.0)
    tell("thread")
    with Endless() as url:
        began = time.monotonic()
        done = Delivery(ledger, Webhook.of(url, SECRET)).run_once()
        assert time.monotonic() - began < 3
    assert done == Delivered(sent=1)


def test_a_receiver_that_is_not_there_is_named_without_its_path(ledger: Ledger, tell: Tell) -> None:
    tell("thread")
    gone = Webhook.of("http://127.0.0.1:1/hook?token=s3cret", SECRET)
    assert Delivery(ledger, gone).run_once() == Delivered(failed=1, problem="no connection")
    assert gone.place == "http://127.0.0.1"
    assert "s3cret" not in repr(gone)


def test_a_certificate_that_nobody_vouches_for_is_refused(
    ledger: Ledger, tell: Tell, tmp_path: Path
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    tell("thread")
    with receiver(wrap=lambda socket: context.wrap_socket(socket, server_side=True)) as there:
        done = deliver(ledger, there)
    assert (done.problem, there.received) == ("its certificate is not valid here", [])


def test_after_the_last_attempt_it_is_given_up_and_after_a_410_at_once(
    told: Database, ledger: Ledger, tell: Tell
) -> None:
    tell("gone")
    with receiver(lambda there, received: 410) as there:
        assert deliver(ledger, there).given_up == 1
    tell("thread")
    with receiver(lambda there, received: 500) as there:
        for _ in range(MOST_ATTEMPTS - 1):
            assert deliver(ledger, there).failed == 1
            later(told)
        assert deliver(ledger, there).given_up == 1
        later(told)
        assert deliver(ledger, there) == Delivered()
    assert {dead.problem for dead in ledger.outbox.dead_letters()} == {
        "it answered 500",
        "it answered 410: it wants no more of these",
    }
    ledger.outbox.retry()
    with receiver() as there:
        assert deliver(ledger, there) == Delivered(sent=2)


def test_two_senders_at_once_send_each_event_once_and_a_thread_one_at_a_time(
    told: Database, tell: Tell
) -> None:
    tell(*(f"thread {number % 5}" for number in range(20)))

    def answering(there: Receiver, received: Received) -> int:
        with there.lock:
            under_way.append(received.thread_id)
            assert under_way.count(received.thread_id) == 1
        time.sleep(0.005)  # so that two of a thread would meet
        with there.lock:
            under_way.remove(received.thread_id)
        return 204

    under_way: list[str] = []
    with receiver(answering) as there, ThreadPoolExecutor(2) as pool:
        both = [pool.submit(send_all, told.url, there.url) for _ in range(2)]
        for sender in both:
            sender.result(timeout=30)
    assert len(there.received) == 20
    positions: dict[str, list[str]] = {}
    for each in there.received:
        positions.setdefault(each.thread_id, []).append(each.id)
    with told.connect() as connection:
        for thread_id, came in positions.items():
            order = connection.execute(
                "SELECT id::text FROM repair_service.outbox WHERE thread_id = %s ORDER BY position",
                [thread_id],
            ).fetchall()
            assert came == [id for (id,) in order]


def test_a_sender_killed_before_it_says_so_has_the_event_sent_again(
    told: Database, ledger: Ledger, tell: Tell
) -> None:
    tell("thread")
    with receiver() as there:
        sender = multiprocessing.get_context("spawn").Process(
            target=send_all, args=(told.url, there.url), kwargs={"dies": True}
        )
        sender.start()
        sender.join(30)
        assert sender.exitcode == -signal.SIGKILL
        assert len(there.received) == 1
        assert deliver(ledger, there) == Delivered()  # the claim of the dead one goes on

        later(told)
        assert deliver(ledger, there) == Delivered(sent=1)

    first, second = there.received
    assert (first.id, first.body) == (second.id, second.body)


def send_all(database_url: str, url: str, *, dies: bool = False) -> None:
    """Another sender, that sends what is due; or dies between sending and saying so."""
    with Ledger(database_url) as ledger:
        if dies:
            ledger.outbox.sent = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
        Delivery(ledger, Webhook.of(url, SECRET)).run_once()


def test_the_waits_grow_to_an_end_and_spread() -> None:
    longest = [wait_before(attempts, lambda: 1.0) for attempts in range(1, MOST_ATTEMPTS)]
    shortest = [wait_before(attempts, lambda: 0.0) for attempts in range(1, MOST_ATTEMPTS)]
    assert longest[:3] == [timedelta(seconds=s) for s in (10, 30, 90)]
    assert longest[-1] == timedelta(hours=6)
    whole = sum(filter(None, longest), timedelta())
    assert timedelta(hours=27) < whole < timedelta(hours=28)
    assert [each and each * 2 for each in shortest] == longest
    assert wait_before(MOST_ATTEMPTS) is None


@pytest.mark.parametrize(
    ("url", "secret", "said"),
    [
        ("ftp://host/x", SECRET, "https://"),
        ("https://", SECRET, "https://"),
        ("https://app:s3cret@host/", SECRET, "leave out user and password"),
        ("https://host/", "", "openssl rand"),
        ("https://host/", "whsec_s3cret!", "base64"),
        ("https://host/", "whsec_czNjcmV0", "24 are the least"),
    ],
)
def test_a_webhook_that_cannot_be_meant_is_refused_without_showing_it(
    url: str, secret: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said) as refusal:
        Webhook.of(url, secret)
    assert "s3cret" not in str(refusal.value)


class Endless:
    """A server that takes an event, and never comes to the end of its answer."""

    def __enter__(self) -> str:
        self._listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}/"

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000000000\r\n\r\n")
            try:
                while True:
                    connection.sendall(b"x" * 65_536)
            except OSError:
                return
