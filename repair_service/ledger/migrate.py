"""The ledger's tables: made, brought up to this release, and looked at.

What the verbs `db upgrade`, `db current` and `db check` are made of. The migrations themselves are
in `migrations/`: beside this package in a checkout, inside it in a wheel.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from io import StringIO
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

import repair_service
from repair_service.errors import LedgerError, LedgerForbidden, LedgerMismatch
from repair_service.ledger.engine import explained, make_engine
from repair_service.ledger.records.rails import Availability
from repair_service.ledger.rights import Rights, rights_of
from repair_service.ledger.tables import SCHEMA
from repair_service.store.failures import Target, read_address

WAITS = (0.5, 1.0, 2.0, 4.0)
"""Seconds between five attempts of up to 5 s: what holds a table longer is to be looked at."""

COME_AGAIN = frozenset({"55P03", "40P01"})
"""SQLSTATEs behind which the same migration may succeed: lock not available, deadlock."""

INSUFFICIENT_PRIVILEGE = "42501"

NOT_KEPT = (
    "What this run finds and writes is not kept: it will not be listed by `runs`, and its patches "
    "can be neither undone nor counted for the quarantine."
)


class LedgerState(StrEnum):
    """How the ledger's tables stand to this release."""

    ABSENT = "absent"
    """There are none."""
    BEHIND = "behind"
    """An older release made them."""
    CURRENT = "current"
    """They are this release's."""
    AHEAD = "ahead"
    """A newer release made them."""
    CLOSED = "closed"
    """The role may not look at them."""


