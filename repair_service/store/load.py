"""What else a server has to do: asked between batches, so that a run can wait until it is quiet."""

from decimal import Decimal

from repair_service.errors import StoreForbidden, UsageError
from repair_service.store.asking import OwnQuery, ask_own_query
from repair_service.store.connection import StoreConnection

THROTTLE_QUERY = OwnQuery(
    flag="--throttle-query",
    statement="throttle",
    needed="It has to be one query whose first column is true, or a number above 0, to wait.",
    slow="It is asked up to once a second; let it read less.",
)

NOT_SEEN = (
    "{flag} cannot be kept: the role {role} may not see what other sessions do in {target}. "
    "As a superuser: GRANT pg_monitor TO {role}; or leave {flag} out."
)


class ServerLoad:
    """Asks one server; every question is a transaction of its own."""

    def __init__(self, connection: StoreConnection) -> None:
        self._connection = connection

    @property
    def target(self) -> str:
        """Where the server is, without a password."""
        return self._connection.target.text

    def replica_lag(self) -> float | None:
        """Seconds that the replica which is furthest behind has not applied yet.

        The server's replicas, as it sees them, and the server itself where it is one.

        Returns:
            0 where all is applied; None where no replica can be seen.

        Raises:
            StoreForbidden: The role may not see it; the message says what to grant.
            StoreUnreachable: The connection was lost.
        """
        with self._connection.reading():
            found = self._connection.rows("replica_lag")[0]
        if not found.seen:
            raise self._not_seen("--max-lag")
        if not found.replicas and not found.in_recovery:
            return None
        return max(found.of_replicas or 0.0, found.own or 0.0)

    def behind(self) -> float:
        """Seconds that this server itself is behind the one that it copies; 0 for a primary.

        Raises:
            StoreUnreachable: The connection was lost.
        """
        with self._connection.reading():
            return float(self._connection.rows("replica_lag")[0].own or 0.0)

    def active_sessions(self) -> int:
        """Sessions of clients at work, in all databases of the server, without our own.

        Raises:
            StoreForbidden: The role may not see them; the message says what to grant.
            StoreUnreachable: The connection was lost.
        """
        name = {"name": self._connection.application_name}
        with self._connection.reading():
            found = self._connection.rows("active_sessions", name)[0]
        if not found.seen:
            raise self._not_seen("--max-active")
        return int(found.active)

    def says_wait(self, query: str) -> bool:
        """Whether the operator's own query asks to wait.

        Args:
            query: A query whose first column is true, or a number above 0, to wait; it cannot
                write. No row, or NULL, is no wish to wait.

        Raises:
            UsageError: The query failed, or its first column is neither.
            StoreUnreachable: The connection was lost.
        """
        with self._connection.reading():
            rows = ask_own_query(self._connection, THROTTLE_QUERY, query, {})
        first = rows[0][0] if rows and len(rows[0]) else None
        if first is None:
            return False
        if not isinstance(first, bool | int | float | Decimal):
            raise UsageError(
                "--throttle-query gives neither a truth value nor a number. "
                f"{THROTTLE_QUERY.needed}"
            )
        return first > 0

    def share_before(self, thread_id: str) -> float | None:
        """About which share of the checkpoints stands before a thread, 0 to 1.

        Returns:
            None where the planner knows too little of the table to say.

        Raises:
            StoreUnreachable: The connection was lost.
        """
        values = {"schema": self._connection.schema, "thread": thread_id}
        with self._connection.reading():
            found = self._connection.rows("share_before", values)
        return float(found[0].share) if found else None

    def _not_seen(self, flag: str) -> StoreForbidden:
        with self._connection.reading():
            role = self._connection.rows("server")[0].role
        target = self._connection.target.text
        return StoreForbidden(NOT_SEEN.format(flag=flag, role=role, target=target))
