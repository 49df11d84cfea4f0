"""The worker from end to end: asked over HTTP, it sweeps, and shows what it did."""

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.sweep.crashed import THREAD
from tests.worker.conftest import PATIENCE, Site, Worker

TOKEN = "0123456789abcdef0123456789abcdef"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SETTINGS = """
min_idle = "0s"
[worker]
listen = "127.0.0.1:0"
look = "1s"
[schedules.nightly]
verb = "audit"
cron = "0 3 * * *"
timezone = "Europe/Berlin"
"""


@pytest.fixture
def client(site: Site, monkeypatch: pytest.MonkeyPatch) -> httpx.Client:
    """A browser, so to say, before a worker that leads."""
    site.configure(SETTINGS)
    environment = site.environment() | {"REPAIR_WORKER_TOKEN": TOKEN}
    worker = Worker(site.directory, environment)
    site.names.callback(worker.close)
    url = worker.events.wait_for("the worker begins")["url"]
    worker.events.wait_for("this replica leads")
    client = httpx.Client(base_url=url, timeout=30)
    site.names.callback(client.close)
    return client


def until(asked: Callable[[], Any]) -> Any:
    """What is asked for, once it is there."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := asked():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come")


def test_a_sweep_that_is_asked_for_is_done_and_shown(site: Site, client: httpx.Client) -> None:
    assert until(lambda: client.get("/readyz").status_code == 200)
    assert client.get("/healthz").status_code == 200
    [schedule] = client.get("/api/v1/schedules", headers=BEARER).json()["schedules"]
    assert schedule["name"] == "nightly"
    assert schedule["next_run"] is not None

    body = {"store": "default", "actor": "ops", "reason": "deploy 412"}
    assert client.post("/api/v1/sweep", json=body, headers=BEARER).status_code == 202

    def ended() -> Any:
        runs = client.get("/api/v1/runs", headers=BEARER).json()["runs"]
        return [run for run in runs if run["verb"] == "sweep" and run["finished_at"]]

    [run] = until(ended)
    assert (run["exit_code"], run["reason"]) == (0, "deploy 412")
    report = client.get(f"/api/v1/runs/{run['id']}/report", headers=BEARER).json()
    assert [item["verdict"] for item in report["items"]] == ["repaired"]
    path = f"/api/v1/stores/default/threads/{THREAD}"
    shown = client.get(path, headers=BEARER)
    assert shown.status_code == 200

    page = client.get("/", headers=BEARER)
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "nightly" in page.text
    assert run["id"] in client.get(f"/runs/{run['id']}", headers=BEARER).text
    for answer in (page, shown, client.get("/metrics"), client.get("/readyz")):
        assert "s3cret-in-the-address" not in answer.text
        assert TOKEN not in answer.text

    def counted() -> Any:
        return 'repair_service_repairs_total{store="default"} 1.0' in client.get("/metrics").text

    assert until(counted)


def test_schedules_are_paused_and_resumed(client: httpx.Client) -> None:
    def next_run() -> Any:
        return client.get("/api/v1/schedules", headers=BEARER).json()["schedules"][0]["next_run"]

    assert until(next_run)
    assert client.post("/api/v1/pause", json={}, headers=BEARER).json()["paused"] is True
    assert until(lambda: next_run() is None)
    assert client.post("/api/v1/resume", json={}, headers=BEARER).json()["paused"] is False
    assert until(next_run)
