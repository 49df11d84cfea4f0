"""Threads that run now, as the operator's own query names them."""

from collections.abc import Sequence

from repair_service.store.asking import OwnQuery, ask_own_query
from repair_service.store.connection import StoreConnection
from repair_service.store.loading import storable

ACTIVE_QUERY = OwnQuery(
    flag="--active-query",
    statement="active_threads",
    needed="It has to be one query whose first column is the id of a thread that runs now.",
    slow="It is asked for 50 threads at a time; give it an index, or let it read less.",
)


def active_among(connection: StoreConnection, query: str, ids: Sequence[str]) -> frozenset[str]:
    """Those of the threads that the query names, asked in the open transaction.

    The query runs read-only and is rolled back to where it began, so it leaves nothing behind,
    whatever functions it calls.

    Args:
        connection: With an open transaction.
        query: A query whose first column is a thread's id.
        ids: The threads.

    Raises:
        UsageError: The query failed; the message says how, without any value of a row.
    """
    rows = ask_own_query(connection, ACTIVE_QUERY, query, {"threads": storable(ids)})
    return frozenset(row[0] for row in rows)
