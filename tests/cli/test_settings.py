"""Flags, environment and file set the same settings, in that order."""

import os
from pathlib import Path
from typing import Any

import pytest

from repair_service.cli.settings import Settings, load_settings
from repair_service.cli.variables import aes_key
from repair_service.errors import UsageError

URLS = ["postgresql://flag/db", "postgresql://variable/db", "postgresql://file/db"]


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty directory and none of our variables."""
    monkeypatch.chdir(tmp_path)
    for name in ("DATABASE_URL", "REPAIR_DATABASE_URL", "REPAIR_CONFIG", "LANGGRAPH_AES_KEY"):
        monkeypatch.delenv(name, raising=False)


def write(text: str, name: str = "repair-service.toml") -> None:
    Path(name).write_text(text)


def url(settings: Settings) -> str | None:
    return settings.database_url.get_secret_value() if settings.database_url else None


def refusal(**flags: Any) -> str:
    with pytest.raises(UsageError) as refused:
        load_settings(flags)
    return str(refused.value)


def test_flags_win_over_the_environment_and_that_over_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(f'database_url = "{URLS[2]}"\nschema = "file"\nmin_idle = "1m"')
    assert (url(load_settings({})), load_settings({}).store_schema) == (URLS[2], "file")

    monkeypatch.setenv("DATABASE_URL", URLS[1])
    monkeypatch.setenv("REPAIR_SCHEMA", "variable")
    monkeypatch.setenv("REPAIR_MIN_IDLE", "2m")
    settings = load_settings({})
    assert (url(settings), settings.store_schema, settings.min_idle) == (URLS[1], "variable", 120)

    settings = load_settings({"database_url": URLS[0], "schema": "flag", "min_idle": "3m"})
    assert (url(settings), settings.store_schema, settings.min_idle) == (URLS[0], "flag", 180)


def test_our_own_variable_wins_over_the_one_that_applications_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", URLS[1])
    monkeypatch.setenv("REPAIR_DATABASE_URL", URLS[0])
    assert url(load_settings({})) == URLS[0]


def test_flags_that_were_not_given_leave_the_rest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPAIR_THREAD", "a, b")
    assert load_settings({"thread": None, "yes": None}).thread == ("a", "b")
    assert load_settings({"thread": []}).thread == ("a", "b")
    assert load_settings({"thread": ()}).thread == ("a", "b")
    assert load_settings({"thread": ["x,y"]}).thread == ("x,y",)


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "")
    monkeypatch.setenv("REPAIR_SCHEMA", "")
    settings = load_settings({})
    assert (settings.database_url, settings.store_schema) == (None, "public")


def test_the_file_sets_everything_that_the_diagnosis_is_told() -> None:
    write(
        """
        thread = ["a", "b"]
        deployed_at = 2026-03-01T14:30:00Z
        allow = ["at_rest", "orphan_result"]
        breakpoint = ["tools"]
        client_tool = "ask"
        resume = "park"
        route = "agent"
        [placeholder]
        interrupted = "{tool} wurde unterbrochen."
        by_tool = { pay = "Vielleicht gezahlt ({call_id})." }
        """
    )
    policy = load_settings({}).policy()
    assert policy.deployed_at == 1772375400
    assert policy.allow == {"at_rest", "orphan_result"}
    assert policy.breakpoints == {"tools"}
    assert policy.client_tools == {"ask"}
    assert (policy.resume, policy.route) == ("park", "agent")
    assert policy.placeholders.interrupted == "{tool} wurde unterbrochen."
    assert policy.placeholders.by_tool == {"pay": "Vielleicht gezahlt ({call_id})."}
    assert "arguments could not be read" in policy.placeholders.invalid


def test_another_file_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    write('schema = "usual"')
    write('schema = "named"', "other.toml")
    assert load_settings({"config": Path("other.toml")}).store_schema == "named"
    monkeypatch.setenv("REPAIR_CONFIG", "other.toml")
    assert load_settings({}).store_schema == "named"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("min_idle = ", "not valid TOML"),
        ("min-idle = '5m'", "'min-idle' is no setting; did you mean 'min_idle'?"),
        ("show_content = true", "'show_content' is no setting"),
        ("min_idle = '5x'", "repair-service.toml: min_idle: '5x' is no duration"),
        ("thread = [1]", "repair-service.toml: thread: input should be a valid string"),
        ("placeholder = {interrupted = '{x}'}", "(interrupted): the template cannot be used"),
        ("placeholder = {interrupted = '{tool:{x}}'}", "the template cannot be used"),
        ("placeholder = {invalid = ' '}", "providers refuse an empty result"),
        ("placeholder = {by_tool = {a = '{'}}", "the template cannot be used"),
        ("placeholder = {other = 'x'}", "(other): "),
        ("\xff", "not UTF-8"),
    ],
)
def test_a_bad_file_is_said_with_its_name_and_key(text: str, said: str) -> None:
    Path("repair-service.toml").write_bytes(text.encode("latin-1"))
    message = refusal()
    assert message.startswith("repair-service.toml")
    assert said in message
    assert "\n" not in message


def test_a_named_file_that_is_not_there_is_refused() -> None:
    assert (
        refusal(config=Path("none.toml")) == "none.toml cannot be read: No such file or directory."
    )


@pytest.mark.parametrize("kind", ["device", "pipe", "directory"])
def test_what_is_no_file_is_refused_at_once(kind: str) -> None:
    path = Path("/dev/urandom" if kind == "device" else "settings")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    message = refusal(config=path)
    assert message.startswith(str(path))
    assert "no regular file" in message or "Is a directory" in message


@pytest.mark.parametrize(
    ("text", "said"),
    [("# long\n" * 200_000, "larger than 1 MB"), ("a = " + "[" * 90_000, "nested too deeply")],
)
def test_a_file_that_would_take_for_ever_is_refused(text: str, said: str) -> None:
    write(text, "other.toml")
    assert said in refusal(config=Path("other.toml"))


def test_a_bad_value_is_said_with_its_flag() -> None:
    assert refusal(min_idle="soon").startswith("--min-idle: 'soon' is no duration")
    assert refusal(since="soon").startswith("--since: 'soon' is no time")
    assert refusal(format="xml") == (
        "--format: one of 'table', 'json', 'jsonl', 'markdown' or 'html' is needed."
    )
    assert refusal(max_ratio=1.5).startswith("--max-ratio: ")
    assert refusal(max_repairs=-1).startswith("--max-repairs: ")
    assert refusal(last=0).startswith("--last: ")
    assert refusal(resume="later") == "--resume: one of 'continue' or 'park' is needed."
    assert refusal(schema="").startswith("--schema: ")


def test_a_bad_value_is_said_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPAIR_SETTLE", "soon")
    assert refusal().startswith("REPAIR_SETTLE: 'soon' is no duration")
    monkeypatch.delenv("REPAIR_SETTLE")
    monkeypatch.setenv("REPAIR_PLACEHOLDER", "text")
    assert "REPAIR_PLACEHOLDER__INTERRUPTED" in refusal()


def test_a_mistyped_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong, right in [
        ("REPAIR_MIN_IDEL", "REPAIR_MIN_IDLE"),
        ("REPAIR_CLIENT_TOOLS", "REPAIR_CLIENT_TOOL"),
        ("REPAIR_BREAKPOINTS", "REPAIR_BREAKPOINT"),
        ("REPAIR_PLACEHOLDERS__INVALID", "REPAIR_PLACEHOLDER"),
    ]:
        monkeypatch.setenv(wrong, "x")
        assert refusal() == f"{wrong} is no setting; did you mean {right}?"
        monkeypatch.delenv(wrong)


def test_variables_of_somebody_else_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REPAIR_TEST_DSN", "REPAIR_SHOP", "REPAIR_FUZZ_EXAMPLES", "REPAIR_DEBUG"):
        monkeypatch.setenv(name, "x")
    assert load_settings({}).options() == Settings().options()


def test_content_is_shown_by_its_flag_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPAIR_SHOW_CONTENT", "1")
    monkeypatch.setenv("REPAIR_OUTPUT", "report")
    assert (load_settings({}).show_content, load_settings({}).output) == (False, None)
    assert load_settings({"show_content": True}).show_content


def test_only_what_a_switch_mends_can_be_allowed() -> None:
    assert load_settings({"allow": ["bound_prefix"]}).policy().allow == {"bound_prefix"}
    assert "those are: at_rest, bound_prefix, duplicate_result, orphan_result" in refusal(
        allow=["everything"]
    )
    assert "'bad_call_id' is not a matter of a switch" in refusal(allow=["bad_call_id"])


def test_no_report_and_no_text_of_the_settings_shows_the_password() -> None:
    settings = load_settings({"database_url": "postgresql://me:hunter2@host/db"})
    assert "hunter2" not in f"{settings!r} {settings} {settings.options()}"
    assert "database_url" not in settings.options()


def test_options_are_named_as_their_flags() -> None:
    options = load_settings({"schema": "other", "min_idle": "5m"}).options()
    assert (options["schema"], options["min_idle"], options["allow"]) == ("other", 300.0, [])


def test_the_key_comes_from_its_variable_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert aes_key() is None
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "k" * 16)
    assert aes_key() == b"k" * 16
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "secret")
    with pytest.raises(UsageError, match="6 bytes long") as refused:
        aes_key()
    assert "secret" not in str(refused.value)
