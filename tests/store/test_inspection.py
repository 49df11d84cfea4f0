"""A store that is not understood is refused with its reason; one that is, is described."""

import contextlib
import socket
import socketserver
import threading

import pytest
from psycopg import sql

from repair_service.demo.postgres import start_postgres
from repair_service.errors import StoreForbidden, StoreNotUnderstood
from repair_service.store.facts import NEWEST_MIGRATION, StoreFacts
from repair_service.store.gateway import Store
from tests.conftest import Corpus, Database
from tests.corpus import loader
from tests.store.conftest import Role
from tests.store.rows import checkpoint_id, put_blob, put_checkpoint, put_write


def facts_of(database: Database, schema: str | None = None) -> StoreFacts:
    with Store.connect(database.url, schema=schema or database.schema) as store:
        return store.inspect()


def refusal(database: Database, *changes: str) -> str:
    """Why the store is refused once these statements have run, by every method alike."""
    with database.connect() as connection:
        for change in changes:
            connection.execute(change.encode())
    with Store.connect(database.url, schema=database.schema) as store:
        with pytest.raises(StoreNotUnderstood) as scanned:
            next(store.scan())
        with pytest.raises(StoreNotUnderstood) as loaded:
            store.threads(["t"])
        with pytest.raises(StoreNotUnderstood) as sampled:
            store.recent_threads(1)
        assert str(scanned.value) == str(loaded.value) == str(sampled.value)
        assert store.inspect().refusal == str(scanned.value)
        return str(scanned.value)


def test_a_real_store_is_understood(corpus: Corpus) -> None:
    facts = facts_of(corpus.database)
    language = corpus.version.partition("-")[0]
    assert facts.refusal is None
    assert facts.kind == language
    assert facts.has_task_path == (language == "python")
    assert facts.migrations == tuple(range(10 if language == "python" else 5))
    assert {"json"} <= set(facts.types) if language == "js" else {"msgpack"} <= set(facts.types)
    assert not facts.encrypted
    assert facts.missing_rights == ()
    assert facts.pooler is None
    assert abs(facts.clock_ahead_seconds) < 5


def test_the_newest_migration_known_is_that_of_the_installed_saver() -> None:
    from langgraph.checkpoint.postgres.base import MIGRATIONS

    assert len(MIGRATIONS) - 1 == NEWEST_MIGRATION


def test_an_empty_store_is_understood(database: Database) -> None:
    facts = facts_of(database)
    assert facts.refusal is None
    assert facts.kind == "empty"
    assert facts.types == ()


def test_a_database_that_both_languages_write_to_is_said_to_be_both(database: Database) -> None:
    with database.connect() as connection:
        for thread, version in (("python", "1"), ("js", 1)):
            document = {"v": 4, "channel_versions": {"messages": version}}
            put_checkpoint(connection, thread, checkpoint_id(1), checkpoint=document)
    assert facts_of(database).kind == "both"


def test_encrypted_rows_are_noticed_in_blobs_and_in_writes(database: Database) -> None:
    with database.connect() as connection:
        put_blob(connection, "t", "messages", "1", b"", type="msgpack+aes")
    assert facts_of(database).encrypted
    with database.connect() as connection:
        connection.execute("DELETE FROM checkpoint_blobs")
        put_write(connection, "t", checkpoint_id(1), "messages", type="json+aes")
    assert facts_of(database).types == ("json+aes",)


@pytest.mark.parametrize(
    "table",
    ["checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_migrations"],
)
def test_a_missing_table_is_named(database: Database, table: str) -> None:
    said = refusal(database, f"DROP TABLE {table}")
    assert f"The table {table} " in said
    assert "setup()" in said


def test_a_view_is_no_table(database: Database) -> None:
    said = refusal(
        database,
        "ALTER TABLE checkpoints RENAME TO kept",
        "CREATE VIEW checkpoints AS SELECT * FROM kept",
    )
    assert "The table checkpoints " in said


def test_an_empty_database_is_refused(empty_database: Database) -> None:
    assert "checkpoints, checkpoint_blobs" in refusal(empty_database)


def test_a_store_in_another_schema_is_pointed_at(empty_database: Database) -> None:
    with empty_database.connect() as connection:
        connection.execute('CREATE SCHEMA "Elsewhere"')
        connection.execute('CREATE TABLE "Elsewhere".checkpoints ()')
    said = refusal(empty_database)
    assert "Elsewhere" in said
    assert "--schema" in said


def test_a_schema_that_does_not_exist_is_refused(database: Database) -> None:
    with (
        Store.connect(database.url, schema="absent") as store,
        pytest.raises(StoreNotUnderstood, match="--schema"),
    ):
        store.check_understood()


def test_the_tables_of_the_langgraph_api_server_are_refused(empty_database: Database) -> None:
    with empty_database.connect() as connection:
        loader.create_tables(connection, "python-1.2.24")
    said = refusal(
        empty_database,
        "ALTER TABLE checkpoints ALTER thread_id TYPE uuid USING NULL",
        "ALTER TABLE checkpoints ALTER checkpoint_id TYPE uuid USING NULL",
    )
    assert "uuid" in said
    assert "langgraph-api" in said


