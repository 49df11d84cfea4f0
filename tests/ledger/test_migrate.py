"""The ledger's tables: made once, by whoever comes first, and never by a release that is behind."""

import multiprocessing
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.schema import CreateSchema

from repair_service.demo.postgres import server_directories, start_postgres
from repair_service.errors import LedgerError, LedgerMismatch, LedgerUnreachable, UsageError
from repair_service.ledger import migrate
from repair_service.ledger.engine import make_engine
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.migrate import LedgerState
from repair_service.ledger.records.rails import Availability
from repair_service.ledger.tables import SCHEMA, metadata
from tests.conftest import Database
from tests.ledger.examples import NOON, finding, run

REVISIONS = tuple(
    sorted(
        path.name.split("_")[0]
        for path in (migrate.migrations_directory() / "versions").glob("[0-9]*.py")
    )
)
HEAD = REVISIONS[-1]
LOCK = re.search(r"pg_advisory_xact_lock\((\d+)\)", migrate.statements())
NEXT = f"""
import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{HEAD}"


def upgrade() -> None:
    op.add_column("runs", sa.Column("note", sa.Text(), nullable=True), schema="repair_service")
"""
SERVERS = {path.resolve(): path for path in server_directories()}


def tables(database: Database) -> set[str]:
    with database.connect() as connection:
        rows = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (SCHEMA,)
        )
        return {name for (name,) in rows}


def definitions(database: Database) -> set[tuple[str, ...]]:
    """Columns, constraints and indexes, as the server says them."""
    with database.connect() as connection:
        return set(
            connection.execute(
                """
                SELECT table_name, column_name, data_type, is_nullable, collation_name,
                       column_default
                FROM information_schema.columns WHERE table_schema = %(schema)s
                  AND table_name <> 'alembic_version'
                UNION ALL
                SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', '', ''
                FROM pg_constraint WHERE connamespace = %(schema)s::regnamespace
                  AND conrelid::regclass::text NOT LIKE '%%alembic_version'
                UNION ALL
                SELECT tablename, indexname, indexdef, '', '', ''
                FROM pg_indexes WHERE schemaname = %(schema)s AND tablename <> 'alembic_version'
                """,
                {"schema": SCHEMA},
            )
        )


def set_revision(database: Database, revision: str) -> None:
    with database.connect() as connection:
        connection.execute(
            "UPDATE repair_service.alembic_version SET version_num = %s", (revision,)
        )


def test_an_upgrade_makes_every_table(bare: Database) -> None:
    done = migrate.upgrade(bare.url)

    assert (done.before, done.after, done.applied) == (None, HEAD, REVISIONS)
    assert tables(bare) == {table.name for table in metadata.sorted_tables} | {"alembic_version"}
    assert migrate.check(bare.url).ready


def test_a_second_upgrade_touches_nothing(bare: Database) -> None:
    def rows_of_catalog() -> set[tuple[object, ...]]:
        with bare.connect() as connection:
            return set(
                connection.execute(
                    "SELECT oid, xmin::text FROM pg_class WHERE relnamespace = %s::regnamespace",
                    (SCHEMA,),
                )
            )

    migrate.upgrade(bare.url)
    before = rows_of_catalog()

    assert migrate.upgrade(bare.url).applied == ()

    assert rows_of_catalog() == before


def test_the_statements_see_the_tables_that_the_migrations_make(bare: Database) -> None:
    engine = make_engine(bare.url, pooled=False)
    with engine.begin() as connection:
        connection.execute(CreateSchema(SCHEMA))
        metadata.create_all(connection)
    seen = definitions(bare)
    with bare.connect() as connection:
        connection.execute("DROP SCHEMA repair_service CASCADE")

    migrate.upgrade(bare.url)

    assert definitions(bare) == seen


def test_the_printed_statements_make_the_same_ledger(bare: Database) -> None:
    with bare.connect() as connection:
        connection.execute(migrate.statements().encode())

    assert migrate.check(bare.url).ready