@dataclass(frozen=True, slots=True)
class Current:
    """Which migration the ledger is at.

    Attributes:
        state: How it stands to this release.
        revision: The last migration that was run; None where there is none, or none to be seen.
        head: The last migration of this release.
        pending: Those between, first to be run first; empty when ahead.
    """

    state: LedgerState
    revision: str | None
    head: str
    pending: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """Whether the ledger can be used by this release and this role.

    Attributes:
        current: Which migration it is at.
        ready: Whether runs can be kept.
        remedy: What to do; empty when ready.
    """

    current: Current
    ready: bool
    remedy: str


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What an upgrade did.

    Attributes:
        before, after: The migration the ledger was at, and is at.
        applied: Those that were run, by this process or by one beside it.
    """

    before: str | None
    after: str
    applied: tuple[str, ...]


def migrations_directory() -> Path:
    """Where the migrations are: inside an installed package, or beside it in a checkout.

    Raises:
        LedgerError: In neither place.
    """
    package = Path(repair_service.__file__).parent
    for directory in (package / "migrations", package.parent / "migrations"):
        if (directory / "env.py").is_file():
            return directory
    raise LedgerError(
        "The ledger's migrations are not in this installation. Install repair-service again, from "
        "its wheel or a whole checkout."
    )


def current(url: str) -> Current:
    """Which migration the ledger is at; changes nothing.

    Args:
        url: The address of the ledger's database.

    Raises:
        LedgerUnreachable: No connection.
        UsageError: The address cannot be read.
    """
    return _look(url)[0]


def check(url: str) -> Check:
    """Whether this release and this role can keep a ledger there; changes nothing.

    Raises:
        LedgerUnreachable: No connection.
        UsageError: The address cannot be read.
    """
    now, rights = _look(url)
    remedy = _remedy(now, rights)
    return Check(current=now, ready=not remedy, remedy=remedy)


def available(url: str) -> Availability:
    """Whether runs can be kept there; where not, what is lost and what to do. Never raises.

    An audit needs no ledger, so it says this and goes on.
    """
    try:
        remedy = check(url).remedy
    except LedgerError as failure:
        remedy = str(failure)
    return Availability(ready=not remedy, why=f"{remedy} {NOT_KEPT}" if remedy else "")


def upgrade(url: str, *, wait: Callable[[float], None] = time.sleep) -> Upgrade:
    """Bring the ledger to this release. Any number of processes may do so at once.

    Args:
        url: The address of the ledger's database.
        wait: Called with seconds between two attempts.

    Raises:
        LedgerForbidden: The role may not; the message names the grant.
        LedgerMismatch: A newer release made the ledger.
        LedgerUnreachable: No connection.
        LedgerError: Others held the tables too long.
    """
    now, rights = _look(url)
    if now.state is LedgerState.CURRENT:
        return Upgrade(before=now.revision, after=now.head, applied=())
    if now.state is LedgerState.AHEAD:
        raise LedgerMismatch(_ahead(now))
    if now.state is LedgerState.CLOSED:
        raise LedgerForbidden(_remedy(now, rights))
    if hindrance := _hindrance(rights):
        raise LedgerForbidden(hindrance)
    _migrate(url, lambda config: command.upgrade(config, "head"), wait)
    return Upgrade(before=now.revision, after=now.head, applied=now.pending)


def downgrade(url: str, revision: str, *, wait: Callable[[float], None] = time.sleep) -> None:
    """Take the ledger back to an older migration, `base` for none. What it held is lost.

    Raises:
        LedgerError: As for `upgrade`.
    """
    _migrate(url, lambda config: command.downgrade(config, revision), wait)


def statements(since: str | None = None) -> str:
    """The SQL that an upgrade runs, for a database owner who wants to read it, or to run it.

    Args:
        since: The migration the ledger is at; None for an empty database.
    """
    output = StringIO()
    config = _config()
    config.output_buffer = output
    command.upgrade(config, f"{since}:head" if since else "head", sql=True)
    return output.getvalue()


def _look(url: str) -> tuple[Current, Rights]:
    target = read_address(url)
    engine = make_engine(url, pooled=False)
    with explained(target), engine.connect() as connection:
        rights = rights_of(connection)
        return _current(connection, rights), rights


def _current(connection: Connection, rights: Rights) -> Current:
    scripts = ScriptDirectory.from_config(_config())
    head = scripts.get_current_head()
    if head is None:
        raise LedgerError("This installation has no migrations. Install repair-service again.")
    context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
    if not rights.tables:
        revision = None
    elif not rights.may_use_schema:
        return Current(LedgerState.CLOSED, None, head, ())
    else:
        try:
            revision = context.get_current_revision()
        except DBAPIError as failure:
            if getattr(failure.orig, "sqlstate", None) != INSUFFICIENT_PRIVILEGE:
                raise
            return Current(LedgerState.CLOSED, None, head, ())
    known = [script.revision for script in scripts.walk_revisions()][::-1]
    if revision is None:
        return Current(LedgerState.ABSENT, None, head, tuple(known))
    if revision not in known:
        return Current(LedgerState.AHEAD, revision, head, ())
    pending = tuple(known[known.index(revision) + 1 :])
    state = LedgerState.BEHIND if pending else LedgerState.CURRENT
    return Current(state, revision, head, pending)


def _remedy(now: Current, rights: Rights) -> str:
    """What keeps the ledger from being used, and what to do; empty where nothing does."""
    match now.state:
        case LedgerState.CURRENT | LedgerState.CLOSED:
            return rights.remedy_to_write() or ""
        case LedgerState.AHEAD:
            return _ahead(now)
        case LedgerState.ABSENT:
            found = f"There is no ledger in the database {rights.database}."
        case LedgerState.BEHIND:
            found = (
                f"The ledger in the database {rights.database} is at migration {now.revision}, "
                f"behind this release, which needs {now.head}."
            )
    return f"{found} {_hindrance(rights) or 'Run `repair-service db upgrade`.'}"


def _hindrance(rights: Rights) -> str | None:
    """What keeps this role from an upgrade."""
    return rights.remedy_to_write() if rights.read_only else rights.remedy_to_make()


def _ahead(now: Current) -> str:
    return (
        f"The ledger is at migration {now.revision}, which this release "
        f"({repair_service.__version__}) does not know: a newer release made it. Run that release, "
        "or give another database with --ledger-url."
    )


def _migrate(url: str, run: Callable[[Config], None], wait: Callable[[float], None]) -> None:
    target = read_address(url)
    with explained(target):
        for pause in WAITS:
            try:
                _attempt(url, target, run)
            except DBAPIError as failure:
                if getattr(failure.orig, "sqlstate", None) not in COME_AGAIN:
                    raise
                wait(pause)
            else:
                return
        _attempt(url, target, run)


def _attempt(url: str, target: Target, run: Callable[[Config], None]) -> None:
    """Migrate in one transaction: all of it or nothing."""
    # Behind the lock, the version must be read as it is then.
    engine = make_engine(url, pooled=False).execution_options(isolation_level="READ COMMITTED")
    with engine.begin() as connection:
        config = _config()
        config.attributes["connection"] = connection
        try:
            run(config)
        except CommandError as failure:
            raise LedgerMismatch(
                f"The ledger in {target.text} cannot be migrated by this release: {failure}."
            ) from None


def _config() -> Config:
    config = Config()
    # The configuration's own syntax gives % a meaning.
    config.set_main_option("script_location", str(migrations_directory()).replace("%", "%%"))
    return config
