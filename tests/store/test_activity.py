"""The operator's own query for the threads that run now: asked, bounded, and unable to write."""

from collections.abc import Callable, Iterator

import pytest

from repair_service.errors import Drifted, UsageError
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.connection import Bounds
from repair_service.store.gateway import Store
from repair_service.sweep.record import NoRecord
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from repair_service.sweep.write import write_patch
from tests.conftest import Corpus, Database

RUNNING = "SELECT id, state FROM app_runs WHERE state LIKE 'run%' -- of the application's own table"
POLICY = Policy(min_idle=0.0)


@pytest.fixture
def damaged(load_corpus: Callable[[str], Corpus]) -> Database:
    database = load_corpus("python-1.2.24").database
    with database.connect() as connection:
        connection.execute("CREATE TABLE app_runs (id text, state text)")
        connection.execute(
            "INSERT INTO app_runs VALUES ('agent_three', 'running'), ('orphan', 'running'),"
            " ('agent_partial', 'done'), ('agent_ask', 'running')"
        )
    return database


@pytest.fixture
def store(damaged: Database) -> Iterator[Store]:
    with Store.connect(damaged.url, schema=damaged.schema) as opened:
        yield opened


def swept(store: Store, query: str | None) -> dict[str, Diagnosis]:
    sweep = Sweep(store, POLICY, Selection(), active_query=query)
    return {each.thread_id: each for each in sweep.repair()}


def test_only_those_that_were_asked_about_are_named(store: Store) -> None:
    named = store.active_threads(RUNNING, ["agent_three", "agent_partial"])
    assert named == {"agent_three"}


def test_a_thread_that_runs_is_active_and_not_written(store: Store) -> None:
    done = swept(store, RUNNING + ";")
    assert done["agent_three"].verdict is Verdict.ACTIVE
    assert "--active-query" in done["agent_three"].reason
    assert {fault.mend for fault in done["agent_three"].faults} == {"none"}
    # What is left to a person may be mended by the run itself; an open question is one either way.
    assert done["orphan"].verdict is Verdict.ACTIVE
    assert done["agent_ask"].verdict is Verdict.WAITING
    assert done["agent_partial"].verdict is Verdict.REPAIRED
    assert swept(store, None)["agent_three"].verdict is Verdict.REPAIRED


def test_a_run_that_began_after_the_diagnosis_keeps_the_patch_out(
    store: Store, damaged: Database
) -> None:
    diagnosis = next(
        each
        for each in Sweep(store, POLICY, Selection(), active_query=RUNNING).audit()
        if each.thread_id == "agent_partial"
    )
    with damaged.connect() as connection:
        connection.execute("UPDATE app_runs SET state = 'running' WHERE id = 'agent_partial'")
    outcome = write_patch(store, diagnosis, POLICY, NoRecord(), active_query=RUNNING)
    assert outcome.verdict is Verdict.DRIFTED
    assert "runs now" in outcome.reason
    assert diagnosis.patch is not None
    assert not store.has_checkpoint("agent_partial", "", diagnosis.patch.row.checkpoint_id)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT id FROM no_such_table", 'relation "no_such_table" does not exist'),
        ("SELEKT id", "syntax error"),
        ("SELECT id FROM app_runs) AS x; DROP TABLE app_runs; --", "42601"),
        ("WITH gone AS (DELETE FROM app_runs RETURNING id) SELECT id FROM gone", "data-modifying"),
        ("SELECT nextval('counter')::text", "writes, and may only read"),
        ("SELECT (1 / 0)::text", "SQLSTATE 22012"),
        ("SELECT pg_sleep(60)::text", "--statement-timeout"),
    ],
)
def test_a_query_that_fails_is_wrong_usage_and_changes_nothing(
    damaged: Database, query: str, said: str
) -> None:
    with damaged.connect() as connection:
        connection.execute("CREATE SEQUENCE counter")
    with (
        Store.connect(damaged.url, schema=damaged.schema, bounds=Bounds(2_000)) as store,
        pytest.raises(UsageError, match="--active-query") as raised,
    ):
        swept(store, query)
    assert said in str(raised.value)
    with damaged.connect() as connection:
        assert connection.execute("SELECT count(*) FROM app_runs").fetchone() == (4,)
        assert connection.execute("SELECT is_called FROM counter").fetchone() == (False,)


def test_the_message_holds_no_value_of_a_row(store: Store) -> None:
    with pytest.raises(UsageError) as raised:
        store.active_threads("SELECT state::integer::text FROM app_runs", ["agent_three"])
    assert "running" not in str(raised.value)


def test_what_was_written_before_the_query_is_committed_with_it(store: Store) -> None:
    """The savepoint is read-only, the transaction around it is not."""
    assert swept(store, RUNNING)["agent_partial"].verdict is Verdict.REPAIRED
    assert swept(store, RUNNING).get("agent_partial") is None


def test_a_worker_at_the_thread_keeps_the_answer_open(store: Store, damaged: Database) -> None:
    from repair_service.store.append import LOCK_SPACE, lock_key

    with damaged.connect() as connection, connection.transaction():
        keys = (LOCK_SPACE, lock_key(damaged.schema, "agent_three"))
        connection.execute("SELECT pg_advisory_xact_lock(%s::integer, %s::integer)", keys)
        with pytest.raises(Drifted, match="Another worker"):
            store.has_checkpoint("agent_three", "", "x")
