"""What Postgres and libpq say, as one sentence of ours that never shows a password.

Their own texts are not passed on: libpq puts pieces of a misread address into its messages, and
Postgres puts row values into its details.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from repair_service.errors import (
    AlreadyThere,
    RepairServiceError,
    ReplicaConflict,
    StoreError,
    StoreForbidden,
    StoreNotUnderstood,
    StoreUnreachable,
    UsageError,
)

UNREADABLE_ADDRESS = (
    "The database address cannot be read. Give it as postgresql://USER:PASSWORD@HOST/DATABASE, "
    "write special characters of the password as %XX (@ is %40, / is %2F, ? is %3F), and leave out "
    "parameters that libpq does not know."
)

UNRESOLVED = "the host's name cannot be resolved; correct it, or see to the name server"

REFUSALS = (
    ("password authentication failed", "the password was refused; correct it"),
    ("no password supplied", "a password is needed; give it in the address or in PGPASSWORD"),
    ("no pg_hba.conf entry", "the server does not admit this user from here; see its pg_hba.conf"),
    ("database", "there is no such database; correct the name", "does not exist"),
    ("role", "there is no such user; correct the name", "does not exist"),
    ("Connection refused", "nothing listens there; check host and port, and that the server runs"),
    ("No such file or directory", "there is no such socket; check the host, and that it runs"),
    ("could not translate host name", UNRESOLVED),
    ("failed to resolve host", UNRESOLVED),
    ("timeout expired", "no answer in time; check the host, the port and the firewalls between"),
    ("too many clients", "all of its connections are taken; try again later or use a pooler"),
    ("remaining connection slots", "all of its connections are taken; try again later"),
    ("starting up", "the server is starting; try again in a moment"),
    ("SSL", "no agreement on encryption; see sslmode and the certificates"),
    ("server closed the connection", "the server hung up; see its log"),
    ("Permission denied", "the socket may not be opened by this account"),
)
"""What libpq's text contains (the first and, where given, the third), and what we say."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a store is, in words that may be shown.

    Attributes:
        conninfo: The address for libpq. Secret.
        text: Database, host, port and user, without the password.
    """

    conninfo: str
    text: str


def read_address(url: str) -> Target:
    """Reads a database address.

    Args:
        url: A libpq URL or `name=value` text; a driver in the scheme (`postgresql+psycopg://`, as
            SQLAlchemy writes it) is left out.

    Raises:
        UsageError: It cannot be read, or a piece of a password would be taken for another part.
    """
    scheme, separator, rest = url.partition("://")
    conninfo = f"{scheme.partition('+')[0]}://{rest}" if separator and "=" not in scheme else url
    try:
        parts = conninfo_to_dict(conninfo)
    except (psycopg.Error, UnicodeError, ValueError):
        raise UsageError(UNREADABLE_ADDRESS) from None
    host = str(parts.get("host") or parts.get("hostaddr") or "the local socket")
    port = str(parts.get("port") or "5432")
    database = str(parts.get("dbname") or parts.get("user") or "the default")
    user = str(parts.get("user") or "the default user")
    # An @ or / of the password that was not written as %XX makes libpq cut it in the wrong place.
    misread = any("@" in part for part in (host, port, database)) or "/" in database
    if misread or not port.replace(",", "").isdigit():
        raise UsageError(UNREADABLE_ADDRESS)
    return Target(conninfo, f"database {database} at {host}:{port} as {user}")


@contextmanager
def connecting(target: Target) -> Iterator[None]:
    """Turns a failure to connect into StoreUnreachable."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as failure:
        reason = _refusal(str(failure))
        raise StoreUnreachable(f"Cannot connect to {target.text}: {reason}.") from None
    except (psycopg.Error, UnicodeError, ValueError):
        raise UsageError(UNREADABLE_ADDRESS) from None


def _refusal(said: str) -> str:
    for mark, reason, *more in REFUSALS:
        if mark in said and all(also in said for also in more):
            return reason
    return "the attempt failed; check the address and that the server runs"


@contextmanager
def querying(target: Target) -> Iterator[None]:
    """Turns what goes wrong in a statement into an error of our tree."""
    try:
        yield
    except RepairServiceError:
        raise
    except psycopg.Error as failure:
        raise _explained(failure, target) from None
    except UnicodeError:
        raise StoreNotUnderstood(
            f"Text in {target.text} is not UTF-8. The database's encoding has to be UTF8, as "
            "LangGraph needs it."
        ) from None


def _explained(failure: psycopg.Error, target: Target) -> StoreError:
    """The error of our tree that says what happened and what to do."""
    match failure:
        case psycopg.Error() if _is_conflict(failure):
            return ReplicaConflict(
                f"A replica, {target.text}, cancelled what it was asked, since it conflicted with "
                "what it replays from its primary. Set hot_standby_feedback = on there, or a "
                "greater max_standby_streaming_delay; or read from the primary."
            )
        case errors.InsufficientPrivilege():
            return StoreForbidden(
                f"The role may not do what this needs in {target.text}. "
                "Run `repair-service doctor`: it names the missing GRANT."
            )
        case errors.ReadOnlySqlTransaction():
            return StoreForbidden(
                f"Nothing can be written in {target.text}: it is read-only (a standby?). "
                "Give the address of the primary."
            )
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.InvalidSchemaName():
            return StoreNotUnderstood(
                f"The checkpoint tables are not as expected in {target.text}. Check --schema, and "
                "run `repair-service doctor`."
            )
        case errors.QueryCanceled():
            return StoreUnreachable(
                f"A statement took too long in {target.text} and was cancelled. Try again at a "
                "quieter time, or give a greater --statement-timeout."
            )
        case errors.UniqueViolation():
            return AlreadyThere(
                f"Somebody else writes the same threads in {target.text} at the same time; "
                "nothing was written. Try again when that has ended."
            )
        case errors.LockNotAvailable():
            return StoreUnreachable(
                f"A table is locked by somebody else in {target.text} (a migration?), for longer "
                "than --lock-timeout. Try again when it has ended."
            )
        case psycopg.OperationalError() | psycopg.InterfaceError() if _was_cut(failure):
            return StoreUnreachable(
                f"The connection to {target.text} was lost; an open transaction was undone. "
                "Try again."
            )
        case _:
            code = failure.sqlstate or type(failure).__name__
            return StoreError(
                f"A statement failed in {target.text} (SQLSTATE {code}). "
                "The server's log says more."
            )


def _is_conflict(failure: psycopg.Error) -> bool:
    """Whether a replica cancelled a statement, or ended the connection, to go on replaying.

    We never read in a way that makes a primary say 40001. The other codes have more than one
    cause, and only the text tells: it is there in English, or it is one of the other causes to us.
    """
    cancelled = isinstance(failure, errors.SerializationFailure)
    return cancelled or "conflict with recovery" in str(failure)


def _was_cut(failure: psycopg.Error) -> bool:
    """Whether the connection is gone: no answer at all, class 08, or the server shutting down."""
    return failure.sqlstate is None or failure.sqlstate.startswith(("08", "57P"))
