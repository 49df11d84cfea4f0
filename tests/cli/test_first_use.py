"""What an operator meets who sets something up, or mistypes it, for the first time."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.conftest import Corpus, Database


@pytest.fixture
def store(load_corpus: Callable[[str], Corpus]) -> Database:
    return load_corpus("python-1.2.24").database


@pytest.fixture
def audit(command: Command, store: Database, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The audit of that store, named in the environment."""
    monkeypatch.setenv("DATABASE_URL", store.url)
    monkeypatch.setenv("REPAIR_SCHEMA", store.schema)
    return lambda *arguments: command("audit", *arguments)


def test_names_in_a_variable_reach_the_verb(
    audit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert audit("--format", "json").items["agent_first_call"]["verdict"] == "repairable"
    monkeypatch.setenv("REPAIR_CLIENT_TOOL", "slow")
    assert audit("--format", "json").items["agent_first_call"]["verdict"] == "waiting"


def test_names_in_the_file_reach_the_verb(audit: Command, tmp_path: Path) -> None:
    (tmp_path / "repair-service.toml").write_text('client_tool = ["slow"]\nthread = "agent_ask"\n')
    ran = audit("--format", "json")
    assert ran.document["run"]["options"]["client_tool"] == ["slow"]
    assert list(ran.items) == ["agent_ask"]
    given = audit("--format", "json", "--thread", "agent_first_call")
    assert list(given.items) == ["agent_first_call"]


def test_a_file_that_a_sweep_is_set_up_by_does_not_keep_other_verbs_from_their_work(
    audit: Command, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "repair-service.toml").write_text(
        'format = "jsonl"\nsince = "2999-01-01"\nnamespace = "other"\n'
    )
    assert len(audit().out.splitlines()) == 1
    assert command("doctor").document["exit_code"] == 0
    assert command("show", "agent_three", "--namespace", "").document["heads"]
    ran = command("repair", "agent_three", "--format", "json")
    assert (ran.code, ran.items["agent_three"]["verdict"]) == (0, "repaired")


@pytest.mark.parametrize("format", ["table", "json", "jsonl"])
def test_a_full_disk_is_one_sentence(store: Database, format: str) -> None:
    program = [sys.executable, "-m", "repair_service", "audit", "--format", format]
    address = ["--database-url", store.url, "--schema", store.schema]
    with open("/dev/full", "w") as full:
        ran = subprocess.run([*program, *address], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 1
    *_, said = ran.stderr.splitlines()
    assert said.startswith("repair-service: the report could not be written: No space left")
    assert "Exception" not in ran.stderr
    assert "unexpected" not in ran.stderr
