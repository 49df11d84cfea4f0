"""The settings: flags, then the environment, then the TOML file, then the defaults.

Each setting has one name: the flag `--min-idle` is `REPAIR_MIN_IDLE` in the environment and
`min_idle` in the file. Only the key of an encrypted store has another: see `variables`.
"""

import difflib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from repair_service.cli.migrations import migration_of
from repair_service.cli.placeholders import PlaceholderSettings
from repair_service.cli.shards import parse_shard
from repair_service.cli.telling import WebhookSettings
from repair_service.cli.times import parse_duration, parse_time, say_time
from repair_service.cli.toml_file import read_toml
from repair_service.cli.variables import WORKER_TABLES, check_variables, settings_told
from repair_service.errors import UsageError
from repair_service.repair.judge import ALLOWABLE
from repair_service.repair.verdict import Placeholders, Policy
from repair_service.repair.waits import AT_REST
from repair_service.store.connection import Bounds
from repair_service.sweep.shard import WHOLE, Shard
from repair_service.sweep.throttle import Limits
from repair_service.sweep.write import QUARANTINED
from repair_service.transcript.fault import FaultKind

DEFAULT_FILE = Path("repair-service.toml")
FLAGS_ONLY = frozenset({"output", "show_content", "migrate", "rename", "remove", "preset"})
"""Flags that are about one call of the command, or that nobody should set and forget."""

FARTHEST_DEPLOY = 24 * 3600.0
"""Seconds: a deploy later than this is a slip of the pen, and nobody wants to wait for it."""

LOAD_SETTINGS = ("rate", "max_lag", "max_active", "throttle_query", "pause_file", "read_url")
"""What keeps a run that looks at many threads from being a burden."""

LONGEST_TIMEOUT = 24 * 3600.0
"""Seconds; Postgres takes no more than 24 days."""

OWN_FLAGS = frozenset(
    {
        *("config", "debug", "thread_id", "keep", "out", "plan_file", "target", "run", "run_id"),
        *("limit", "check", "listen", "types"),
    }
)
"""Flags and arguments that a verb reads by itself: no settings."""

_RENAMED = {"schema": "store_schema"}  # pydantic has a method named `schema`
_SECRET = frozenset({"database_url", "ledger_url", "read_url"})


def _with(parse: Callable[[str], float]) -> BeforeValidator:
    """Parse text; a default is a number already."""

    def read(value: object) -> float:
        if isinstance(value, float):
            return value
        return parse(value if isinstance(value, str) else str(value))

    return BeforeValidator(read)


