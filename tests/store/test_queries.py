"""The statements: one a file, names quoted, and the hot ones walk the primary key."""

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from repair_service.store.statements import QUERIES, statement
from tests.conftest import Database

NAMES = sorted(
    entry.name.removesuffix(".sql") for entry in QUERIES.iterdir() if entry.name.endswith(".sql")
)

THREADS = 3_000
"""Threads of the planner's store; one of them has as many checkpoints as the others together."""

KEYS = {
    "threads": [f"t{number:05}" for number in range(0, THREADS, 30)],
    "namespaces": [""] * 100,
    "checkpoints": [f"{number:08}" for number in range(0, THREADS, 30)],
}


@pytest.mark.parametrize("name", NAMES)
def test_a_file_holds_one_statement(name: str) -> None:
    text = (QUERIES / f"{name}.sql").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    assert ";" not in "\n".join(lines)
    assert text.endswith("\n")


def test_a_schema_is_an_identifier_whatever_it_is_called(database: Database) -> None:
    with database.connect() as connection:
        text = statement("heads", 'x"; DROP SCHEMA public; --').as_string(connection)
    assert '"x""; DROP SCHEMA public; --".checkpoints' in text


@pytest.fixture
def large(database: Database) -> Iterator["psycopg.Connection[Any]"]:
    """A store large enough for the planner to care, with statistics that know nothing of one
    thread's length."""
    with database.connect() as connection:
        connection.execute(
            "INSERT INTO checkpoints SELECT 't' || lpad(mod(i, %s)::text, 5, '0'), '',"
            " lpad(i::text, 8, '0'), lpad((i - 1)::text, 8, '0'), NULL,"
            """ '{"v": 4, "channel_versions": {"messages": "1"}}', '{}'"""
            " FROM generate_series(0, %s) AS i",
            [THREADS, THREADS * 5],
        )
        connection.execute("ANALYZE")
        connection.execute(
            "INSERT INTO checkpoints SELECT 't00000', 'node:' || mod(i, 7), lpad(i::text, 8, '0'),"
            " NULL, NULL, '{}', '{}' FROM generate_series(1, %s) AS i",
            [THREADS * 5],
        )
        connection.execute(
            "INSERT INTO checkpoint_blobs SELECT DISTINCT ON (thread_id) thread_id, '',"
            " 'messages', '1', 'msgpack', ''::bytea FROM checkpoints"
        )
        connection.execute(
            "INSERT INTO checkpoint_writes SELECT thread_id, checkpoint_ns, checkpoint_id, 'task',"
            " 0, 'messages', 'msgpack', '' FROM checkpoints"
        )
        yield connection


def plan_nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from plan_nodes(child)


def explained(
    connection: "psycopg.Connection[Any]", schema: str, name: str, values: dict[str, Any]
) -> list[dict[str, Any]]:
    text = statement(name, schema).as_string(connection)
    # Values go apart from the text, so the planner sees what the service shows it.
    row = connection.execute(
        f"EXPLAIN (ANALYZE, TIMING off, FORMAT json) {text}".encode(), values
    ).fetchone()
    assert row is not None
    plan = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return list(plan_nodes(plan[0]["Plan"]))


