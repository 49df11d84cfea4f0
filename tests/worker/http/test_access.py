"""Who may ask what, and what a browser may do with an answer."""

import base64
import time

import httpx
import pytest
import structlog

from repair_service.errors import UsageError
from repair_service.worker.http.settings import HttpSettings
from tests.worker.http.conftest import Served
from tests.worker.http.workers import TOKEN, RememberingWorker

EVERYWHERE = "0.0.0.0"  # noqa: S104  # what is tested is that it is guarded there
BEARER = {"Authorization": f"Bearer {TOKEN}"}
BASIC = {"Authorization": "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()}
WRITING = ("audit", "sweep", "repair", "undo", "pause", "resume")


def problem(answer: httpx.Response, status: int) -> str:
    """The detail of a problem; it has to be one, and of this status."""
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json()
    assert said["status"] == status
    assert "Traceback" not in answer.text
    detail: str = said["detail"]
    return detail


def test_probes_and_metrics_are_open_wherever_it_listens(serve: Served) -> None:
    for client in (serve(host=EVERYWHERE), serve(host=EVERYWHERE, token=None)):
        for path in ("/healthz", "/readyz", "/metrics"):
            assert client.get(path).status_code == 200


def test_on_loopback_reading_needs_no_token(serve: Served) -> None:
    assert serve().get("/api/v1/status").status_code == 200


def test_beyond_loopback_reading_needs_the_token(serve: Served) -> None:
    client = serve(host=EVERYWHERE)

    for path in ("/", "/api/v1/status", "/api/v1/nothing", "/thread?id=1", "/healthz/"):
        refused = client.get(path)
        problem(refused, 401)
    assert refused.headers.get_list("www-authenticate") == [
        "Bearer",
        'Basic realm="repair-service", charset="UTF-8"',
    ]
    for wrong in ("Bearer " + TOKEN[:-1] + "0", "Bearer", "Basic !!!", f"Token {TOKEN}", TOKEN):
        problem(client.get("/", headers={"Authorization": wrong}), 401)


def test_a_reader_sends_the_token_as_bearer_or_as_a_browsers_password(serve: Served) -> None:
    client = serve(host=EVERYWHERE)

    assert client.get("/api/v1/status", headers=BEARER).status_code == 200
    assert client.get("/", headers=BASIC).status_code == 200


def test_beyond_loopback_without_a_token_no_thread_is_shown(serve: Served) -> None:
    client = serve(host=EVERYWHERE, token=None)

    assert "Set its token" in problem(client.get("/"), 403)
    problem(client.get("/api/v1/runs", headers=BEARER), 403)


def test_without_a_token_the_writing_routes_do_not_exist(
    serve: Served, worker: RememberingWorker
) -> None:
    client = serve(token=None)

    for verb in WRITING:
        problem(client.post(f"/api/v1/{verb}", json={"store": "orders"}, headers=BEARER), 404)
        problem(client.get(f"/api/v1/{verb}"), 404)
    assert (worker.asked, worker.said) == ([], [])


def test_writing_takes_the_bearer_token_and_nothing_else(
    serve: Served, worker: RememberingWorker
) -> None:
    """A browser sends a password by itself, to a form of another page too; never a bearer token."""
    client = serve()
    wrong = {"Authorization": f"Bearer {TOKEN}x"}
    empty = {"Authorization": "Bearer"}

    for verb in WRITING:
        for headers in ({}, wrong, empty, BASIC):
            refused = client.post(f"/api/v1/{verb}", json={"store": "orders"}, headers=headers)
            assert "Authorization: Bearer TOKEN" in problem(refused, 401)
            assert refused.headers.get_list("www-authenticate") == ["Bearer"]
    assert (worker.asked, worker.said) == ([], [])


def test_two_authorizations_are_none(serve: Served) -> None:
    both = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")]

    problem(serve().post("/api/v1/pause", json={}, headers=both), 401)


def test_a_page_of_another_origin_may_not_write(serve: Served, worker: RememberingWorker) -> None:
    client = serve()

    for foreign in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        problem(client.post("/api/v1/pause", json={}, headers=BEARER | foreign), 403)
    assert worker.said == []
    own = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/v1/pause", json={}, headers=BEARER | own).status_code == 200


def test_on_loopback_only_its_own_names_are_answered(serve: Served) -> None:
    """A name of somebody else's that was made to point here gives itself away."""
    client = serve(allowed_hosts=("repair.internal",))

    for path in ("/", "/healthz", "/metrics", "/api/v1/status"):
        for foreign in ("evil.example", "evil.example:80", "localhost.evil.example", "[::2]"):
            problem(client.get(path, headers={"Host": foreign}), 421)
    for own in ("localhost:1234", "127.0.0.1", "[::1]:8321", "REPAIR.internal"):
        assert client.get("/healthz", headers={"Host": own}).status_code == 200


def test_beyond_loopback_named_hosts_are_checked_but_for_probes(serve: Served) -> None:
    client = serve(host=EVERYWHERE, allowed_hosts=("repair.example.com",))

    assert client.get("/healthz", headers={"Host": "10.0.0.7:8321"}).status_code == 200
    problem(client.get("/", headers=BEARER | {"Host": "10.0.0.7:8321"}), 421)
    assert client.get("/", headers=BEARER | {"Host": "repair.example.com"}).status_code == 200
    assert serve(host=EVERYWHERE).get("/", headers=BEARER | {"Host": "any"}).status_code == 200


def test_every_answer_says_what_a_browser_may_do(serve: Served) -> None:
    client = serve()
    answers = [client.get(path) for path in ("/", "/healthz", "/metrics", "/api/v1/status", "/no")]
    answers.append(client.get("/", headers={"Host": "evil.example"}))

    for headers in (answer.headers for answer in answers):
        parts = headers["content-security-policy"].split(";")
        policy = dict(part.strip().partition(" ")[::2] for part in parts)
        assert policy["default-src"] == "'none'"
        assert "script-src" not in policy
        assert "unsafe" not in headers["content-security-policy"]
        assert (policy["frame-ancestors"], policy["base-uri"]) == ("'none'", "'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        for name in ("server", "access-control-allow-origin", "set-cookie"):
            assert name not in headers


def test_paths_and_methods_that_are_not_there(serve: Served) -> None:
    client = serve()

    assert "deploy/README.md" in problem(client.get("/nothing"), 404)
    problem(client.get("/api/v1/status/"), 404)
    refused = client.delete("/healthz", headers=BEARER)
    problem(refused, 405)
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD"}
    refused = client.get("/api/v1/sweep")
    problem(refused, 405)
    assert refused.headers["allow"] == "POST"


def test_head_is_answered_as_get_without_a_body(serve: Served) -> None:
    client = serve()

    for path in ("/healthz", "/readyz", "/metrics", "/", "/api/v1/schedules"):
        got, head = client.get(path), client.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == got.headers["content-type"]


def test_an_unexpected_error_shows_nothing_of_itself(
    serve: Served, worker: RememberingWorker, capfd: pytest.CaptureFixture[str]
) -> None:
    worker.fails = ValueError("the card number 4711")

    with structlog.testing.capture_logs() as logged:
        failed = serve().post("/api/v1/sweep", json={"store": "orders"}, headers=BEARER)
        # The answer is on its way before the line is written.
        until = time.monotonic() + 30
        while not logged and time.monotonic() < until:
            time.sleep(0.01)

    assert "Please report it" in problem(failed, 500)
    assert "x-frame-options" in failed.headers
    [entry] = logged
    assert entry["error"] == "ValueError"
    assert entry["place"].startswith("workers.py, line ")
    assert "4711" not in failed.text + str(logged) + "".join(capfd.readouterr())


@pytest.mark.parametrize("token", ["", "short", "with a space in it, and long enough", "ä" * 32])
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="openssl rand -hex 32"):
        HttpSettings(token=token)


def test_no_secret_is_in_the_settings_text() -> None:
    assert TOKEN not in repr(HttpSettings(token=TOKEN))
