"""The roles of deploy/postgres/roles.sql: what each needs is there, and nothing beyond it."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from repair_service.cli.app import main
from repair_service.ledger import migrate
from repair_service.ledger.tables import metadata
from tests.conftest import Database
from tests.deploy.conftest import Roles, create_roles

CHECKPOINTS = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_migrations")
LEDGER = tuple(table.name for table in metadata.sorted_tables)
KINDS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")

READS = {(table, "SELECT") for table in CHECKPOINTS}
ADDS = {(table, "INSERT") for table in ("checkpoints", "checkpoint_blobs")}
REMOVES = {(table, "DELETE") for table in ("checkpoints", "checkpoint_blobs")}
KEEPS = {
    (f"repair_service.{table}", kind)
    for table in (*LEDGER, "alembic_version")
    for kind in ("SELECT", "INSERT", "UPDATE", "DELETE")
}
RIGHTS: dict[str, set[tuple[str, str]]] = {
    "auditor": READS,
    "repairer": READS | ADDS | KEEPS,
    "undoer": READS | ADDS | REMOVES | KEEPS,
}

FORBIDDEN = (
    "UPDATE checkpoints SET metadata = '{}'",
    "UPDATE checkpoint_blobs SET blob = NULL",
    "DELETE FROM checkpoint_writes",
    "INSERT INTO checkpoint_writes VALUES ('t', '', 'c', 'k', 0, 'messages', 'null', '')",
    "TRUNCATE checkpoints",
    "DROP TABLE checkpoints",
    "ALTER TABLE checkpoints ADD COLUMN more text",
    "SELECT * FROM users",
    "CREATE TABLE more (id int)",
    "CREATE SCHEMA more",
    "CREATE ROLE more",
)
OF_ANOTHER_ROLE = (
    ("auditor", "INSERT INTO checkpoints VALUES ('t', '', 'c')"),
    ("auditor", "DELETE FROM checkpoints"),
    ("auditor", "SELECT FROM repair_service.removed_messages"),
    ("repairer", "DELETE FROM checkpoints"),
    ("repairer", "DELETE FROM checkpoint_blobs"),
    ("repairer", "CREATE TABLE repair_service.more (id int)"),
    ("undoer", "DROP TABLE repair_service.runs"),
    ("migrator", "SELECT FROM checkpoints"),
)


@pytest.fixture
def call(roles: Roles, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a verb as one of the roles; its exit code and its report."""

    def run(role: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        monkeypatch.setenv("DATABASE_URL", roles.url(role))
        capsys.readouterr()
        code = main([*arguments, "--format", "json"])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else {"error": said.err}

    return run


def held(roles: Roles, role: str) -> set[tuple[str, str]]:
    """Every right that the role has on a table, its own and those of everybody."""
    with roles.owner.connect() as connection:
        rows = connection.execute(
            """
            SELECT format('%%s%%I', CASE nspname WHEN 'public' THEN '' ELSE nspname || '.' END,
                          relname), kind
            FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
            CROSS JOIN unnest(%s::text[]) AS kind
            WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
              AND nspname NOT IN ('pg_catalog', 'information_schema') AND nspname !~ '^pg_toast'
              AND has_table_privilege(%s, pg_class.oid, kind)
            """,
            ([*KINDS], roles.names[role]),
        )
        return {(table, kind) for table, kind in rows}


def refused(roles: Roles, role: str, statement: str) -> bool:
    """Whether the server refuses a statement for want of a right."""
    with roles.connect(role) as connection:
        try:
            connection.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege:
            return True
        return False


@pytest.mark.parametrize("role", RIGHTS)
def test_a_role_has_the_rights_of_its_verbs_and_no_others(roles: Roles, role: str) -> None:
    assert held(roles, role) == RIGHTS[role]


@pytest.mark.parametrize(
    ("role", "more"),
    [("auditor", set()), ("repairer", {"INSERT"}), ("undoer", {"INSERT", "DELETE"})],
)
def test_migrations_give_two_roles_the_pending_writes_and_nothing_else(
    roles: Roles, role: str, more: set[str]
) -> None:
    create_roles(roles.owner, roles.names, "migrations=off")
    assert held(roles, role) == RIGHTS[role]
    create_roles(roles.owner, roles.names, "migrations=on")
    assert held(roles, role) == RIGHTS[role] | {("checkpoint_writes", kind) for kind in more}


def test_the_migrator_sees_nothing_of_the_application(roles: Roles) -> None:
    assert {table for table, _ in held(roles, "migrator")} == {
        f"repair_service.{table}" for table in (*LEDGER, "alembic_version")
    }


@pytest.mark.parametrize("role", ["auditor", "repairer", "undoer", "migrator"])
def test_no_role_may_change_what_the_application_wrote(roles: Roles, role: str) -> None:
    for statement in FORBIDDEN:
        assert refused(roles, role, statement), statement


def test_a_role_may_not_do_what_the_next_one_may(roles: Roles) -> None:
    for role, statement in OF_ANOTHER_ROLE:
        assert refused(roles, role, statement), (role, statement)


def test_a_ledger_elsewhere_has_the_same_roles(roles: Roles, empty_database: Database) -> None:
    create_roles(empty_database, roles.names, "ledger_only=on")
    elsewhere = Roles(empty_database, roles.names)
    try:
        migrate.upgrade(elsewhere.url("migrator"))
        assert migrate.check(elsewhere.url("repairer")).ready
        assert held(elsewhere, "auditor") == set()
    finally:
        with empty_database.connect() as owner:
            for name in roles.names.values():
                owner.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(name)))


