"""What is shown over HTTP: stores, runs, reports and threads, over a real ledger and store."""

import io
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.run import StoreIdentity
from repair_service.repair.verdict import Verdict
from repair_service.report.past import write_past
from repair_service.worker.http import reading
from repair_service.worker.http.settings import StoreDoor
from tests.conftest import Database
from tests.ledger.examples import NOON, finding, repair
from tests.ledger.test_summaries import ended
from tests.report.pages import Page
from tests.worker.http.conftest import Served
from tests.worker.http.test_access import problem
from tests.worker.http.workers import RememberingWorker, schedule_state, store_state, worker_state

THREAD = "custom_overtaken"


def test_stores_and_schedules_are_listed(
    serve: Served,
    worker: RememberingWorker,
    database: Database,
    ledger: Ledger,
    identity: StoreIdentity,
) -> None:
    run_id = ended(ledger, identity)
    ledger.findings.record(run_id, [finding()])
    worker.now = worker_state(schedules=(schedule_state(last_run=run_id, last_exit_code=2),))
    client = serve(database.url)

    [store] = client.get("/api/v1/stores").json()["stores"]
    assert (store["name"], store["problem"]) == ("orders", None)
    assert store["summary"]["whole"]["verdicts"] == {"healthy": 8, "repairable": 2}
    assert store["summary"]["whole"]["tools"] == [{"name": "charge_card", "count": 1}]
    [schedule] = client.get("/api/v1/schedules").json()["schedules"]
    assert (schedule["last_run"], schedule["last_exit_code"]) == (str(run_id), 2)


def test_runs_are_paged_newest_first(
    serve: Served, database: Database, ledger: Ledger, identity: StoreIdentity
) -> None:
    runs = [ended(ledger, identity, started_at=NOON + timedelta(hours=n)) for n in range(5)]
    client = serve(database.url)

    seen: list[str] = []
    path = "/api/v1/runs?limit=2"
    sizes = []
    while path:
        page = client.get(path).json()
        seen += [run["id"] for run in page["runs"]]
        sizes.append(len(page["runs"]))
        path = f"/api/v1/runs?limit=2&before={page['next']}" if page["next"] else ""
    assert seen == [str(run_id) for run_id in reversed(runs)]
    assert sizes == [2, 2, 1]


@pytest.mark.parametrize("limit", ["0", "-1", "201", "x", "", "1e2", "99999999999", "٣"])
def test_a_page_has_a_largest_size(serve: Served, limit: str) -> None:
    assert "from 1 to 200" in problem(serve().get("/api/v1/runs", params={"limit": limit}), 422)


def test_a_run_is_shown_with_its_patches(
    serve: Served, database: Database, ledger: Ledger, identity: StoreIdentity
) -> None:
    run_id = ended(ledger, identity)
    ledger.repairs.settle([ledger.repairs.record(None, repair(run_id, identity))])

    shown = serve(database.url).get(f"/api/v1/runs/{run_id}").json()

    assert (shown["run"]["id"], shown["run"]["exit_code"]) == (str(run_id), 2)
    assert [each["state"] for each in shown["repairs"]] == ["settled"]
    assert shown["repairs_left_out"] is False


def test_a_runs_report_is_the_commands_own(
    serve: Served, database: Database, ledger: Ledger, identity: StoreIdentity
) -> None:
    run_id = ended(ledger, identity)
    ledger.findings.record(run_id, [finding("a"), finding("b", verdict=Verdict.MANUAL)])
    run = ledger.runs.get(run_id)
    assert run is not None
    client = serve(database.url)

    for name, path in (("json", f"/api/v1/runs/{run_id}/report"), ("html", f"/runs/{run_id}")):
        out = io.StringIO()
        write_past(name, out, run, lambda: ledger.findings.all(run_id), None)  # type: ignore[arg-type]
        assert client.get(path).text == out.getvalue()


def test_a_report_that_is_too_long_names_the_command(
    serve: Served,
    database: Database,
    ledger: Ledger,
    identity: StoreIdentity,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "MOST_HEADS", 1)
    run_id = ended(ledger, identity)
    ledger.findings.record(run_id, [finding("a"), finding("b")])

    refused = serve(database.url).get(f"/api/v1/runs/{run_id}/report")
    assert f"repair-service report {run_id} --format json" in problem(refused, 422)


def test_what_is_not_in_the_ledger_is_not_found(
    serve: Served, database: Database, ledger: Ledger, identity: StoreIdentity
) -> None:
    undo = ended(ledger, identity, verb="undo")
    client = serve(database.url)

    for name in (str(uuid4()), "last", "x" * 300):
        for path in (f"/api/v1/runs/{name}", f"/api/v1/runs/{name}/report", f"/runs/{name}"):
            problem(client.get(path), 404)
    problem(client.get("/api/v1/runs", params={"before": str(uuid4())}), 404)
    assert "looks at no heads" in problem(client.get(f"/runs/{undo}"), 404)


