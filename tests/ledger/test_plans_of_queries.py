"""Every question asked of a large ledger is answered by an index."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, Select, text

from repair_service.ledger.engine import make_engine
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.statements import findings, outbox, quarantine, repairs, runs
from tests.conftest import Database

RUN = UUID(int=7)
NOW = datetime.now(UTC) + timedelta(hours=1)
"""Later than every row, however long the tests before these take."""

QUESTIONS: dict[str, Select[Any]] = {
    "newest runs": runs.newest_runs(50, (NOW, RUN)),
    "last whole run": runs.last_whole_run("here/public", 1, 1),
    "a page of findings": findings.findings_page(RUN, ("a", ""), 500),
    "heads that are not final": findings.not_final_page(
        (RUN,), "here/public", NOW, NOW, ("a", ""), 500
    ),
    "repairs of a thread": repairs.repairs_page(
        store_key="here/public", thread_id="thread 9", limit=500
    ),
    "repairs of a run": repairs.repairs_page(run_id=RUN, before=("1f", RUN), limit=500),
    "what to undo of a run": repairs.repairs_page(
        store_key="here/public", run_id=RUN, standing=True, limit=500
    ),
    "open intents": repairs.open_intents("here/public", NOW, 500),
    "removed messages": repairs.removed_of(RUN),
    "repairs counted": quarantine.count_repairs("here/public", "thread 9", "pattern"),
    "threads in quarantine": quarantine.quarantined_among("here/public", ["thread 9"]),
    "claimed events": outbox.with_repairs([RUN]),
    "events given up": outbox.dead_letters(50),
    "the quarantine": quarantine.quarantine_page("here/public", ("a", ""), 500),
}

FILL = """
INSERT INTO repair_service.runs
SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), 'sweep', 'db', 'here/public', '{}', '{}', true,
       'ops', NULL, '0', 'pod', 1, 1, now() - n * interval '1 minute', now(), n % 2 = 0, '{}', 0,
       NULL
FROM generate_series(1, 2000) AS n;
INSERT INTO repair_service.findings
SELECT CAST(lpad(to_hex(CASE WHEN n % 2 = 0 THEN 7 ELSE n % 20 + 1 END), 32, '0') AS uuid),
       'thread ' || n, '', 'id', 'waiting', '', NULL, '[]', '{}', NULL, NULL
FROM generate_series(1, 20000) AS n;
INSERT INTO repair_service.repairs
SELECT gen_random_uuid(), CAST(lpad(to_hex(n % 20 + 1), 32, '0') AS uuid), 'here/public',
       'thread ' || n % 5000, '', 'id', 'id ' || n,
       CASE WHEN n % 1000 = 0 THEN 'intended' ELSE 'settled' END, 'pattern', '{}', '[]', '[]', '',
       now(), now(), CASE WHEN n % 1000 = 1 THEN now() END, NULL, NULL
FROM generate_series(1, 20000) AS n;
INSERT INTO repair_service.quarantine
SELECT 'here/public', 'thread ' || n, 'pattern', '', 3, now(), NULL, NULL
FROM generate_series(1, 5000) AS n;
INSERT INTO repair_service.outbox (id, repair_id, store_key, thread_id, type, state, ended_at)
SELECT id, id, store_key, thread_id, 'thread.repaired',
       CASE WHEN thread_id LIKE '%7' THEN 'dead' ELSE 'sent' END, now()
FROM repair_service.repairs;
INSERT INTO repair_service.removed_messages
SELECT id, 1, 'messages', 1, NULL, 'msgpack', '' FROM repair_service.repairs;
"""


@pytest.fixture
def filled(ledger: Ledger, bare: Database) -> Any:
    with bare.connect() as connection:
        connection.execute(FILL.encode())
        connection.execute("ANALYZE")
    with make_engine(bare.url, pooled=False).connect() as connection:
        yield connection


def plan_of(connection: Connection, statement: Select[Any]) -> str:
    compiled = statement.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})
    rows = connection.execute(text("EXPLAIN " + str(compiled).replace(":", "\\:")))
    return "\n".join(row[0] for row in rows)


def test_no_question_reads_a_whole_table(filled: Connection) -> None:
    plans = {name: plan_of(filled, statement) for name, statement in QUESTIONS.items()}

    assert {name: plan for name, plan in plans.items() if "Seq Scan" in plan} == {}


def test_a_page_needs_no_sort(filled: Connection) -> None:
    pages = (
        "newest runs",
        "last whole run",
        "a page of findings",
        "repairs of a run",
        "open intents",
        "the quarantine",
    )

    plans = {name: plan_of(filled, QUESTIONS[name]) for name in pages}

    assert {name: plan for name, plan in plans.items() if "Sort" in plan} == {}
