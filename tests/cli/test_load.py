"""Runs that wait for others, as an operator sees it: what is said, and how they end."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from repair_service.store.gateway import Store
from tests.cli.conftest import Command
from tests.cli.stores import asked, rows_of
from tests.conftest import Corpus, Database, Replicated, with_options

PATIENCE = 60


@contextmanager
def started(database: Database, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "repair_service", *arguments),
            *("--schema", database.schema, "--min-idle", "0", "--format", "json"),
        ],
        env=os.environ | {"DATABASE_URL": database.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until_it_waits(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Waiting"):
            return line
    raise AssertionError("it never waited")


def test_a_file_pauses_a_run_and_its_end_lets_it_go_on(damaged: Database, tmp_path: Path) -> None:
    file = tmp_path / "pause"
    file.touch()
    before = rows_of(damaged)
    pausing = ("sweep", "--yes", "--pause-file", str(file), "--jobs", "2")
    with started(damaged, *pausing) as process:
        assert until_it_waits(process) == f"Waiting: the file {file} is there (--pause-file).\n"
        assert rows_of(damaged) == before
        file.unlink()
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "Going on after" in err
    totals: dict[str, Any] = json.loads(out)["totals"]
    assert totals["throttled_seconds"] > 0
    assert totals["verdicts"]["repaired"]


@pytest.mark.parametrize(
    ("jobs", "number", "code"), [("1", signal.SIGINT, 130), ("2", signal.SIGTERM, 143)]
)
def test_a_signal_ends_a_wait_and_the_summary_is_written(
    damaged: Database, tmp_path: Path, jobs: str, number: signal.Signals, code: int
) -> None:
    before = rows_of(damaged)
    pausing = ("sweep", "--yes", "--pause-file", str(tmp_path), "--jobs", jobs)
    with started(damaged, *pausing) as process:
        until_it_waits(process)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert json.loads(out)["exit_code"] == code
    assert "Traceback" not in err
    assert rows_of(damaged) == before


def test_what_cannot_be_asked_is_said_before_anything_is_written(
    command: Command, damaged: Database
) -> None:
    before = rows_of(damaged)
    ran = command(
        *("sweep", "--yes", "--database-url", damaged.url, "--schema", damaged.schema),
        *("--throttle-query", "SELECT busy FROM nowhere"),
    )
    assert ran.code == 64
    assert "--throttle-query failed" in ran.err
    assert rows_of(damaged) == before


def test_a_lag_that_cannot_be_seen_is_noted(command: Command, damaged: Database) -> None:
    ran = command(
        *("audit", "--database-url", damaged.url, "--schema", damaged.schema),
        *("--max-lag", "10s", "--format", "json"),
    )
    assert ran.code == 2
    assert "--max-lag waits for nothing" in ran.err
    assert ran.document["run"]["options"]["max_lag"] == 10


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--rate", "0"), "--rate"),
        (("--max-active", "-1"), "--max-active"),
        (("--max-lag", "ten"), "--max-lag: 'ten' is no duration"),
        (("--statement-timeout", "40d"), "--statement-timeout: write it like 30s"),
        (("--lock-timeout", "2"), "--lock-timeout"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_wrong_usage(
    command: Command, flags: tuple[str, str], said: str
) -> None:
    ran = command("audit", "--database-url", "postgresql://nowhere/x", *flags)
    assert ran.code == 64
    assert said in ran.err


def test_a_statement_timeout_names_itself(command: Command, damaged: Database) -> None:
    with damaged.connect() as other, other.transaction():
        other.execute("LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE")
        ran = command(
            *("audit", "--database-url", damaged.url, "--schema", damaged.schema),
            *("--statement-timeout", "0.2s", "--lock-timeout", "0"),
        )
    assert ran.code == 1
    assert "greater --statement-timeout" in ran.err


def test_a_locked_table_is_waited_for_no_longer_than_allowed(
    command: Command, damaged: Database
) -> None:
    with damaged.connect() as other, other.transaction():
        other.execute("LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE")
        ran = command(
            *("audit", "--database-url", damaged.url, "--schema", damaged.schema),
            *("--lock-timeout", "0.1s"),
        )
    assert ran.code == 1
    assert "longer than --lock-timeout" in ran.err


def read(replicated: Replicated, command: Command, *arguments: str) -> Any:
    secret = with_options(replicated.replica.url, password="hunter2")
    return command(
        *(*arguments, "--database-url", replicated.primary.url, "--read-url", secret),
        *("--min-idle", "0", "--format", "json"),
    )


def test_an_audit_reads_a_replica_and_says_which(command: Command, replicated: Replicated) -> None:
    with replicated.servers.held_back(), replicated.primary.connect() as connection:
        connection.execute("DELETE FROM checkpoints")
        ran = read(replicated, command, "audit")
    assert ran.code == 2
    assert ran.document["totals"]["verdicts"]["repairable"]
    said = ran.document["run"]["options"]["read_url"]
    assert str(replicated.servers.replica.directory) in said
    assert "hunter2" not in ran.out + ran.err


def test_a_sweep_looks_on_the_replica_and_judges_and_writes_on_the_primary(
    command: Command, replicated: Replicated
) -> None:
    with replicated.servers.held_back():
        with replicated.primary.connect() as connection:
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                connection.execute(f"DELETE FROM {table} WHERE thread_id = 'agent_one'".encode())
        one = command(
            *("repair", "agent_three", "--database-url", replicated.primary.url),
            *("--min-idle", "0"),
        )
        assert one.code == 0
        before = rows_of(replicated.primary)["checkpoints"]
        ran = read(replicated, command, "sweep", "--yes")
    # One is gone and one is repaired by now, of which the replica knows neither.
    assert "agent_one" not in ran.items
    assert "agent_three" not in ran.items
    assert ran.items["agent_partial"]["verdict"] == "repaired"
    written = ran.document["totals"]["verdicts"]["repaired"]
    assert len(rows_of(replicated.primary)["checkpoints"]) == len(before) + written
    assert set(ran.document["totals"]["verdicts"]) & {"drifted", "failed"} == set()


def test_the_ledger_knows_how_far_behind_the_replica_was(
    command: Command, replicated: Replicated
) -> None:
    assert command("db", "upgrade", "--database-url", replicated.primary.url).code == 0
    replicated.servers.caught_up()
    with replicated.servers.held_back():
        with replicated.primary.connect() as connection:
            connection.execute("CREATE TABLE something (number integer)")
        with Store.connect(replicated.replica.url, read_only=True) as replica:
            while not replica.load().behind():  # until it has received what it does not apply
                pass
        assert read(replicated, command, "audit").code == 2
    [(behind,)] = asked(
        replicated.primary,
        "SELECT (policy ->> 'read_behind')::float8 FROM repair_service.runs WHERE verb = 'audit'",
    )
    assert behind > 0


def test_a_plan_made_on_a_replica_is_applied_on_the_primary(
    command: Command, replicated: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPAIR_READ_URL", replicated.replica.url)
    flags = ("--database-url", replicated.primary.url, "--max-active", "1000", "--format", "json")
    planned = command("plan", "--out", "plan.json", "--min-idle", "0", *flags)
    assert planned.code == 2
    assert planned.document["run"]["options"]["read_url"]
    after = shlex.split(planned.document["next_command"])
    assert after[:2] == ["repair-service", "apply"]
    assert "--max-active" in after
    applied = command(*after[1:], "--yes", "--format", "json")
    assert applied.code == 0
    assert "read_url" not in applied.document["run"]["options"]
    assert applied.document["totals"]["verdicts"].keys() == {"repaired"}


def test_another_store_is_not_read(command: Command, replicated: Replicated) -> None:
    elsewhere = with_options(replicated.replica.url, dbname="postgres")
    ran = command("audit", "--database-url", replicated.primary.url, "--read-url", elsewhere)
    assert ran.code == 64
    assert "is no replica of the store" in ran.err


def test_a_signal_ends_a_sweep_that_reads_a_replica(replicated: Replicated, tmp_path: Path) -> None:
    reading = ("--read-url", replicated.replica.url, "--pause-file", str(tmp_path))
    with started(replicated.primary, "sweep", "--yes", *reading) as process:
        until_it_waits(process)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == json.loads(out)["exit_code"] == 143


@pytest.fixture
def damaged(load_corpus: Callable[[str], Corpus]) -> Database:
    return load_corpus("python-1.2.24").database
