"""Loads the stores that real, killed programs wrote, without psql.

`VERSION.copy.gz` holds the rows of one store as `COPY ... FROM STDIN` takes them (the text format,
byte for byte as pg_dump wrote it): a line `COPY table (columns)`, the rows, a line `\\.`. The
version is that of LangGraph or LangGraph.js. `python.sql` and `js.sql` make the tables.
`expected.json` says for each version and thread which verdict is right and what must be kept.
"""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

HERE = Path(__file__).parent
VERSIONS = ("python-0.2.76", "python-0.4.10", "python-1.0.10", "python-1.2.24", "js-1.7.3")
END = "\\.\n"


@dataclass(frozen=True, slots=True)
class Expected:
    """What is right for one thread of the corpus.

    Attributes:
        version: Which store it stands in.
        thread_id: The thread.
        verdict: The verdict in words, as expected.json says it ("repairable, but waiting where
            ...").
        left_by: How the thread came to be so.
        results_kept: Contents of tool results that were on disk at the crash and must stay.
    """

    version: str
    thread_id: str
    verdict: str
    left_by: str
    results_kept: tuple[str, ...]


def expected() -> list[Expected]:
    """What is right, for every version and thread."""
    stated: dict[str, dict[str, dict[str, Any]]] = json.loads(
        (HERE / "expected.json").read_text(encoding="utf-8")
    )
    return [
        Expected(
            version=version,
            thread_id=thread_id,
            verdict=facts["verdict"],
            left_by=facts["left_by"],
            results_kept=tuple(facts.get("results_kept", ())),
        )
        for version, threads in stated.items()
        for thread_id, facts in threads.items()
    ]


def create_tables(connection: "psycopg.Connection[Any]", version: str) -> None:
    """Makes the empty tables of that version in the first schema of the search path."""
    language = version.partition("-")[0]
    connection.execute((HERE / f"{language}.sql").read_bytes())


def load(connection: "psycopg.Connection[Any]", version: str) -> None:
    """Makes the tables and fills them, in the first schema of the search path."""
    create_tables(connection, version)
    with (
        gzip.open(HERE / f"{version}.copy.gz", "rt", encoding="utf-8", newline="\n") as lines,
        connection.cursor() as cursor,
    ):
        for line in lines:
            with cursor.copy(f"{line.strip()} FROM STDIN".encode()) as copy:
                for row in iter(lambda: next(lines), END):
                    copy.write(row)


def multiply(connection: "psycopg.Connection[Any]", copies: int) -> None:
    """Put copies of every thread beside it, as `<thread_id>-1` and so on."""
    for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
        columns = connection.execute(
            "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
            " AND attname <> 'thread_id'",
            [table],
        ).fetchone()
        assert columns is not None
        connection.execute(
            f"INSERT INTO {table} (thread_id, {columns[0]})"
            f" SELECT thread_id || '-' || n, {columns[0]}"
            f" FROM {table}, generate_series(1, {copies}) AS n".encode()
        )
