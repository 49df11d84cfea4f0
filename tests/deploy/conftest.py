"""A damaged store, with the roles that psql makes of deploy/postgres/roles.sql."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from repair_service.demo.installations import server_directories
from repair_service.ledger import migrate
from tests.conftest import Corpus, Database, with_options

DEPLOY = Path(__file__).parents[2] / "deploy"
PASSWORD = "made-up"
ROLES = ("auditor", "repairer", "undoer", "migrator")


@dataclass(frozen=True, slots=True)
class Roles:
    """The store, and each role's own way in.

    Attributes:
        owner: The store as its owner sees it.
        names: The roles' names by their short ones.
    """

    owner: Database
    names: dict[str, str]

    def url(self, role: str) -> str:
        return with_options(self.owner.url, user=self.names[role], password=PASSWORD)

    def connect(self, role: str) -> "psycopg.Connection[Any]":
        return psycopg.connect(self.url(role), autocommit=True)


@pytest.fixture
def roles(load_corpus: Callable[[str], Corpus]) -> Iterator[Roles]:
    """The newest damaged store and its ledger, and roles with names of this test's own."""
    store = load_corpus("python-1.2.24").database
    if store.schema != "public":
        pytest.skip("the role of REPAIR_TEST_DSN may not create databases, so no roles either")
    names = {role: f"repair {role} {uuid4().hex[:12]}" for role in ROLES}
    made = Roles(store, names)
    with ExitStack() as stack:
        owner = stack.enter_context(store.connect())
        stack.callback(_drop, owner, names)
        owner.execute("CREATE TABLE users (id int PRIMARY KEY)")
        # Twice: what an operator runs again after a change must not fail.
        create_roles(store, names)
        create_roles(store, names)
        for name in names.values():
            owner.execute(
                sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(name), PASSWORD)
            )
        migrate.upgrade(made.url("migrator"))
        yield made


def create_roles(store: Database, names: dict[str, str], *more: str) -> None:
    """Run roles.sql with psql, with more variables as `name=value`."""
    given = (*(f"{short}={name}" for short, name in names.items()), *more)
    variables = [f"--set={variable}" for variable in given]
    file = DEPLOY / "postgres" / "roles.sql"
    done = subprocess.run(
        [psql(), "-X", "-q", "--set=ON_ERROR_STOP=1", *variables, f"--file={file}", store.url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def psql() -> str:
    """The program, which comes with each of the servers that the tests can start."""
    beside = (directory / "psql" for directory in server_directories())
    found = next((str(path) for path in beside if path.is_file()), None) or shutil.which("psql")
    assert found is not None, "no psql: install postgresql-client, or the extra `demo`"
    return found


def _drop(owner: "psycopg.Connection[Any]", names: dict[str, str]) -> None:
    for name in names.values():
        role = sql.Identifier(name)
        if owner.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).rowcount:
            owner.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))
            owner.execute(sql.SQL("DROP ROLE {}").format(role))
