"""What else a server has to do, as a role that may see it, and as one that may not."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest

from repair_service.errors import StoreForbidden, UsageError
from repair_service.store.connection import Bounds
from repair_service.store.gateway import Store
from tests.conftest import Corpus, Database
from tests.store.conftest import Role


def test_sessions_of_others_count_and_our_own_do_not(database: Database) -> None:
    name = "a session at work"
    with (
        psycopg.connect(database.url, application_name=name, autocommit=True) as working,
        Store.connect(database.url) as store,
        Store.connect(database.url, application_name=name) as ours,
    ):

        def work() -> None:
            with suppress(psycopg.errors.QueryCanceled):
                working.execute("SELECT pg_sleep(60)")

        thread = threading.Thread(target=work)
        thread.start()
        try:
            until = time.monotonic() + 30
            while not (others := store.load().active_sessions()):
                assert time.monotonic() < until
            assert ours.load().active_sessions() == others - 1
        finally:
            working.cancel_safe()
            thread.join()


def test_a_role_without_the_right_is_told_what_to_grant(role: Role) -> None:
    with Store.connect(role.url) as store:
        with pytest.raises(StoreForbidden, match=f"--max-active .*GRANT pg_monitor TO {role.name}"):
            store.load().active_sessions()
        with pytest.raises(StoreForbidden, match=r"--max-lag .*GRANT pg_monitor"):
            store.load().replica_lag()
        with role.database.connect() as owner:
            owner.execute(f"GRANT pg_monitor TO {role.name}".encode())
        assert store.load().active_sessions() >= 0


def test_a_server_without_replicas_shows_no_lag(database: Database) -> None:
    with Store.connect(database.url) as store:
        assert store.load().replica_lag() is None
        assert store.load().behind() == 0


@pytest.mark.parametrize(
    ("query", "wait"),
    [
        ("SELECT true", True),
        ("SELECT false", False),
        ("SELECT count(*) FROM generate_series(1, 3);", True),
        ("SELECT 0", False),
        ("SELECT -1", False),
        ("SELECT 0.25::numeric, 'whatever'", True),
        ("SELECT NULL::boolean", False),
        ("SELECT true WHERE false", False),
        ("SELECT 'a%' LIKE 'a%'  -- of our own", True),
    ],
)
def test_the_operators_query_says_whether_to_wait(
    database: Database, query: str, wait: bool
) -> None:
    with Store.connect(database.url, read_only=True) as store:
        assert store.load().says_wait(query) is wait


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT 'yes'", "neither a truth value nor a number"),
        ("SELECT busy", "does not exist"),
        ("SELECT nextval('counter')", "may only read"),
        ("SELECT true) AS x; DROP TABLE checkpoints; --", "42601"),
        ("SELECT pg_sleep(60)", "--statement-timeout"),
    ],
)
def test_a_query_that_cannot_be_meant_is_wrong_usage(
    database: Database, query: str, said: str
) -> None:
    with database.connect() as connection:
        connection.execute("CREATE SEQUENCE counter")
    with (
        Store.connect(database.url, bounds=Bounds(statement_timeout=500)) as store,
        pytest.raises(UsageError, match="--throttle-query") as raised,
    ):
        store.load().says_wait(query)
    assert said in str(raised.value)


def test_the_share_before_a_thread_grows_from_nothing_to_all(
    load_corpus: Callable[[str], Corpus],
) -> None:
    database = load_corpus("python-1.2.24").database
    with database.connect() as connection, Store.connect(database.url) as store:
        load = store.load()
        assert load.share_before("m") is None
        connection.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, checkpoint)"
            " SELECT md5(n::text), '', '1', '{}' FROM generate_series(1, 2000) AS n"
        )
        connection.execute("ANALYZE checkpoints")
        shares = [load.share_before(text) for text in ("", "4", "8", "c", "zzz")]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert [round(share or 0, 1) for share in shares[1:4]] == pytest.approx(
        [0.25, 0.5, 0.75], abs=0.1
    )
