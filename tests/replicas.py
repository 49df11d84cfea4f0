"""A primary with a streaming replica, both made for one test process."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from repair_service.demo.installations import (
    server_account,
    server_directories,
    temporary_directory,
)
from repair_service.demo.postgres import EmbeddedPostgres

PATIENCE = 30.0
"""Seconds for a replica to apply a few rows: a busy machine takes one."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two servers; the second one replays what the first one writes."""

    primary: EmbeddedPostgres
    replica: EmbeddedPostgres

    def caught_up(self) -> None:
        """Wait until the replica has applied all that the primary has written."""
        with psycopg.connect(self.primary.url, autocommit=True) as connection:
            written = value(connection, "SELECT pg_current_wal_insert_lsn()::text")
        reached = f"SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn"
        with psycopg.connect(self.replica.url, autocommit=True) as connection:
            until = time.monotonic() + PATIENCE
            while not value(connection, reached):
                assert time.monotonic() < until, "the replica does not get there"
                time.sleep(0.02)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """The replica applies nothing meanwhile."""
        with psycopg.connect(self.replica.url, autocommit=True) as connection:
            connection.execute("SELECT pg_wal_replay_pause()")
            try:
                paused = "SELECT pg_get_wal_replay_pause_state() = 'paused'"
                while not value(connection, paused):
                    time.sleep(0.02)
                yield
            finally:
                connection.execute("SELECT pg_wal_replay_resume()")


def value(connection: "psycopg.Connection[tuple[object, ...]]", statement: str) -> object:
    """The one value that a statement gives."""
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]


@contextmanager
def start_pair() -> Iterator[Pair]:
    """Starts both; skips the test where there is no program to copy a server with."""
    binaries = next((each for each in server_directories() if _can_copy(each)), None)
    if binaries is None:
        pytest.skip("there is no pg_basebackup to make a replica with")
    account = server_account()
    with EmbeddedPostgres(binaries=binaries) as primary:
        with psycopg.connect(primary.url, autocommit=True) as connection:
            # Copied with the rest: how often a replica says how far it is, and that it lets nobody
            # hold it up for long.
            connection.execute("ALTER SYSTEM SET wal_receiver_status_interval = '1s'")
            connection.execute("ALTER SYSTEM SET max_standby_streaming_delay = '50ms'")
        directory = temporary_directory(account)
        try:
            data = directory / "data"
            done = subprocess.run(
                [
                    *(str(binaries / "pg_basebackup"), "--write-recovery-conf", "--no-sync"),
                    *("--checkpoint=fast", "--wal-method=stream", "--pgdata", str(data)),
                    *("--host", str(primary.directory), "--port", "5432", "--user", "postgres"),
                ],
                cwd=directory,
                env={"PATH": os.environ.get("PATH", os.defpath)},
                user=None if account is None else account.uid,
                group=None if account is None else account.gid,
                extra_groups=None if account is None else [],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            with EmbeddedPostgres(data, binaries=binaries) as replica:
                yield Pair(primary, replica)
        finally:
            subprocess.run(["rm", "-rf", str(directory)], check=False)


def _can_copy(directory: Path) -> bool:
    try:
        program = [str(directory / "pg_basebackup"), "--version"]
        return subprocess.run(program, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
