"""Which store a ledger speaks of, and whether the two are one database."""

import secrets
from typing import Any
from urllib.parse import quote

import psycopg
from sqlalchemy import func, select

from repair_service.ledger.database import Database
from repair_service.ledger.records.run import StoreIdentity
from repair_service.store.failures import connecting, querying, read_address

TRY_LOCK = b"SELECT current_database(), pg_try_advisory_xact_lock(%s)"


def identify(ledger: Database, store_url: str, schema: str) -> StoreIdentity:
    """Names a store for a ledger.

    Addresses do not tell whether two connections lead to one database (a pooler, another name of
    the host), so the ledger holds an advisory lock, which lives in one database, and the store's
    connection tries for it.

    A store in the ledger's own database is known by its schema, so it stays the same store when the
    database moves; another by host, port, database and schema.

    Args:
        ledger: The ledger's database.
        store_url: The address of the store's database.
        schema: The schema of the checkpoint tables.

    Raises:
        StoreUnreachable: The store cannot be reached.
        LedgerUnreachable: The ledger cannot be reached.
        UsageError: The store's address cannot be read.
    """
    number = secrets.randbits(63)
    target = read_address(store_url)
    with ledger.transaction() as ours:
        ours.execute(select(func.pg_advisory_xact_lock(number)))
        with connecting(target):
            theirs = psycopg.connect(target.conninfo, prepare_threshold=None)
        with theirs, querying(target):
            row: Any = theirs.execute(TRY_LOCK, (number,)).fetchone()
            database, free = row
            host, port = theirs.info.host, theirs.info.port
    place = f"{quote(host, safe='')}:{port}/{quote(database, safe='')}"
    return StoreIdentity(
        address=f"postgresql://{place}",
        key=f"{'here' if not free else place}/{quote(schema, safe='')}",
        shared=not free,
    )