@pytest.mark.filterwarnings("ignore:ShallowPostgresSaver is deprecated:DeprecationWarning")
def test_a_shallow_saver_is_refused(empty_database: Database) -> None:
    from langgraph.checkpoint.postgres.shallow import ShallowPostgresSaver

    with empty_database.connect() as connection:
        from psycopg.rows import dict_row

        connection.row_factory = dict_row
        ShallowPostgresSaver(connection).setup()
    assert "shallow" in refusal(empty_database)


def test_a_key_without_the_checkpoint_is_refused_as_shallow(database: Database) -> None:
    said = refusal(
        database,
        "ALTER TABLE checkpoints DROP CONSTRAINT checkpoints_pkey",
        "ALTER TABLE checkpoints ADD PRIMARY KEY (thread_id, checkpoint_ns)",
    )
    assert "shallow" in said


def test_a_missing_primary_key_is_refused(database: Database) -> None:
    said = refusal(database, "ALTER TABLE checkpoints DROP CONSTRAINT checkpoints_pkey")
    assert "primary key of checkpoints" in said


def test_a_key_in_another_order_is_refused(database: Database) -> None:
    said = refusal(
        database,
        "ALTER TABLE checkpoint_blobs DROP CONSTRAINT checkpoint_blobs_pkey",
        "ALTER TABLE checkpoint_blobs ADD PRIMARY KEY (channel, thread_id, checkpoint_ns, version)",
    )
    assert "primary key of checkpoint_blobs" in said


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("ALTER TABLE checkpoints DROP COLUMN metadata", "checkpoints.metadata is missing"),
        (
            "ALTER TABLE checkpoints ALTER checkpoint TYPE text",
            "checkpoints.checkpoint is of type text",
        ),
        (
            "ALTER TABLE checkpoint_writes ALTER idx TYPE bigint",
            "checkpoint_writes.idx is of type bigint",
        ),
    ],
)
def test_a_column_that_is_not_as_expected_is_named(
    database: Database, change: str, named: str
) -> None:
    assert named in refusal(database, change)


def test_a_migration_that_is_not_known_yet_is_refused(database: Database) -> None:
    newer = NEWEST_MIGRATION + 1
    said = refusal(database, f"INSERT INTO checkpoint_migrations VALUES ({newer})")
    assert f"migration {newer}" in said
    assert "newer repair-service" in said


def test_tables_without_a_migration_are_refused(database: Database) -> None:
    assert "No migration" in refusal(database, "DELETE FROM checkpoint_migrations")


def test_a_role_that_may_not_read_is_told_what_to_grant(database: Database, role: Role) -> None:
    role.grant("USAGE", f"SCHEMA {database.schema}")
    role.grant("SELECT", f"{database.schema}.checkpoints")
    with Store.connect(role.url, schema=database.schema) as store:
        facts = store.inspect()
        assert facts.tables["checkpoints"].may_select
        assert not facts.tables["checkpoint_blobs"].may_select
        with pytest.raises(StoreForbidden) as refused:
            next(store.scan())
    assert "may not read checkpoint_blobs, checkpoint_writes, checkpoint_migrations" in str(
        refused.value
    )
    assert f'TO "{role.name}";' in str(refused.value)
    assert "INSERT" not in str(refused.value), "an audit does not need it"


def test_a_role_that_may_not_enter_the_schema_may_not_read(database: Database, role: Role) -> None:
    with Store.connect(role.url, schema=database.schema) as store:
        assert store.inspect().missing_rights[0].startswith("GRANT USAGE ON SCHEMA")
        with pytest.raises(StoreForbidden):
            store.threads(["t"])


def test_row_level_security_that_hides_rows_is_noticed(database: Database, role: Role) -> None:
    role.grant("USAGE", f"SCHEMA {database.schema}")
    role.grant("SELECT", f"ALL TABLES IN SCHEMA {database.schema}")
    with database.connect() as connection:
        connection.execute("ALTER TABLE checkpoints ENABLE ROW LEVEL SECURITY")
    with Store.connect(role.url, schema=database.schema) as store:
        hidden = {name for name, table in store.inspect().tables.items() if table.row_security}
    assert hidden == {"checkpoints"}


def test_a_read_only_database_can_be_read(database: Database) -> None:
    with database.connect() as connection:
        put_checkpoint(connection, "t", checkpoint_id(1))
        name = connection.info.dbname
        connection.execute(
            sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(
                sql.Identifier(name)
            )
        )
    with Store.connect(database.url, schema=database.schema, read_only=True) as store:
        assert len(list(store.scan())) == 1


class Forwarder(socketserver.ThreadingTCPServer):
    """Stands between a client and a server as a proxy does: hands on every byte."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with socket.create_connection(("127.0.0.1", port)) as server:
                    back = threading.Thread(target=hand_on, args=(server, self.request))
                    back.start()
                    hand_on(self.request, server)
                    back.join()

        super().__init__(("127.0.0.1", 0), Handler)


def hand_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def test_something_between_us_and_the_server_is_noticed() -> None:
    with start_postgres(tcp=True) as server:
        assert server.tcp_url is not None
        with Store.connect(server.tcp_url) as store:
            assert store.inspect().pooler is None
        direct = int(server.tcp_url.rpartition(":")[2].partition("/")[0])
        with Forwarder(direct) as between:
            threading.Thread(target=between.serve_forever, daemon=True).start()
            port = between.server_address[1]
            with Store.connect(server.tcp_url.replace(f":{direct}/", f":{port}/")) as store:
                assert store.inspect().pooler is not None
            between.shutdown()
