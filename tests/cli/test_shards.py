"""`--shard` and `--jobs` on the command line."""

import pytest

from repair_service.cli.shards import parse_shard
from repair_service.sweep.shard import Shard
from tests.cli.conftest import Command
from tests.conftest import Database


@pytest.mark.parametrize(
    ("text", "environment", "shard"),
    [
        ("1/1", {}, Shard(1, 1)),
        ("2/8", {}, Shard(2, 8)),
        (" 8/8 ", {}, Shard(8, 8)),
        ("8", {"JOB_COMPLETION_INDEX": "0"}, Shard(1, 8)),
        ("8", {"JOB_COMPLETION_INDEX": "7"}, Shard(8, 8)),
        ("2/8", {"JOB_COMPLETION_INDEX": "5"}, Shard(2, 8)),
    ],
)
def test_a_shard(text: str, environment: dict[str, str], shard: Shard) -> None:
    assert parse_shard(text, environment) == shard


@pytest.mark.parametrize(
    ("text", "environment", "says"),
    [
        ("0/8", {}, "counted from 1"),
        ("9/8", {}, "counted from 1"),
        ("1/0", {}, "parts"),
        ("1/99999", {}, "10000"),
        ("8", {}, "JOB_COMPLETION_INDEX is not set"),
        ("8", {"JOB_COMPLETION_INDEX": "first"}, "JOB_COMPLETION_INDEX"),
        ("8", {"JOB_COMPLETION_INDEX": "8"}, "no part 9 of 8"),
        ("half", {}, "2/8"),
        ("-1/8", {}, "2/8"),
        ("1/8/2", {}, "2/8"),
        ("\u0661/\u0668", {}, "2/8"),
    ],
)
def test_what_is_no_shard(text: str, environment: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_shard(text, environment)


def test_a_pod_of_an_indexed_job_takes_its_part(
    command: Command, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "2")
    ran = command(
        *("audit", "--database-url", database.url, "--schema", database.schema),
        *("--shard", "5", "--format", "json"),
    )
    assert ran.code == 0
    assert ran.document["run"]["options"]["shard"] == "3/5"


def test_a_bad_shard_is_wrong_usage(command: Command) -> None:
    ran = command("audit", "--database-url", "postgresql://nowhere/x", "--shard", "9/8")
    assert ran.code == 64
    assert "--shard" in ran.err


def test_bounds_are_not_shared_between_jobs(command: Command, database: Database) -> None:
    ran = command(
        *("sweep", "--yes", "--database-url", database.url, "--schema", database.schema),
        *("--jobs", "2", "--max-repairs", "5"),
    )
    assert ran.code == 64
    assert "--max-repairs" in ran.err


def test_several_jobs_report_as_one(command: Command, load_corpus: object) -> None:
    database = load_corpus("python-1.2.24").database  # type: ignore[operator]
    flags = ("--database-url", database.url, "--schema", database.schema, "--min-idle", "0")
    one = command("audit", *flags, "--format", "json")
    several = command("audit", *flags, "--format", "json", "--jobs", "3")
    assert several.code == one.code == 2
    assert several.document["totals"]["heads"] == one.document["totals"]["heads"]
    assert several.document["totals"]["verdicts"] == one.document["totals"]["verdicts"]

    def keyed(ran: object) -> dict[tuple[str, str], str]:
        items = ran.document["items"]  # type: ignore[attr-defined]
        return {(each["thread_id"], each["checkpoint_ns"]): each["verdict"] for each in items}

    assert keyed(several) == keyed(one)
