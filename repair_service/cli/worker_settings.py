"""What `serve` is told: every store and schedule checked as its verb will be told it."""

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from repair_service.cli.opening import store_address
from repair_service.cli.settings import FLAGS_ONLY, Settings, file_path, load_settings, said_names
from repair_service.cli.telling import webhook_of
from repair_service.cli.times import parse_duration, say_duration
from repair_service.cli.variables import check_key
from repair_service.cli.worker_tables import SettingsTable, read_tables
from repair_service.errors import UsageError
from repair_service.store.failures import read_address
from repair_service.worker.configuration import (
    ScheduleConfiguration,
    StoreConfiguration,
    WorkerConfiguration,
)
from repair_service.worker.state import Verb
from repair_service.worker.times import trigger_of
from repair_service.worker.webhook import Webhook

DEFAULT_STORE = "default"

NOT_OF_A_RUN = FLAGS_ONLY | {"format", "yes", "dry_run", "ledger_url"}
"""Settings that say nothing to a run of the worker, or that all of its runs have in common."""

OF_A_STORE = frozenset({"aes_key"})
NOT_OF_A_SCHEDULE = frozenset({"database_url", "schema", "actor"})
OF_A_SCHEDULE = frozenset({"store", "verb", "cron", "every", "timezone"})
OF_THE_WORKER = frozenset(
    {"listen", "lease", "look", "grace", "show_content", "token_file", "allowed_hosts"}
)

LISTEN = "127.0.0.1:8321"

SHORTEST_LEASE = 3.0
"""Seconds: of a third of it, a slow answer of the database must be a small part."""

SHORTEST_TOKEN = 16
"""Characters: a shorter one can be guessed."""