def test_a_downgrade_leaves_no_table(bare: Database) -> None:
    migrate.upgrade(bare.url)

    migrate.downgrade(bare.url, "base")

    assert tables(bare) == {"alembic_version"}
    assert migrate.current(bare.url).state is LedgerState.ABSENT
    assert migrate.upgrade(bare.url).applied == REVISIONS


@pytest.mark.parametrize("binaries", list(SERVERS.values()), ids=str)
def test_it_goes_up_and_down_on_every_server_here(binaries: Path) -> None:
    with start_postgres(binaries=binaries) as server:
        migrate.upgrade(server.url)
        with Ledger(server.url) as ledger:
            run_id = ledger.runs.open(run(ledger.identify(server.url, "public")))
            ledger.findings.record(run_id, [finding()])
            assert list(ledger.findings.all(run_id)) == [finding()]
        migrate.downgrade(server.url, "base")
        assert migrate.current(server.url).state is LedgerState.ABSENT
        migrate.upgrade(server.url)
        assert migrate.check(server.url).ready


def test_ten_processes_upgrade_at_once(bare: Database) -> None:
    assert LOCK is not None
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["repair_service.ledger.migrate"])
    with ExitStack() as stack:
        pool = stack.enter_context(ProcessPoolExecutor(10, mp_context=processes))
        first = stack.enter_context(bare.connect())
        # All ten have seen that there is no ledger before any of them may make it.
        first.execute("SELECT pg_advisory_lock(%s)", (int(LOCK[1]),))
        upgrades = [pool.submit(migrate.upgrade, bare.url) for _ in range(10)]
        while waiting_for_a_lock(first) < 10:
            assert not any(upgrade.done() for upgrade in upgrades)
        assert tables(bare) == set()
        first.close()

        done = [upgrade.result(timeout=60) for upgrade in upgrades]

    assert done == [migrate.Upgrade(before=None, after=HEAD, applied=REVISIONS)] * 10
    assert migrate.check(bare.url).ready


