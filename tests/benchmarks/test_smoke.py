"""The benchmarks run, on a store so small that their figures say nothing."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from tests.benchmarks.fill import Shape, fill
from tests.benchmarks.run import Row, main
from tests.conftest import Database


@pytest.mark.parametrize("checkpoints", [15, 30])
def test_a_filled_store_is_what_programs_leave(empty_database: Database, checkpoints: int) -> None:
    if empty_database.schema != "public":
        pytest.skip("the benchmarks fill databases, not schemas")
    fill(empty_database.url, Shape(threads=40, checkpoints=checkpoints, damaged=0.1))
    with Store.connect(empty_database.url) as store:
        sweep = Sweep(store, Policy(min_idle=0), Selection())
        found = list(sweep.audit())
    assert (sweep.totals.threads, sweep.totals.heads) == (40, 40)
    assert [each.verdict for each in found] == [Verdict.REPAIRABLE] * 4
    assert {each.route_source for each in found} == {"sibling"}
    assert (sweep.totals.salvaged, sweep.totals.placeholders) == (4, 4)
    with psycopg.connect(empty_database.url) as connection:
        assert lengths(connection) == {checkpoints: 36, checkpoints - 2: 4}


def lengths(connection: "psycopg.Connection[Any]") -> dict[int, int]:
    """How many threads have so many checkpoints, all on one chain of parents."""
    return dict(
        connection.execute(
            "WITH RECURSIVE chain AS ("
            " SELECT DISTINCT ON (thread_id) thread_id, checkpoint_id, parent_checkpoint_id"
            " FROM checkpoints ORDER BY thread_id, checkpoint_id DESC"
            "), walk AS (SELECT * FROM chain UNION ALL"
            " SELECT c.thread_id, c.checkpoint_id, c.parent_checkpoint_id FROM checkpoints c"
            " JOIN walk w ON (c.thread_id, c.checkpoint_id)"
            " = (w.thread_id, w.parent_checkpoint_id))"
            " SELECT length, count(*) FROM (SELECT count(*) AS length FROM walk GROUP BY thread_id)"
            " AS t GROUP BY length"
        ).fetchall()
    )


def test_the_benchmarks_write_their_table(tmp_path: Path, empty_database: Database) -> None:
    if empty_database.schema != "public":
        pytest.skip("the benchmarks make databases")
    table = tmp_path / "table.md"
    flags = ["--threads", "200", "--more", "400", "--rounds", "1", "--output", str(table)]
    only = [word for name in ("fetch", "get_tuple", "update_state") for word in ("--only", name)]
    assert main([*flags, *only, "--database-url", empty_database.url]) == 0
    rows = [line for line in table.read_text().splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 2 + 2 + 1
    assert empty_database.url not in table.read_text()


def test_a_figure_holds_on_its_own_side_of_the_bound() -> None:
    assert Row("", "", "", 1.2, 1.25).holds
    assert not Row("", "", "", 1.3, 1.25).holds
    assert Row("", "", "", 6, 5, at_least=True).holds
    assert not Row("", "", "", 4, 5, at_least=True).holds