def test_a_ledger_that_cannot_be_reached_is_said_with_its_remedy(serve: Served) -> None:
    client = serve("postgresql://u:s3cret@127.0.0.1:1/x?connect_timeout=2")

    refused = client.get("/api/v1/runs")
    assert "check host and port" in problem(refused, 503)
    page = client.get("/")
    assert "The ledger cannot be used." in page.text
    for answer in (refused, page, client.get("/metrics"), client.get("/api/v1/stores")):
        assert "s3cret" not in answer.text


def test_a_thread_is_shown_as_the_command_shows_it_without_its_content(
    serve: Served, door: StoreDoor
) -> None:
    client = serve(door.url, stores=(door,))
    answer = client.get(f"/api/v1/stores/orders/threads/{THREAD}")

    shown = answer.json()
    [head] = shown["heads"]
    assert (shown["thread_id"], head["item"]["verdict"]) == (THREAD, "repairable")
    messages = head["channels"][0]["messages"]
    assert [message["change"] for message in messages].count("insert") == 2
    assert {message["content"] for message in messages} == {None}
    page = client.get("/thread", params={"store": "orders", "id": THREAD})
    assert {"unanswered_call", "to be put in (placeholder)"} <= set(Page(page.text).texts["div"])


def test_content_is_shown_where_the_settings_allow_it(serve: Served, door: StoreDoor) -> None:
    client = serve(door.url, stores=(door,), show_content=True)
    [head] = client.get(f"/api/v1/stores/orders/threads/{THREAD}").json()["heads"]

    said = [message["content"] for message in head["channels"][0]["messages"] if message["content"]]
    longest = max(said, key=len)
    assert len(longest) > 12
    page = client.get("/thread", params={"store": "orders", "id": THREAD}).text
    assert longest in Page(page).shown
    without = serve(door.url, stores=(door,)).get(
        "/thread", params={"store": "orders", "id": THREAD}
    )
    assert longest not in without.text


def test_a_thread_that_is_not_there(serve: Served, door: StoreDoor) -> None:
    client = serve(door.url, stores=(door,))

    for thread in ("none", "a/b", "a%00b", "x" * 5000, "../orders", "%2e%2e%2f"):
        problem(client.get(f"/api/v1/stores/orders/threads/{thread}"), 404)
    problem(client.get(f"/api/v1/stores/other/threads/{THREAD}"), 404)
    problem(client.get("/thread"), 404)


def test_a_thread_whose_id_is_a_path_is_found(serve: Served, door: StoreDoor) -> None:
    import psycopg

    with psycopg.connect(door.url, autocommit=True) as connection:
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
            connection.execute(
                f"UPDATE {table} SET thread_id = 'tenant/7 ü?' WHERE thread_id = %s".encode(),
                (THREAD,),
            )

    path = "/api/v1/stores/orders/threads/tenant%2F7%20%C3%BC%3F"
    assert serve(door.url, stores=(door,)).get(path).json()["thread_id"] == "tenant/7 ü?"


def test_a_store_that_cannot_be_worked_with_is_not_asked(
    serve: Served, worker: RememberingWorker, door: StoreDoor
) -> None:
    worker.now = worker_state(stores=(store_state(problem="A table is missing; see doctor."),))

    refused = serve(door.url, stores=(door,)).get(f"/api/v1/stores/orders/threads/{THREAD}")
    assert problem(refused, 503) == "A table is missing; see doctor."


def test_the_page_says_what_is_wrong_first(
    serve: Served,
    worker: RememberingWorker,
    database: Database,
    ledger: Ledger,
    identity: StoreIdentity,
) -> None:
    client = serve(database.url)

    def headline(**changes: Any) -> str:
        worker.now = worker_state(**changes)
        page = client.get("/")
        assert page.status_code == 200
        return "".join(Page(page.text).texts["p"])

    assert "No store has been looked at as a whole yet." in headline()
    assert "The schedules are paused." in headline(paused=True)
    assert "No replica holds the lease" in headline(leader=None, leads=False)
    ill = store_state(problem="A table is missing.")
    assert "1 store cannot be worked with: orders." in headline(stores=(ill,))
    assert "The ledger cannot be used." in headline(ledger_problem="It is gone.")
    assert Page(client.get("/").text).texts["title"] == [
        "repair-service: The ledger cannot be used."
    ]
