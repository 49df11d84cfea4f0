"""Two replicas over one ledger and store: one dies or stops in the middle of a sweep."""

import os
import time
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.worker.conftest import SLOWLY, Site, Worker

LEASE = 6.0

COPIES = 12

SETTINGS = f"""
min_idle = "0"
active_query = "{SLOWLY}"
[worker]
lease = "{LEASE:.0f}s"
look = "1s"
listen = "127.0.0.1:0"
[schedules.often]
verb = "sweep"
every = "3s"
"""


def in_the_middle_of_a_sweep(worker: Worker) -> dict[str, Any]:
    """Wait until a run of that replica has written a patch; returns its line."""
    worker.events.wait_for("a run begins", schedule="often")
    return worker.events.wait_for("repaired")


def assert_all_was_repaired_once(site: Site, copies: int) -> None:
    repaired = site.asked(
        "SELECT thread_id, count(*) FROM repair_service.repairs WHERE state = 'settled'"
        " GROUP BY thread_id"
    )
    assert len(repaired) == copies + 1
    assert {count for _, count in repaired} == {1}
    patches = site.asked(
        "SELECT thread_id, count(*) FROM checkpoints WHERE metadata ? 'repair_service'"
        " GROUP BY thread_id"
    )
    assert sorted(patches) == sorted(repaired)


def assert_no_time_was_run_twice(site: Site) -> None:
    """Each time of the schedule has one request at most, and no two runs overlap."""
    [(dues, distinct)] = site.asked(
        "SELECT count(due_at), count(DISTINCT due_at) FROM repair_service.requests"
    )
    assert dues == distinct > 0
    overlaps = site.asked(
        "SELECT a.id, b.id FROM repair_service.runs AS a JOIN repair_service.runs AS b"
        " ON a.id < b.id AND a.store_key = b.store_key"
        " AND tstzrange(a.started_at, coalesce(a.finished_at, 'infinity'))"
        " && tstzrange(b.started_at, coalesce(b.finished_at, 'infinity'))"
    )
    assert overlaps == []


def test_when_the_leader_is_killed_in_a_sweep_the_other_goes_on_within_the_leases_life(
    site: Site,
) -> None:
    site.copy(COPIES)
    site.configure(SETTINGS)
    first = site.start()
    first.events.wait_for("this replica leads")
    second = site.start()
    cut = in_the_middle_of_a_sweep(first)
    [child] = first.children()

    first.kill()
    killed = time.monotonic()

    second.events.wait_for("this replica leads")
    assert time.monotonic() - killed < LEASE + 1
    begun = second.events.wait_for("a run begins", schedule="often")
    assert begun["attempt"] == 2
    # The dead worker's run noticed, stopped between two heads, and said so in the ledger.
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    [(finished, complete, code)] = site.asked(
        "SELECT finished_at IS NOT NULL, complete, exit_code FROM repair_service.runs"
        " WHERE id = %s",
        cut["run_id"],
    )
    assert (finished, complete, code) == (True, False, 143)
    second.events.wait_for("a run ended", run_id=begun["run_id"], exit_code=0)
    second.events.wait_for("a run ended", exit_code=0)
    assert second.stop() == 0
    assert_all_was_repaired_once(site, COPIES)
    assert_no_time_was_run_twice(site)


def test_when_the_leader_is_told_to_stop_in_a_sweep_the_other_goes_on_at_once(site: Site) -> None:
    site.copy(2 * COPIES)
    site.configure(SETTINGS.replace(f'"{LEASE:.0f}s"', '"30s"'))
    first = site.start()
    first.events.wait_for("this replica leads")
    second = site.start()
    second.events.wait_for("the worker begins")
    in_the_middle_of_a_sweep(first)

    assert first.stop() == 0

    first.events.wait_for("a run was stopped", exit_code=143)
    begun = second.events.wait_for("a run begins", schedule="often")
    # It was handed back, so that it costs no attempt.
    assert begun["attempt"] == 1
    second.events.wait_for("a run ended", run_id=begun["run_id"], exit_code=0)
    assert second.stop() == 0
    assert_all_was_repaired_once(site, 2 * COPIES)
    assert_no_time_was_run_twice(site)


def test_a_leader_that_cannot_renew_its_lease_stops_its_run_before_the_lease_ends(
    site: Site,
) -> None:
    site.copy(3 * COPIES)
    site.configure(SETTINGS)
    worker = site.start()
    in_the_middle_of_a_sweep(worker)
    with psycopg.connect(site.database.url) as holder:
        holder.execute("LOCK TABLE repair_service.leases IN ROW EXCLUSIVE MODE")
        holder.execute("LOCK TABLE repair_service.leases IN SHARE MODE")
        row = holder.execute("SELECT expires_at FROM repair_service.leases").fetchone()
        assert row is not None

        stopped = worker.events.wait_for("sweep ended", exit_code=143)

        ends = row[0] - timedelta(seconds=0)
        assert stopped["timestamp"] < ends.astimezone().isoformat()
    worker.events.wait_for("a run begins", schedule="often")
