"""What may be asked of the worker over HTTP, and how it is refused."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

from repair_service.errors import LedgerUnreachable
from repair_service.worker.http.asking import LARGEST_BODY
from repair_service.worker.state import Request
from tests.worker.http.conftest import Served
from tests.worker.http.test_access import BEARER, problem
from tests.worker.http.workers import RememberingWorker

RUN = uuid4()


ASKED: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("audit", {}, {}),
    ("sweep", {"reason": "deploy 412"}, {"reason": "deploy 412"}),
    ("repair", {"thread": "a/b ü"}, {"thread_id": "a/b ü"}),
    ("undo", {"thread": "t"}, {"thread_id": "t"}),
    ("undo", {"run": str(RUN), "reason": "wrong"}, {"run_id": RUN, "reason": "wrong"}),
]

REFUSED: list[tuple[str, dict[str, object], int, str]] = [
    ("sweep", {"store": "other"}, 404, "/api/v1/stores lists them"),
    ("sweep", {}, 404, "no store of that name"),
    ("sweep", {"store": "orders", "reason": "refused"}, 422, "another reason"),
    ("sweep", {"store": 7}, 422, "expected `str`, got `int` - at `$.store`"),
    ("sweep", {"store": "orders", "secretfield": 1}, 422, "a field that is not known"),
    ("sweep", {"store": "orders", "reason": "x" * 1001}, 422, "$.reason"),
    ("repair", {"store": "orders"}, 422, "thread"),
    ("repair", {"store": "orders", "thread": ""}, 422, "$.thread"),
    ("repair", {"store": "orders", "thread": "a\0b"}, 422, "$.thread"),
    ("undo", {"store": "orders"}, 422, "thread or run"),
    ("undo", {"store": "orders", "thread": "t", "run": str(RUN)}, 422, "thread or run"),
    ("undo", {"store": "orders", "run": "last"}, 422, "$.run"),
]


def test_a_request_is_put_before_the_worker(serve: Served, worker: RememberingWorker) -> None:
    client = serve()

    for verb, body, asked in ASKED:
        whole = {"store": "orders", "actor": "ops@example.com", **body}
        answer = client.post(f"/api/v1/{verb}", json=whole, headers=BEARER)

        assert answer.status_code == 202
        UUID(answer.json()["request"])
        expected = {"verb": verb, "store": "orders", "actor": "ops@example.com over HTTP", **asked}
        assert worker.asked.pop() == Request(**expected)
        assert worker.asked == []


def test_the_schedules_are_paused_and_go_on(serve: Served, worker: RememberingWorker) -> None:
    client = serve()

    paused = client.post("/api/v1/pause", json={"actor": "ann"}, headers=BEARER).json()
    assert (paused["paused"], client.get("/api/v1/status").json()["paused"]) == (True, True)
    resumed = client.post("/api/v1/resume", json={}, headers=BEARER).json()
    assert (resumed["paused"], client.get("/api/v1/status").json()["paused"]) == (False, False)
    assert worker.said == [("pause", "ann over HTTP"), ("resume", "somebody over HTTP")]


def test_what_cannot_be_meant_is_refused_with_its_reason(
    serve: Served, worker: RememberingWorker
) -> None:
    client = serve()

    for verb, body, status, said in REFUSED:
        refused = client.post(f"/api/v1/{verb}", json=body, headers=BEARER)
        assert said in problem(refused, status)
        assert "secretfield" not in refused.text
    assert worker.asked == []


def test_what_a_form_can_send_is_no_request(serve: Served, worker: RememberingWorker) -> None:
    client = serve()
    content = json.dumps({"store": "orders"})

    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        headers = BEARER | {"Content-Type": kind}
        refused = client.post("/api/v1/sweep", content=content, headers=headers)
        assert "application/json" in problem(refused, 415)
    assert worker.asked == []


def test_a_body_that_is_no_object_is_refused(serve: Served) -> None:
    client = serve()
    headers = BEARER | {"Content-Type": "application/json; charset=utf-8"}

    for content in (b"{", b"[]", b"\xff\xfe", b"[" * 9000, b'"text"'):
        problem(client.post("/api/v1/sweep", content=content, headers=headers), 422)


def test_a_large_body_is_refused_whether_it_says_so_or_not(
    serve: Served, worker: RememberingWorker
) -> None:
    client = serve()
    large = json.dumps({"store": "orders", "reason": "x" * LARGEST_BODY}).encode()
    headers = BEARER | {"Content-Type": "application/json"}

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(large), 4096):
            yield large[start : start + 4096]

    problem(client.post("/api/v1/sweep", content=large, headers=headers), 413)
    problem(client.post("/api/v1/sweep", content=pieces(), headers=headers), 413)
    assert worker.asked == []


def test_a_lost_ledger_is_said_with_its_remedy(serve: Served, worker: RememberingWorker) -> None:
    worker.fails = LedgerUnreachable("The ledger cannot be reached. Try again.")

    refused = serve().post("/api/v1/sweep", json={"store": "orders"}, headers=BEARER)
    assert problem(refused, 503) == "The ledger cannot be reached. Try again."
    assert "retry-after" in refused.headers