def waiting_for_a_lock(connection: "psycopg.Connection[Any]") -> int:
    row = connection.execute(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_an_upgrade_tries_again_where_a_table_was_held(bare: Database) -> None:
    migrate.upgrade(bare.url)
    holder = bare.connect()
    holder.execute("BEGIN; LOCK TABLE repair_service.runs IN ACCESS SHARE MODE")

    migrate.downgrade(bare.url, "base", wait=lambda seconds: holder.close())

    assert "runs" not in tables(bare)


def test_an_upgrade_gives_up_where_a_table_stays_held(
    bare: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "WAITS", ())
    migrate.upgrade(bare.url)
    with bare.connect() as holder, holder.transaction():
        holder.execute("LOCK TABLE repair_service.runs IN ACCESS SHARE MODE")

        with pytest.raises(LedgerError, match="held by others"):
            migrate.downgrade(bare.url, "base")

    assert "runs" in tables(bare)


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Gives this release one more migration, as the next one may have."""

    def install() -> None:
        migrations = tmp_path / "migrations"
        shutil.copytree(migrate.migrations_directory(), migrations)
        (migrations / "versions" / "next.py").write_text(NEXT)
        monkeypatch.setattr(migrate, "migrations_directory", lambda: migrations)

    return install


def test_a_ledger_that_is_behind_is_named_and_upgraded(
    bare: Database, next_release: Callable[[], None]
) -> None:
    migrate.upgrade(bare.url)
    with Ledger(bare.url) as ledger:
        run_id = ledger.runs.open(run(ledger.identify(bare.url, "public")))
    next_release()

    found = migrate.check(bare.url)

    assert (found.ready, found.current.state) == (False, LedgerState.BEHIND)
    assert (found.current.revision, found.current.pending) == (HEAD, ("next",))
    assert f"is at migration {HEAD}, behind this release" in found.remedy
    assert "`repair-service db upgrade`" in found.remedy
    assert migrate.upgrade(bare.url) == migrate.Upgrade(HEAD, "next", ("next",))
    with Ledger(bare.url) as ledger:
        assert ledger.runs.get(run_id) is not None


def test_the_printed_statements_take_a_ledger_on_from_where_it_is(
    bare: Database, next_release: Callable[[], None]
) -> None:
    migrate.upgrade(bare.url)
    next_release()

    with bare.connect() as connection:
        connection.execute(migrate.statements(HEAD).encode())

    assert migrate.check(bare.url).ready


def test_a_schema_without_tables_is_no_ledger(bare: Database) -> None:
    with bare.connect() as connection:
        connection.execute("CREATE SCHEMA repair_service")

    assert migrate.current(bare.url).state is LedgerState.ABSENT
    assert migrate.upgrade(bare.url).after == HEAD


def test_a_ledger_that_a_newer_release_made_is_left_alone(bare: Database) -> None:
    migrate.upgrade(bare.url)
    set_revision(bare, "9999")

    found = migrate.check(bare.url)

    assert (found.ready, found.current.state) == (False, LedgerState.AHEAD)
    assert found.current.revision == "9999"
    assert "a newer release made it" in found.remedy
    with pytest.raises(LedgerMismatch, match="a newer release made it"):
        migrate.upgrade(bare.url)
    with pytest.raises(LedgerMismatch, match="cannot be migrated"):
        migrate.downgrade(bare.url, "base")
    assert "runs" in tables(bare)


def test_without_a_ledger_its_questions_name_the_remedy(bare: Database) -> None:
    with Ledger(bare.url) as ledger, pytest.raises(LedgerMismatch, match="db upgrade"):
        ledger.runs.newest()


def test_an_audit_is_told_what_is_not_kept(bare: Database) -> None:
    told = migrate.available(bare.url)

    assert not told.ready
    assert "There is no ledger" in told.why
    assert "not kept" in told.why
    migrate.upgrade(bare.url)
    assert migrate.available(bare.url) == Availability(ready=True)


def test_an_unreachable_ledger_is_named_without_its_password() -> None:
    url = "postgresql://app:s3cret@127.0.0.1:1/ledger"

    with pytest.raises(LedgerUnreachable, match="nothing listens there") as failure:
        migrate.check(url)

    assert "s3cret" not in str(failure.value)
    assert "s3cret" not in migrate.available(url).why
    with Ledger(url) as ledger, pytest.raises(LedgerUnreachable) as failure:
        ledger.runs.newest()
    assert "s3cret" not in str(failure.value)


def test_an_address_that_cannot_be_read_is_not_shown() -> None:
    with pytest.raises(UsageError) as failure:
        migrate.current("postgresql//app:s3cret@host/db")

    assert "s3cret" not in str(failure.value)


def test_a_percent_sign_in_the_path_means_nothing(
    bare: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "100%" / "migrations"
    place.parent.mkdir()
    place.symlink_to(migrate.migrations_directory())
    monkeypatch.setattr(migrate, "migrations_directory", lambda: place)

    assert migrate.upgrade(bare.url).after == HEAD


def test_old_findings_are_kept_by_an_upgrade_of_a_current_ledger(bare: Database) -> None:
    migrate.upgrade(bare.url)
    with Ledger(bare.url) as ledger:
        run_id = ledger.runs.open(run(ledger.identify(bare.url, "public")))
        migrate.upgrade(bare.url)
        kept = ledger.runs.get(run_id)
    assert kept is not None
    assert kept.started_at == NOON


def test_psycopg_is_not_asked_to_prepare(bare: Database) -> None:
    migrate.upgrade(bare.url)
    engine = make_engine(bare.url)
    with engine.begin() as connection:
        for _ in range(20):
            connection.exec_driver_sql("SELECT count(*) FROM repair_service.runs")
        prepared = connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements")
        assert prepared.scalar() == 0
    engine.dispose()
