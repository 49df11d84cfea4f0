"""Liveness, readiness and metrics: what machines ask."""

from datetime import UTC, datetime, timedelta

from prometheus_client.parser import text_string_to_metric_families

from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.run import StoreIdentity
from repair_service.ledger.records.summary import Share
from repair_service.worker.metrics import MOST_NAMES, _most
from tests.conftest import Database
from tests.ledger.examples import fault, finding
from tests.ledger.test_summaries import ended
from tests.worker.http.conftest import Served
from tests.worker.http.workers import (
    NOW,
    RememberingWorker,
    running_state,
    schedule_state,
    store_state,
    worker_state,
)

Samples = dict[tuple[str, ...], float]


def samples(text: str) -> Samples:
    """Each sample by its name and label values; every metric says in words what it is."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, *(value for _, value in sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def test_a_process_lives_whatever_the_databases_do(
    serve: Served, worker: RememberingWorker
) -> None:
    worker.now = worker_state(ledger_problem="It is gone.", leader=None)

    assert serve().get("/healthz").json() == {"status": "alive"}


def test_a_replica_that_does_not_lead_is_ready_too(
    serve: Served, worker: RememberingWorker
) -> None:
    client = serve()
    assert client.get("/readyz").json() == {"status": "ready", "leads": True, "reasons": []}

    worker.now = worker_state(leads=False, leader="another")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["leads"]) == (200, False)


def test_what_keeps_a_replica_from_its_work_is_said(
    serve: Served, worker: RememberingWorker
) -> None:
    worker.now = worker_state(
        ledger_problem="There is no ledger. Run `repair-service db upgrade`.",
        stores=(store_state(), store_state("chat", problem="Cannot connect; check the port.")),
        leads=False,
        leader=None,
    )

    answer = serve().get("/readyz")

    assert answer.status_code == 503
    ledger, store, lease = answer.json()["reasons"]
    assert ledger == "There is no ledger. Run `repair-service db upgrade`."
    assert store == "Store chat: Cannot connect; check the port."
    assert lease.startswith("No replica is known to hold the lease")


def test_the_ledger_is_told_as_metrics(
    serve: Served, database: Database, ledger: Ledger, identity: StoreIdentity
) -> None:
    run_id = ended(ledger, identity, started_at=NOW - timedelta(hours=1))
    found = finding(faults=(fault(), fault(tool_name=None)), head_at=NOW - timedelta(hours=3))
    ledger.findings.record(run_id, [found])

    told = samples(serve(database.url).get("/metrics").text)

    def of(name: str, *labels: str) -> float:
        return told[(f"repair_service_{name}", *labels)]

    assert of("ledger_ready") == 1
    assert of("heads", "orders", "repairable") == 2
    assert of("heads", "orders", "failed") == 0
    assert of("faults", "unanswered_call", "orders") == 3
    assert of("tool_faults", "orders", "charge_card") == 1
    assert of("tool_faults", "orders", "unknown") == 1
    assert of("tool_faults", "orders", "other") == 1
    assert of("model_faults", "gpt-5", "orders") == 2
    # As old as NOW is by now, which is when the tests began.
    oldest = of("oldest_repairable_seconds", "orders") - 3 * 3600
    assert 0 <= oldest <= (datetime.now(UTC) - NOW).total_seconds()
    assert of("runs_total", "2", "orders", "sweep") == 1
    assert of("last_run_duration_seconds", "orders", "sweep") == 30
    assert of("throttled_seconds_total", "orders", "sweep") == 1.5
    assert of("repairs_total", "orders") == 0
    assert told[("process_open_fds",)] > 0


def test_many_scrapes_ask_the_ledger_once(
    serve: Served, database: Database, ledger: Ledger, identity: StoreIdentity
) -> None:
    client = serve(database.url)
    first = samples(client.get("/metrics").text)
    ended(ledger, identity)
    second = samples(client.get("/metrics").text)

    assert ("repair_service_repairs_total", "orders") in first
    assert not [key for key in second if key[0] == "repair_service_runs_total"]


def test_what_this_replica_does_is_told_without_a_ledger(
    serve: Served, worker: RememberingWorker
) -> None:
    """Old numbers would pass for new ones, so there are none."""
    worker.now = worker_state(
        leads=False,
        leader=None,
        paused=True,
        running=(running_state(),),
        schedules=(schedule_state(misfires=4, next_run=None),),
    )

    told = samples(serve().get("/metrics").text)

    assert told[("repair_service_ledger_ready",)] == 0
    assert told[("repair_service_lease_held",)] == 0
    assert told[("repair_service_leader",)] == 0
    assert told[("repair_service_paused",)] == 1
    assert told[("repair_service_running", "orders", "sweep")] == 1
    assert told[("repair_service_schedule_misfires_total", "nightly", "orders", "sweep")] == 4
    names = {key[0] for key in told}
    assert "repair_service_schedule_next_run_timestamp_seconds" not in names
    assert "repair_service_repairs_total" not in names


def test_a_scraper_may_ask_for_openmetrics(serve: Served) -> None:
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}

    answer = serve().get("/metrics", headers=accept)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_however_many_tools_there_are_few_series_tell_of_them() -> None:
    shares = [Share(None if number == 3 else f"tool {number}", 10) for number in range(20)]

    shown = _most(shares, total=1000)

    assert len(shown) == MOST_NAMES + 1
    assert (shown["unknown"], shown["other"]) == (10, 1000 - 10 * MOST_NAMES)
    assert sum(shown.values()) == 1000
    assert _most([Share("other", 1), Share("unknown", 2), Share(None, 4)], 8) == {
        "other": 2,
        "unknown": 6,
    }