def _names(value: object) -> object:
    """One name, several with commas between (the environment), or a list (flags, the file)."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Duration = Annotated[float, _with(parse_duration)]
Time = Annotated[float, _with(parse_time)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]


class Settings(BaseSettings):
    """What a verb is told; durations in seconds, times in seconds since 1970."""

    model_config = SettingsConfigDict(
        env_prefix="REPAIR_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
    )

    database_url: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("REPAIR_DATABASE_URL", "DATABASE_URL")
    )
    # The schema in which LangGraph's saver makes its tables unless the search path says otherwise.
    store_schema: str = Field(default="public", validation_alias="REPAIR_SCHEMA", min_length=1)
    # The store's own database by default: there a patch and its row are one transaction.
    ledger_url: SecretStr | None = None
    format: Literal["table", "json", "jsonl", "markdown", "html"] = "table"
    output: Path | None = None
    show_content: bool = False
    thread: Names = ()
    namespace: str | None = None
    since: Time | None = None
    # As text, so that a report says it as it was given.
    shard: str | None = None
    # Each is a process with two connections: more than a few are for the store's owner to allow.
    full: bool = False
    jobs: int = Field(default=1, ge=1, le=32)
    # Longer than a tool should take: a younger head may belong to a run that is alive.
    min_idle: Duration = 600.0
    deployed_at: Time | None = None
    # Twice the 30 s that Kubernetes gives an old process before it is killed.
    settle: Duration = 60.0
    active_query: str | None = None
    breakpoint: Names = ()
    infer_breakpoints: bool = True
    client_tool: Names = ()
    tool_node: Names = ()
    resume: Literal["continue", "park"] = "continue"
    route: str | None = None
    allow: Names = ()
    last: int | None = Field(default=None, ge=1)
    # The nodes that the graphs have now.
    nodes: Names = ()
    # What a verb `migrate ...` is about; never set but by its flags, or a sweep would be one.
    migrate: Literal["nodes", "channels", "types"] | None = None
    rename: Names = ()
    remove: Names = ()
    preset: str | None = None
    placeholder: PlaceholderSettings = PlaceholderSettings()
    webhook: WebhookSettings = WebhookSettings()
    reason: str | None = None
    require_reason: bool = False
    actor: str | None = None
    max_repairs: int | None = Field(default=None, ge=0)
    run_time: Duration | None = None
    max_ratio: float | None = Field(default=None, ge=0, le=1)
    # Often enough for an outage that lasts; a thread that breaks more often has another cause.
    max_repairs_per_thread: int = Field(default=3, ge=1)
    yes: bool = False
    # What a run leaves to those whom the server is for; nothing by default.
    rate: float | None = Field(default=None, gt=0)
    max_lag: Duration | None = None
    max_active: int | None = Field(default=None, ge=0)
    throttle_query: str | None = None
    pause_file: Path | None = None
    # A batch reads in well under a second: a minute means a server in trouble.
    statement_timeout: Duration = 60.0
    # The application's migrations lock its tables, and must not wait behind us for long.
    lock_timeout: Duration = 2.0
    read_url: SecretStr | None = None
    dry_run: bool = False
    exit_zero: bool = False

    @field_validator("shard")
    @classmethod
    def _one_of_many(cls, text: str | None) -> str | None:
        return None if text is None else str(parse_shard(text, os.environ))

    @field_validator("deployed_at")
    @classmethod
    def _begun(cls, moment: float | None) -> float | None:
        if moment is not None and moment - time.time() > FARTHEST_DEPLOY:
            raise ValueError(
                f"{say_time(moment)} is more than a day away; give the time at which the deploy "
                "began"
            )
        return moment

    @field_validator("allow")
    @classmethod
    def _allowable(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        known = {AT_REST, QUARANTINED, *ALLOWABLE}
        words = ", ".join(sorted(known))
        for kind in kinds:
            if kind in known:
                continue
            if kind in set(FaultKind):
                raise ValueError(f"{kind!r} is not a matter of a switch; those that are: {words}")
            raise ValueError(f"{kind!r} is not a kind that can be allowed; those are: {words}")
        return kinds

    @field_validator("statement_timeout", "lock_timeout")
    @classmethod
    def _taken_by_postgres(cls, seconds: float) -> float:
        if seconds > LONGEST_TIMEOUT or 0 < seconds < 0.001:
            raise ValueError("write it like 30s or 2m, a day at most; 0 is for no bound at all")
        return seconds

    @field_validator("thread")
    @classmethod
    def _no_null_byte(cls, threads: tuple[str, ...]) -> tuple[str, ...]:
        if any("\0" in thread for thread in threads):
            raise ValueError("a thread id has no null character in Postgres")
        return threads

    @property
    def part(self) -> Shard:
        """The part of the threads that is looked at."""
        return WHOLE if self.shard is None else parse_shard(self.shard, {})

    def policy(self) -> Policy:
        """What the operator allows and declares, as the diagnosis takes it.

        Raises:
            UsageError: The flags of a migration cannot be meant.
        """
        return Policy(
            allow=frozenset(self.allow),
            breakpoints=frozenset(self.breakpoint),
            infer_breakpoints=self.infer_breakpoints,
            last=self.last,
            client_tools=frozenset(self.client_tool),
            tool_nodes=frozenset(self.tool_node),
            resume=self.resume,
            route=self.route,
            placeholders=Placeholders(
                interrupted=self.placeholder.interrupted,
                invalid=self.placeholder.invalid,
                by_tool=dict(self.placeholder.by_tool),
            ),
            min_idle=self.min_idle,
            deployed_at=self.deployed_at,
            nodes=frozenset(self.nodes),
            migration=migration_of(self.migrate, self.rename, self.remove, self.preset),
        )

    def bounds(self) -> Bounds:
        """How long a server may take."""
        return Bounds(round(self.statement_timeout * 1000), round(self.lock_timeout * 1000))

    def limits(self) -> Limits:
        """What a run leaves to others, all of its processes together."""
        return Limits(
            self.rate, self.max_lag, self.max_active, self.throttle_query, self.pause_file
        )

    def options(self) -> dict[str, Any]:
        """The settings for a report: by their flags' names, without the addresses."""
        hidden = {"migrate", "rename", "remove", "preset"} if self.migrate is None else set[str]()
        left_out = {*_SECRET, *hidden, "placeholder", "webhook"}
        shown = self.model_dump(mode="json", exclude=left_out)
        return {_said(name): value for name, value in shown.items()}


