"""What must hold of a store and its ledger after a crash, and once the sweep was run again."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg

from repair_service.ledger import migrate
from repair_service.ledger.gateway import Ledger
from repair_service.store.gateway import Store
from repair_service.sweep.settle import settle_intents
from tests.corpus import loader
from tests.sweep.exchanges import sweep

THREAD = "agent_three"
VERSION = "python-1.2.24"
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


def fill_store(connection: "psycopg.Connection[Any]") -> None:
    """One damaged thread: one call without a result, two whose results are on disk."""
    loader.load(connection, VERSION)
    for table in TABLES:
        connection.execute(f"DELETE FROM {table} WHERE thread_id <> %s".encode(), [THREAD])


def fill_ledger(connection: "psycopg.Connection[Any]") -> None:
    """An empty ledger."""
    connection.execute(migrate.statements().encode())


def fill_both(connection: "psycopg.Connection[Any]") -> None:
    """The store, with its ledger in the same database."""
    fill_store(connection)
    fill_ledger(connection)


@dataclass(frozen=True, slots=True)
class Pair:
    """A store and its ledger, in one database or in two."""

    store_url: str
    ledger_url: str

    @property
    def shared(self) -> bool:
        return self.store_url == self.ledger_url

    def rows(self) -> dict[str, set[str]]:
        """Every row of the application's tables."""
        with psycopg.connect(self.store_url, autocommit=True) as connection:
            return {
                table: {
                    str(row[0])
                    for row in connection.execute(f"SELECT t::text FROM {table} AS t".encode())
                }
                for table in TABLES
            }

    def reset(self, before: dict[str, set[str]]) -> None:
        """Make both what they were: these rows, and an empty ledger."""
        with psycopg.connect(self.store_url, autocommit=True) as connection:
            for table in TABLES:
                connection.execute(
                    f"DELETE FROM {table} AS t WHERE t::text <> ALL(%s)".encode(),
                    [list(before[table])],
                )
        with psycopg.connect(self.ledger_url, autocommit=True) as connection:
            connection.execute("TRUNCATE repair_service.runs CASCADE")
        assert self.rows() == before

    def patches(self) -> list[tuple[str, bool]]:
        """Our checkpoints in the store, each with whether all of its values are there."""
        with psycopg.connect(self.store_url, autocommit=True) as connection:
            found = connection.execute(
                "SELECT c.checkpoint_id, (SELECT count(*) FROM checkpoint_blobs AS b"
                " JOIN jsonb_each_text(c.checkpoint -> 'channel_versions') AS v"
                " ON v.key = b.channel AND v.value = b.version"
                " WHERE b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns"
                " AND b.channel = 'messages') = 1"
                " FROM checkpoints AS c WHERE c.metadata ? 'repair_service'"
            )
            return [(str(row[0]), bool(row[1])) for row in found]

    def repairs(self) -> list[tuple[str, str]]:
        """The ledger's repairs: checkpoint and state."""
        with psycopg.connect(self.ledger_url, autocommit=True) as connection:
            found = connection.execute("SELECT to_checkpoint_id, state FROM repair_service.repairs")
            return [(str(row[0]), str(row[1])) for row in found]

    def gone(self) -> None:
        """Wait until the server has let go of what the dead process had open."""
        for url in {self.store_url, self.ledger_url}:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    " AND backend_type = 'client backend'"
                )


def assert_nothing_is_half_done(pair: Pair, before: dict[str, set[str]]) -> None:
    """Right after a crash: a patch with all of its rows or none, and none that is not known."""
    after = pair.rows()
    for table in TABLES:
        assert before[table] <= after[table]
    assert before["checkpoint_writes"] == after["checkpoint_writes"]
    added = {table: len(after[table] - before[table]) for table in TABLES}
    patches = pair.patches()
    assert len(patches) == added["checkpoints"] <= 1
    assert bool(patches) == bool(added["checkpoint_blobs"])
    assert all(whole for _, whole in patches)
    known = [checkpoint for checkpoint, _ in pair.repairs()]
    if pair.shared:
        assert known == [checkpoint for checkpoint, _ in patches]
    else:
        # Between two databases an intent comes first, so no patch is ever unknown.
        assert {checkpoint for checkpoint, _ in patches} <= set(known)


def assert_the_next_sweep_ends_it(pair: Pair, before: dict[str, set[str]]) -> None:
    """After the next sweep: written once, recorded once, and nothing of the application changed."""
    assert sweep(pair.store_url, pair.ledger_url) == 0
    if not pair.shared:
        with Store.connect(pair.store_url) as store, Ledger(pair.ledger_url) as ledger:
            identity = ledger.identify(pair.store_url, "public")
            assert settle_intents(store, ledger, identity, age=timedelta(0)).left == 0
    after = pair.rows()
    assert len(after["checkpoints"] - before["checkpoints"]) == 1
    for table in TABLES:
        assert before[table] <= after[table]
    assert before["checkpoint_writes"] == after["checkpoint_writes"]
    [(patch, whole)] = pair.patches()
    assert whole
    settled = [checkpoint for checkpoint, state in pair.repairs() if state == "settled"]
    assert settled == [patch]
    assert {state for _, state in pair.repairs()} <= {"settled", "abandoned"}