def test_the_auditor_can_do_all_that_only_looks(roles: Roles, call: Any, tmp_path: Path) -> None:
    assert call("auditor", "doctor")[0] == 0
    assert call("auditor", "show", "duplicate")[0] == 0
    plan = str(tmp_path / "plan.json")
    assert main(["plan", "--out", plan, "--min-idle", "0"]) == 2
    assert call("repairer", "show", plan)[0] == 0


def test_the_auditor_audits_and_cannot_sweep(roles: Roles, call: Any) -> None:
    with roles.owner.connect() as owner:
        before = rows(owner)
        code, audit = call("auditor", "audit", "--min-idle", "0")
        assert (code, audit["totals"]["verdicts"]["repairable"] > 0) == (2, True)

        code, told = call("auditor", "sweep", "--yes", "--min-idle", "0")

        assert (code, "GRANT INSERT" in told["error"], rows(owner)) == (1, True, before)


def test_the_repairer_repairs_all_that_the_audit_found(roles: Roles, call: Any) -> None:
    _, audit = call("auditor", "audit", "--min-idle", "0")

    _, sweep = call("repairer", "sweep", "--yes", "--min-idle", "0")

    found = audit["totals"]["verdicts"]
    assert sweep["totals"]["verdicts"]["repaired"] == found["repairable"] > 0
    assert "repairable" not in call("auditor", "audit", "--min-idle", "0")[1]["totals"]["verdicts"]
    with roles.owner.connect() as connection:
        kept = connection.execute("SELECT count(*) FROM repair_service.repairs").fetchone()
    assert kept == (found["repairable"],)


def test_only_the_undoer_takes_a_run_back(roles: Roles, call: Any) -> None:
    with roles.owner.connect() as owner:
        before = rows(owner)
        _, sweep = call("repairer", "sweep", "--yes", "--min-idle", "0")
        run = sweep["run"]["id"]
        assert rows(owner) != before

        code, told = call("repairer", "undo", "--run", run, "--yes")
        assert (code, "GRANT DELETE" in told["error"]) == (1, True)

        code, _ = call("undoer", "undo", "--run", run, "--yes")
        assert (code, rows(owner)) == (0, before)


def test_a_migration_is_refused_before_it_writes_until_its_rights_are_there(
    roles: Roles, call: Any, tmp_path: Path
) -> None:
    words = ("migrate", "nodes", "--rename", "tools=toolbox", "--min-idle", "0")
    plan = str(tmp_path / "plan.json")
    grant = f'GRANT INSERT ON "public".checkpoint_writes TO "{roles.names["repairer"]}";'
    assert call("repairer", *words, "--out", plan)[0] == 2
    with roles.owner.connect() as owner:
        before = rows(owner)
        for verb in ((*words, "--yes"), ("apply", plan, "--yes")):
            code, told = call("repairer", *verb)
            assert (code, grant in told["error"]) == (1, True)
        assert rows(owner) == before

        create_roles(roles.owner, roles.names, "migrations=on")
        code, migrated = call("repairer", *words, "--yes")
        assert (code, migrated["totals"]["verdicts"]["repaired"] > 0) == (0, True)
        run = migrated["run"]["id"]
        assert call("repairer", "undo", "--run", run, "--yes")[0] == 1
        assert call("undoer", "undo", "--run", run, "--yes")[0] == 0
        assert rows(owner) == before


def rows(connection: "psycopg.Connection[Any]") -> list[Any]:
    """Every row of the four tables."""
    found: list[Any] = []
    for table in CHECKPOINTS:
        query = sql.SQL("SELECT t::text FROM {} AS t ORDER BY 1").format(sql.Identifier(table))
        found.extend((table, *row) for row in connection.execute(query))
    return found