@pytest.mark.parametrize(
    ("name", "values", "most_rows"),
    [
        ("next_threads", {"after": None, "limit": 100}, 100),
        ("next_threads", {"after": "t01000", "limit": 100}, 100),
        ("changed_threads", {"after": None, "limit": 100, "first_id": "1"}, 200),
        ("heads", {"threads": KEYS["threads"]}, 110),
        ("heads", {"threads": ["t00000"]}, 8),
        ("checkpoints", KEYS, 100),
        ("ancestors", KEYS | {"depth": 5}, 1000),
        ("writes", KEYS | {"channel": None}, 100),
        ("writes", KEYS | {"channel": "messages"}, 100),
        ("blobs", KEYS, 100),
        ("scanned", KEYS | {"lists": ["messages"]}, 200),
        (
            "blobs_of_versions",
            {
                "threads": KEYS["threads"],
                "namespaces": KEYS["namespaces"],
                "channels": ["messages"] * 100,
                "versions": ["1"] * 100,
                "bytes": True,
            },
            100,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_hot_statements_enter_the_primary_key_and_read_no_history(
    large: "psycopg.Connection[Any]",
    database: Database,
    name: str,
    values: dict[str, Any],
    most_rows: int,
) -> None:
    nodes = explained(large, database.schema, name, values)
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]
    scans = [node for node in nodes if "Index Name" in node]
    assert scans
    for scan in scans:
        assert re.fullmatch(r"checkpoint\w*_pkey", scan["Index Name"])
        # Rows are an average over the loops; each loop is one descent into the index.
        assert scan["Actual Rows"] <= 1
        assert scan["Actual Loops"] <= most_rows + 1
        assert scan.get("Rows Removed by Filter", 0) == 0


def test_the_walk_over_threads_stops_at_its_limit(
    large: "psycopg.Connection[Any]", database: Database
) -> None:
    nodes = explained(large, database.schema, "next_threads", {"after": None, "limit": 10})
    (walk,) = [node for node in nodes if node["Node Type"] == "Recursive Union"]
    assert walk["Actual Rows"] == 10


MANY = 50_000
"""Threads of a store on which no plan but the key's is fast."""

MANY_KEYS = {
    "threads": [f"t{number:05}" for number in range(0, MANY, 500)],
    "namespaces": [""] * 100,
    "checkpoints": ["2"] * 100,
}

LOADS: list[tuple[str, dict[str, Any]]] = [
    ("next_threads", {"after": "t01000", "limit": 100}),
    ("changed_threads", {"after": "t01000", "limit": 100, "first_id": "1"}),
    ("heads", {"threads": MANY_KEYS["threads"]}),
    ("scanned", MANY_KEYS | {"lists": ["messages"]}),
    ("checkpoints", MANY_KEYS),
    ("blobs", MANY_KEYS),
    ("writes", MANY_KEYS | {"channel": None}),
    ("ancestors", MANY_KEYS | {"depth": 500}),
    (
        "blobs_of_versions",
        {
            "threads": MANY_KEYS["threads"],
            "namespaces": MANY_KEYS["namespaces"],
            "channels": ["messages"] * 100,
            "versions": ["2"] * 100,
            "bytes": True,
        },
    ),
]


@pytest.mark.parametrize("statistics", ["none", "of an empty store", "fresh"])
def test_no_statement_of_a_sweep_scans_a_table_of_many_threads(
    database: Database, statistics: str
) -> None:
    with database.connect() as connection:
        if statistics == "of an empty store":
            connection.execute("ANALYZE")
        connection.execute(
            "INSERT INTO checkpoints SELECT 't' || lpad(i::text, 5, '0'), '', j::text, NULL, NULL,"
            """ '{"v": 4, "channel_versions": {"messages": "2"}}', '{}'"""
            " FROM generate_series(0, %s) AS i, generate_series(1, 2) AS j",
            [MANY - 1],
        )
        connection.execute(
            "INSERT INTO checkpoint_blobs SELECT thread_id, '', 'messages', checkpoint_id,"
            " 'msgpack', '' FROM checkpoints"
        )
        connection.execute(
            "INSERT INTO checkpoint_writes SELECT thread_id, '', checkpoint_id, 'task', 0,"
            " 'messages', 'msgpack', '' FROM checkpoints"
        )
        if statistics == "fresh":
            connection.execute("ANALYZE")
        for name, values in LOADS:
            nodes = explained(connection, database.schema, name, values)
            scans = [node for node in nodes if "Relation Name" in node]
            assert scans, name
            for scan in scans:
                assert re.fullmatch(r"checkpoint\w*_pkey", scan.get("Index Name", "")), (name, scan)
                assert scan["Actual Rows"] <= 1, (name, scan)
