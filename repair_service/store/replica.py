"""Whether two servers hold one store: a replica and its primary."""

import secrets

from repair_service.errors import StoreError, StoreUnreachable, UsageError
from repair_service.store.connection import StoreConnection

PROBE_SPACE = 0x52505242
"""First key of the advisory lock by which a server is known again ("RPRB")."""


def check_replica(primary: StoreConnection, replica: StoreConnection) -> None:
    """Refuses to read one store where another one is meant.

    A replica has its primary's system identifier and the same databases, and replays what another
    server writes. An address that leads to the primary itself is taken too: so it is with a
    provider's reading address while there is no replica.

    Args:
        primary: The store.
        replica: The server to read from.

    Raises:
        UsageError: They are two stores; the message says by what.
        StoreError: One of them cannot be asked.
    """
    with primary.reading():
        ours = primary.rows("server")[0]
    with replica.reading():
        theirs = replica.rows("server")[0]
    where = f"--read-url ({replica.target.text}) is no replica of the store"
    if ours.database != theirs.database:
        raise UsageError(
            f"{where}: its database is {theirs.database}, and the store's is {ours.database}. "
            "Give the same database on a replica."
        )
    identifiers = {_system_identifier(primary), _system_identifier(replica)} - {None}
    if len(identifiers) > 1:
        raise UsageError(
            f"{where}: its system identifier is another, so it is no physical copy of the primary. "
            "Give the address of a streaming replica."
        )
    if not theirs.in_recovery and not _is_same_server(primary, replica):
        raise UsageError(
            f"{where}: it takes writes of its own. Give the address of a streaming replica."
        )


def _system_identifier(connection: StoreConnection) -> str | None:
    """The number that initdb gave a server and its physical copies; None where it is not told."""
    try:
        with connection.reading():
            identifier: str = connection.rows("system_identifier")[0].system_identifier
    except StoreUnreachable:
        raise
    except StoreError:
        return None  # some providers let nobody ask
    return identifier


def _is_same_server(one: StoreConnection, other: StoreConnection) -> bool:
    """Whether two connections lead to one database: a lock that one holds is seen by the other."""
    keys = {"space": PROBE_SPACE, "thread": secrets.randbits(31)}
    with one.looking(), other.looking():
        one.rows("try_lock_thread", keys)
        return not other.rows("try_lock_thread", keys)[0].locked
