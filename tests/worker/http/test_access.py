"""Who may ask what, and what a browser may do with an answer."""

import base64
import logging

import httpx
import pytest

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


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_and_metrics_are_open_wherever_it_listens(serve: Served, path: str) -> None:
    assert serve(host=EVERYWHERE).get(path).status_code == 200
    assert serve(host=EVERYWHERE, token=None).get(path).status_code == 200


def test_on_loopback_reading_needs_no_token(serve: Served) -> None:
    assert serve().get("/api/v1/status").status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/v1/status", "/api/v1/nothing", "/thread?id=1"])
def test_beyond_loopback_reading_needs_the_token(serve: Served, path: str) -> None:
    client = serve(host=EVERYWHERE)

    refused = client.get(path)
    problem(refused, 401)
    assert refused.headers.get_list("www-authenticate") == [
        "Bearer",
        'Basic realm="repair-service", charset="UTF-8"',
    ]
    for wrong in ("Bearer " + TOKEN[:-1] + "0", "Bearer", "Basic !!!", f"Token {TOKEN}", TOKEN):
        problem(client.get(path, headers={"Authorization": wrong}), 401)


def test_a_reader_sends_the_token_as_bearer_or_as_a_browsers_password(serve: Served) -> None:
    client = serve(host=EVERYWHERE)

    assert client.get("/api/v1/status", headers=BEARER).status_code == 200
    assert client.get("/", headers=BASIC).status_code == 200


def test_beyond_loopback_without_a_token_no_thread_is_shown(serve: Served) -> None:
    client = serve(host=EVERYWHERE, token=None)

    assert "Set its token" in problem(client.get("/"), 403)
    problem(client.get("/api/v1/runs", headers=BEARER), 403)


@pytest.mark.parametrize("verb", WRITING)
def test_without_a_token_the_writing_routes_do_not_exist(
    serve: Served, worker: RememberingWorker, verb: str
) -> None:
    client = serve(token=None)

    problem(client.post(f"/api/v1/{verb}", json={"store": "orders"}, headers=BEARER), 404)
    problem(client.get(f"/api/v1/{verb}"), 404)
    assert (worker.asked, worker.said) == ([], [])


@pytest.mark.parametrize("verb", WRITING)
@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": "Bearer"}, BASIC],
    ids=["none", "wrong", "empty", "basic"],
)
def test_writing_takes_the_bearer_token_and_nothing_else(
    serve: Served, worker: RememberingWorker, verb: str, headers: dict[str, str]
) -> None:
    """A browser sends a password by itself, to a form of another page too; never a bearer token."""
    refused = serve().post(f"/api/v1/{verb}", json={"store": "orders"}, headers=headers)

    assert "Authorization: Bearer TOKEN" in problem(refused, 401)
    assert refused.headers.get_list("www-authenticate") == ["Bearer"]
    assert (worker.asked, worker.said) == ([], [])


def test_two_authorizations_are_none(serve: Served) -> None:
    both = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")]

    problem(serve().post("/api/v1/pause", json={}, headers=both), 401)


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
    ids=["origin", "no origin", "fetch metadata"],
)
def test_a_page_of_another_origin_may_not_write(
    serve: Served, worker: RememberingWorker, headers: dict[str, str]
) -> None:
    client = serve()

    problem(client.post("/api/v1/pause", json={}, headers=BEARER | headers), 403)
    assert worker.said == []
    own = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/v1/pause", json={}, headers=BEARER | own).status_code == 200


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/api/v1/status"])
def test_on_loopback_only_its_own_names_are_answered(serve: Served, path: str) -> None:
    """A name of somebody else's that was made to point here gives itself away."""
    client = serve(allowed_hosts=("repair.internal",))

    problem(client.get(path, headers={"Host": "evil.example"}), 421)
    problem(client.get(path, headers={"Host": "evil.example:80"}), 421)
    for own in ("localhost:1234", "127.0.0.1", "[::1]:8321", "REPAIR.internal"):
        assert client.get(path, headers={"Host": own}).status_code == 200


def test_beyond_loopback_named_hosts_are_checked_but_for_probes(serve: Served) -> None:
    client = serve(host=EVERYWHERE, allowed_hosts=("repair.example.com",))

    assert client.get("/healthz", headers={"Host": "10.0.0.7:8321"}).status_code == 200
    problem(client.get("/", headers=BEARER | {"Host": "10.0.0.7:8321"}), 421)
    assert client.get("/", headers=BEARER | {"Host": "repair.example.com"}).status_code == 200
    assert serve(host=EVERYWHERE).get("/", headers=BEARER | {"Host": "any"}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/api/v1/status", "/nothing"])
def test_every_answer_says_what_a_browser_may_do(serve: Served, path: str) -> None:
    headers = serve().get(path).headers

    policy = dict(
        part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert "script-src" not in policy
    assert "unsafe" not in headers["content-security-policy"]
    assert (policy["frame-ancestors"], policy["base-uri"]) == ("'none'", "'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers
    assert "set-cookie" not in headers


def test_a_refusal_says_it_too(serve: Served) -> None:
    refused = serve().get("/", headers={"Host": "evil.example"})

    assert refused.headers["x-frame-options"] == "DENY"
    assert refused.headers["cache-control"] == "no-store"


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


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/", "/api/v1/schedules"])
def test_head_is_answered_as_get_without_a_body(serve: Served, path: str) -> None:
    client = serve()
    got, head = client.get(path), client.head(path)

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == got.headers["content-type"]


def test_an_unexpected_error_shows_nothing_of_itself(
    serve: Served,
    worker: RememberingWorker,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    worker.fails = ValueError("the card number 4711")
    body = {"store": "orders"}

    with caplog.at_level(logging.DEBUG):
        failed = serve().post("/api/v1/sweep", json=body, headers=BEARER)

    assert "Please report it" in problem(failed, 500)
    assert "x-frame-options" in failed.headers
    said = failed.text + caplog.text + "".join(capfd.readouterr())
    assert "4711" not in said
    assert "its log says" in failed.text


@pytest.mark.parametrize("token", ["", "short", "with a space in it, and long enough", "ä" * 32])
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="openssl rand -hex 32"):
        HttpSettings(token=token)


def test_no_secret_is_in_the_settings_text() -> None:
    assert TOKEN not in repr(HttpSettings(token=TOKEN))
