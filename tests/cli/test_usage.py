"""What needs no database: help, wrong usage, servers that are not there."""

import io
import subprocess
import sys

import pytest

import repair_service
from tests.cli.conftest import Command

VERBS = [
    "demo",
    "doctor",
    "audit",
    "sweep",
    "show",
    "repair",
    "plan",
    "apply",
    "undo",
    "runs",
    "report",
]
UNDER_A_VERB = ["runs show", "db upgrade", "db current", "db check"]
HEAVY = [
    "langgraph",
    "langchain_core",
    "psycopg",
    "pydantic_settings",
    "sqlalchemy",
    "alembic",
    "msgspec",
    "jinja2",
]
NOWHERE = "postgresql://me:hunter2@127.0.0.1:1/db"


@pytest.mark.parametrize("arguments", [[], ["audit"], ["sweep"], ["demo"], ["db", "upgrade"]])
def test_help_imports_nothing_that_costs(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from repair_service.cli.app import main\n"
        f"assert main({[*arguments, '--help']!r}) == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr.strip()) == (0, "[]")


def test_help_names_the_verbs_of_this_release_and_where_to_start(command: Command) -> None:
    ran = command("--help")
    assert ran.code == 0
    listed = ran.out.split("Commands:")[1].split()
    assert [verb for verb in VERBS if verb in listed] == VERBS
    assert "repair-service doctor" in ran.out


@pytest.mark.parametrize("verb", [*VERBS, *UNDER_A_VERB])
def test_help_of_a_verb_has_examples_and_exit_codes(
    command: Command, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = command(*verb.split(), "--help")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    assert f"    repair-service {verb}" in ran.out
    assert "Exit codes:\n    0  " in ran.out


def test_the_version_is_shown(command: Command) -> None:
    assert command("--version").out == f"repair-service {repair_service.__version__}\n"


def test_no_verb_is_wrong_usage_and_gets_the_help(command: Command) -> None:
    ran = command()
    assert (ran.code, ran.out) == (64, "")
    assert "Commands:" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frobnicate"], "No such command 'frobnicate'. See: repair-service --help"),
        (["audit", "--frobnicate"], "No such option: --frobnicate"),
        (["audit", "extra"], "repair-service audit --help"),
        (["repair"], "Missing argument 'THREAD'. See: repair-service repair --help"),
        (["audit", "--thread"], "requires an argument. See: repair-service audit --help"),
        (["runs", "show", "--format"], "requires an argument. See: repair-service runs show --hel"),
        (["adit"], "Did you mean 'audit'? See: repair-service --help"),
        (["audit", "--format", "xml"], "--format: one of 'table', 'json', 'jsonl', 'markdown' or"),
        (["show", "t", "--format", "jsonl"], "--format: show has one answer"),
        (["doctor", "--format", "jsonl"], "--format: doctor has one answer"),
        (["audit", "--min-idle", "ten"], "--min-idle: 'ten' is no duration; write it like 90s"),
        (["audit", "--deployed-at", "noon"], "--deployed-at: 'noon' is no time; write it in ISO"),
        (["audit", "--allow", "all"], "--allow: 'all' is not a kind that can be allowed"),
        (["audit", "--config", "none.toml"], "none.toml cannot be read: No such file"),
        (["audit"], "No database is named; set DATABASE_URL"),
        (["audit", "--database-url", "mysql://me:hunter2@host/db"], "database"),
        (["audit", "--database-url", "nonsense hunter2"], "database"),
        (["audit", "--database-url", NOWHERE, "--output", "none/report"], "--output none/report"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_64(
    command: Command, arguments: list[str], said: str
) -> None:
    ran = command(*arguments)
    assert (ran.code, ran.out) == (64, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert "hunter2" not in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit"],
        ["audit", "--format", "json"],
        ["sweep", "--yes"],
        ["show", "t"],
        ["repair", "t"],
        ["undo", "t", "--yes"],
        ["runs"],
        ["report", "last"],
        ["db", "check"],
    ],
)
def test_a_server_that_is_down_is_one_sentence_and_exit_1(
    command: Command, arguments: list[str]
) -> None:
    ran = command(*arguments, "--database-url", NOWHERE)
    assert (ran.code, ran.out) == (1, "")
    assert "127.0.0.1:1" in ran.err
    assert "nothing listens there" in ran.err
    assert "hunter2" not in ran.err


def test_doctor_says_so_as_a_failed_check(command: Command) -> None:
    ran = command("doctor", "--database-url", NOWHERE, "--format", "json")
    assert ran.code == ran.document["exit_code"] == 1
    [check] = ran.document["checks"]
    assert (check["name"], check["status"]) == ("connection", "fail")
    assert "hunter2" not in ran.out


def test_sweep_without_a_terminal_needs_yes_and_says_so_before_it_connects(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    ran = command("sweep", "--database-url", NOWHERE)
    assert (ran.code, ran.out) == (5, "")
    assert "give --yes to write. --dry-run shows" in ran.err


def test_an_unexpected_error_shows_its_place_and_not_its_text(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(keep: bool) -> int:
        raise RuntimeError("hunter2")

    monkeypatch.setattr("repair_service.demo.run.run_demo", fail)
    ran = command("demo")
    assert ran.code == 1
    assert "unexpected RuntimeError in test_usage.py, line" in ran.err
    assert "hunter2" not in ran.err


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_the_traceback_is_shown_when_asked_for(
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    by: str,
) -> None:
    from repair_service.cli.app import main

    def fail(keep: bool) -> int:
        raise RuntimeError("text")

    monkeypatch.setattr("repair_service.demo.run.run_demo", fail)
    if by == "variable":
        monkeypatch.setenv("REPAIR_DEBUG", "1")
    assert main(["demo", "--debug"] if by == "flag" else ["demo"]) == 1
    assert "RuntimeError: text" in capsys.readouterr().err


def test_the_module_runs_as_the_script_does() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "repair_service", "--version"], capture_output=True, text=True
    )
    assert ran.stdout == f"repair-service {repair_service.__version__}\n"