class _Problems:
    """What is wrong, so that all of it is said at once."""

    def __init__(self) -> None:
        self.said: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Goes on behind a bad setting."""
        try:
            yield
        except UsageError as error:
            self.said.append(str(error))


def load_worker(flags: Mapping[str, Any]) -> WorkerConfiguration:
    """Put the settings of a worker together.

    Args:
        flags: The flags by name, as typer gives them.

    Returns:
        The settings, all checked; nothing was connected.

    Raises:
        UsageError: Some cannot be meant; the message is a sentence a line, each with its place.
    """
    base = load_settings(flags)
    tables, planned, own = read_tables(file_path(flags.get("config")), os.environ)
    tables = tables or {DEFAULT_STORE: SettingsTable({}, {})}
    problems = _Problems()
    ledger_address = ""
    with problems.noted():
        ledger_address = _ledger_address(base, tables)
    stores = []
    for name, table in tables.items():
        with problems.noted():
            stores.append(_store(name, table, base, ledger_address, flags))
    with problems.noted():
        _check_apart(stores)
    schedules = []
    for name, table in planned.items():
        with problems.noted():
            schedules.append(_schedule(name, table, tables, stores, flags))
    worker: WorkerConfiguration | None = None
    with problems.noted():
        worker = _worker(own, flags, ledger_address, stores, schedules, webhook_of(base))
    if problems.said or worker is None:
        raise UsageError("\n".join(problems.said))
    return worker


def _address(table: SettingsTable, base: Settings) -> str:
    """The address of a store: its own, else the one at the top. Secret."""
    own = table.text("database_url")
    return own if own and own.strip() else store_address(base)


def _ledger_address(base: Settings, tables: Mapping[str, SettingsTable]) -> str:
    """The address of the one ledger that a worker has. Secret."""
    if base.ledger_url is not None and base.ledger_url.get_secret_value().strip():
        return base.ledger_url.get_secret_value()
    addresses = {_address(table, base) for table in tables.values()}
    if len(addresses) > 1:
        raise UsageError(
            "Several stores in several databases need one ledger for all of them: set ledger_url "
            "(REPAIR_LEDGER_URL) to the database that is to keep it."
        )
    return addresses.pop()


def _store(
    name: str,
    table: SettingsTable,
    base: Settings,
    ledger_address: str,
    flags: Mapping[str, Any],
) -> StoreConfiguration:
    known = said_names() - NOT_OF_A_RUN
    table.check_known(known | OF_A_STORE)
    address = _address(table, base)
    told = {
        "schema": base.store_schema,
        **table.only(known).values,
        "database_url": address,
        "ledger_url": ledger_address or None,
    }
    settings = _checked(told, table.places, flags)
    return StoreConfiguration(
        name=name,
        address=address,
        target=read_address(address).text,
        schema=settings.store_schema,
        policy=settings.policy(),
        settings=told,
        needs_reason=settings.require_reason,
        aes_key=check_key(key, table.places["aes_key"]) if (key := table.text("aes_key")) else None,
    )


def _check_apart(stores: Iterable[StoreConfiguration]) -> None:
    """Two names for one store would let two runs of it overlap."""
    seen: dict[tuple[str, str], str] = {}
    for store in stores:
        other = seen.setdefault((store.address, store.schema), store.name)
        if other != store.name:
            raise UsageError(
                f"The stores {other} and {store.name} are one: give each its own database_url or "
                "schema, or make two schedules of one store."
            )


def _schedule(
    name: str,
    table: SettingsTable,
    tables: Mapping[str, SettingsTable],
    stores: list[StoreConfiguration],
    flags: Mapping[str, Any],
) -> ScheduleConfiguration:
    own = said_names() - NOT_OF_A_RUN - NOT_OF_A_SCHEDULE
    table.check_known(own | OF_A_SCHEDULE)
    place = next(iter(table.places.values()), f"schedules.{name}").rpartition(".")[0]
    store = _store_of(name, table, tables, stores)
    verb = _verb(table, place)
    cron, every, timezone, trigger = _times(table, place)
    told = {**store.settings, **table.only(own).values}
    settings = _checked(told, {**tables[store.name].places, **table.places}, flags)
    if verb == "sweep" and settings.require_reason and not (settings.reason or "").strip():
        raise UsageError(
            f"{place}: a reason is required for every write (require_reason), and this schedule "
            "has none; set its reason."
        )
    return ScheduleConfiguration(
        name=name,
        store=store.name,
        verb=verb,
        cron=cron,
        every=every,
        timezone=timezone,
        trigger=trigger,
        settings=told,
        actor=settings.actor or f"schedule {name}",
        reason=settings.reason,
    )


def _store_of(
    name: str,
    table: SettingsTable,
    tables: Mapping[str, SettingsTable],
    stores: list[StoreConfiguration],
) -> StoreConfiguration:
    wanted = table.text("store")
    if wanted is None and len(tables) > 1:
        raise UsageError(
            f"schedules.{name}: there are several stores; set store to one of "
            f"{', '.join(sorted(tables))}."
        )
    if wanted is not None and wanted not in tables:
        raise UsageError(
            f"{table.places['store']}: there is no store {wanted!r}; there is "
            f"{', '.join(sorted(tables))}."
        )
    found = next((store for store in stores if wanted in (None, store.name)), None)
    if found is None:
        raise UsageError(f"schedules.{name}: its store's settings cannot be used.")
    return found


def _verb(table: SettingsTable, place: str) -> Verb:
    match table.text("verb"):
        case "audit":
            return "audit"
        case "sweep":
            return "sweep"
        case None:
            raise UsageError(f"{place}: it has no verb; set verb to audit or sweep.")
        case other:
            raise UsageError(f"{table.places['verb']}: {other!r} is neither audit nor sweep.")


def _times(table: SettingsTable, place: str) -> tuple[str | None, float | None, str, str]:
    """Cron, seconds, time zone, and the same in words."""
    cron, every, timezone = table.text("cron"), table.text("every"), table.text("timezone")
    if (cron is None) == (every is None):
        raise UsageError(f'{place}: set cron = "0 3 * * *" or every = "15m", one of the two.')
    seconds: float | None = None
    try:
        seconds = None if every is None else parse_duration(every)
        trigger_of(cron, seconds, timezone or "UTC")
    except (ValueError, UsageError) as error:
        raise UsageError(f"{place}: {error}.") from None
    if seconds is not None:
        if timezone is not None:
            raise UsageError(f"{table.places['timezone']}: a time zone is for cron, not for every.")
        return None, seconds, "UTC", f"every {say_duration(seconds)}"
    return cron, None, timezone or "UTC", f"{cron} {timezone or 'UTC'}"


def _checked(
    told: Mapping[str, Any], places: Mapping[str, str], flags: Mapping[str, Any]
) -> Settings:
    """The settings as a run will have them."""
    return load_settings({"config": flags.get("config")}, told, places)


def _worker(
    table: SettingsTable,
    flags: Mapping[str, Any],
    ledger_address: str,
    stores: list[StoreConfiguration],
    schedules: list[ScheduleConfiguration],
    webhook: Webhook | None,
) -> WorkerConfiguration:
    if "token" in table.places:
        raise UsageError(
            f"{table.places['token']}: a token is a secret, and not for this place; set "
            "REPAIR_WORKER_TOKEN, or token_file to a file that holds it."
        )
    table.check_known(OF_THE_WORKER)
    host, port = _listen(flags.get("listen") or table.text("listen") or LISTEN)
    lease = _seconds(table, "lease", 30.0)
    if lease < SHORTEST_LEASE:
        raise UsageError(f"{table.places['lease']}: a lease of less than 3s is lost too easily.")
    content = table.values.get("show_content", False)
    if content not in (True, False, "true", "false"):
        raise UsageError(f"{table.places['show_content']}: true or false is needed.")
    return WorkerConfiguration(
        replica=f"{socket.gethostname()}-{uuid4().hex[:6]}",
        ledger_address=ledger_address,
        host=host,
        port=port,
        token=_token(table),
        show_content=content in (True, "true"),
        lease=lease,
        look=_seconds(table, "look", 2.0),
        grace=_seconds(table, "grace", 25.0),
        allowed_hosts=_hosts(table),
        webhook=webhook,
        stores=tuple(stores),
        schedules=tuple(schedules),
    )


def _hosts(table: SettingsTable) -> tuple[str, ...]:
    """Several names, as a list or with commas between."""
    found = table.values.get("allowed_hosts", ())
    names = found.split(",") if isinstance(found, str) else found
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{table.places['allowed_hosts']}: names of hosts are needed, as a list.")
    return tuple(name.strip() for name in names if name.strip())


def _listen(text: str) -> tuple[str, int]:
    """The host and the port of `HOST:PORT`, `[::1]:8321` or `:8321` (every address)."""
    host, colon, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "0.0.0.0"  # noqa: S104  # as it was asked
    if not colon or not port.isdecimal() or not port.isascii() or int(port) > 65535:
        raise UsageError(f"--listen: {text!r} is no address; write it like {LISTEN}.")
    return host, int(port)


def _seconds(table: SettingsTable, name: str, default: float) -> float:
    text = table.text(name)
    try:
        seconds = default if text is None else parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{table.places[name]}: {error}.") from None
    if seconds <= 0:
        raise UsageError(f"{table.places[name]}: more than no time is needed.")
    return seconds


def _token(table: SettingsTable) -> str | None:
    """The token of the writing requests: REPAIR_WORKER_TOKEN, else a file. Secret."""
    token, place = os.environ.get("REPAIR_WORKER_TOKEN"), "REPAIR_WORKER_TOKEN"
    named = os.environ.get("REPAIR_WORKER_TOKEN_FILE") or table.text("token_file")
    if not token and named:
        place = named
        try:
            token = Path(named).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            said = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise UsageError(f"The token's file {named} cannot be read: {said}.") from None
    token = (token or "").strip()
    if not token and not named:
        return None
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise UsageError(
            f"{place}: a token has {SHORTEST_TOKEN} printable ASCII characters at least; make one "
            "with: openssl rand -hex 32."
        )
    return token