def _over(values: Mapping[str, Any]) -> type[Settings]:
    """The settings over the values of a file: no .env file, no directory of secrets."""

    class OverFile(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            file = InitSettingsSource(settings_cls, init_kwargs=dict(values))
            return init_settings, env_settings, file

    return OverFile


def load_settings(
    flags: Mapping[str, Any],
    told: Mapping[str, Any] | None = None,
    places: Mapping[str, str] | None = None,
) -> Settings:
    """Put the settings of one call together.

    Args:
        flags: The flags by name, as typer gives them; None and empty lists are flags not given.
        told: What a worker tells its runs, by the settings' names: behind the flags, and before
            the environment; what the environment holds of it by default.
        places: Where each of these comes from, for a message.

    Returns:
        The settings, all checked.

    Raises:
        UsageError: A value, a key or the file cannot be meant; the message names its source.
    """
    if told is None:
        told = settings_told(os.environ)
    given = {_RENAMED.get(name, name): value for name, value in told.items() if value is not None}
    given |= {
        _RENAMED.get(name, name): value
        for name, value in flags.items()
        if value is not None and value not in ([], ()) and name not in OWN_FLAGS
    }
    check_variables(os.environ, _names_of(Settings.model_fields))
    path = file_path(flags.get("config"))
    settings = _over(_read_file(path) if path else {})
    unset = {name: Settings.model_fields[name].default for name in FLAGS_ONLY}
    try:
        return settings(**(unset | given))
    except SettingsError:
        # Only two settings are tables, and only the environment has to spell one out.
        raise UsageError(
            "REPAIR_PLACEHOLDER and REPAIR_WEBHOOK are tables; set REPAIR_PLACEHOLDER__INTERRUPTED "
            "or REPAIR_WEBHOOK__URL, and so on, instead."
        ) from None
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        name = str(problem["loc"][0]) if problem["loc"] else ""
        place = _place(name, given, path, places or {})
        inner = ".".join(str(part) for part in problem["loc"][1:] if isinstance(part, str))
        raise UsageError(f"{place}{f' ({inner})' if inner else ''}: {_said_of(problem)}.") from None


def file_path(config: Path | None) -> Path | None:
    """The file with the settings: as named, else as the environment says, else the default one."""
    named = config or (Path(text) if (text := os.environ.get("REPAIR_CONFIG")) else None)
    if named is not None:
        return named
    return DEFAULT_FILE if DEFAULT_FILE.is_file() else None


def _read_file(path: Path) -> dict[str, Any]:
    """The file's values by the settings' field names."""
    values = read_toml(path)
    known = _names_of(Settings.model_fields) - FLAGS_ONLY
    for key in values:
        if key not in known | WORKER_TABLES:
            raise UsageError(f"{path}: {key!r} is no setting{nearest(key, known)}")
    if "secret" in _table(values, "webhook"):
        raise UsageError(
            f"{path}: webhook (secret): a secret does not belong in this file; give "
            "REPAIR_WEBHOOK__SECRET, or name a file of its own with secret_file."
        )
    mine = {key: value for key, value in values.items() if key not in WORKER_TABLES}
    return {_RENAMED.get(key, key): value for key, value in mine.items()}


def said_names() -> set[str]:
    """The names of all settings, as the file has them."""
    return _names_of(Settings.model_fields)


def _table(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = values.get(key)
    return table if isinstance(table, dict) else {}


def nearest(key: str, known: Iterable[str]) -> str:
    """The end of a sentence about a key that is no setting: the one that may be meant."""
    near = difflib.get_close_matches(key.replace("-", "_"), sorted(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else "."


def _names_of(fields: Iterable[str]) -> set[str]:
    return {_said(field) for field in fields}


def _said(field: str) -> str:
    return next((said for said, name in _RENAMED.items() if name == field), field)


def _place(
    name: str, given: Mapping[str, Any], path: Path | None, places: Mapping[str, str]
) -> str:
    """Where a bad value came from: its flag, its variable, or its key in the file."""
    field = {"REPAIR_SCHEMA": "store_schema", "DATABASE_URL": "database_url"}.get(name, name)
    field = {"REPAIR_DATABASE_URL": "database_url"}.get(field, field)
    said = _said(field)
    if said in places:
        return places[said]
    if field in given:
        return "--" + said.replace("_", "-")
    prefix = f"REPAIR_{said.upper()}"
    if any(key == prefix or key.startswith(prefix + "__") for key in os.environ):
        return prefix
    return f"{path}: {said}" if path else said


def _said_of(problem: Any) -> str:
    """Pydantic's finding as a clause, without the value unless our own message quotes it."""
    own = problem.get("ctx", {}).get("error")
    if isinstance(own, Exception):
        return str(own)
    if problem["type"] == "literal_error":
        return f"one of {problem['ctx']['expected']} is needed"
    text = str(problem["msg"])
    return text[:1].lower() + text[1:]
