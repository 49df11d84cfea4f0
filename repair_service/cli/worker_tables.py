"""The worker's tables, from the file and the environment: stores, schedules, and its own."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repair_service.cli.settings import nearest
from repair_service.cli.toml_file import read_toml
from repair_service.errors import UsageError

EXAMPLES = {"stores": "DATABASE_URL", "schedules": "EVERY"}

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class SettingsTable:
    """One table, over what the environment says of it.

    Attributes:
        values: Its settings by their names; addresses may be among them.
        places: Where each comes from, for a message.
    """

    values: Mapping[str, Any] = field(repr=False)
    places: Mapping[str, str]

    def over(self, other: "SettingsTable") -> "SettingsTable":
        """Both, where this one goes before the other."""
        return SettingsTable({**other.values, **self.values}, {**other.places, **self.places})

    def only(self, names: Collection[str]) -> "SettingsTable":
        """These settings of it."""
        kept = {name: value for name, value in self.values.items() if name in names}
        return SettingsTable(kept, {name: self.places[name] for name in kept})

    def check_known(self, names: Collection[str]) -> None:
        """Refuse a setting that is none.

        Raises:
            UsageError: One is not among these names.
        """
        for name, place in self.places.items():
            if name not in names:
                raise UsageError(f"{place} is no setting{nearest(name, names)}")

    def text(self, name: str) -> str | None:
        """A setting that is a text; None where it is not set.

        Raises:
            UsageError: It is something else.
        """
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise UsageError(f"{self.places[name]}: a text is needed, in quotation marks.")


def read_tables(
    path: Path | None, environment: Mapping[str, str]
) -> tuple[dict[str, SettingsTable], dict[str, SettingsTable], SettingsTable]:
    """The stores, the schedules, each by its name, and the worker's own settings.

    Args:
        path: The file; None where there is none.
        environment: The environment: REPAIR_STORES__NAME__SETTING, REPAIR_SCHEDULES__NAME__SETTING
            and REPAIR_WORKER__SETTING. It goes before the file.

    Raises:
        UsageError: The file cannot be read, or is not made like that.
    """
    document = read_toml(path) if path else {}
    stores = _named("stores", document, path, environment)
    schedules = _named("schedules", document, path, environment)
    own = _table(document.get("worker", {}), f"{path}: worker")
    of_environment = _variables("REPAIR_WORKER__", environment)
    worker = SettingsTable(
        of_environment, {name: f"REPAIR_WORKER__{name.upper()}" for name in of_environment}
    ).over(own)
    return stores, schedules, worker


def _named(
    section: str, document: Mapping[str, Any], path: Path | None, environment: Mapping[str, str]
) -> dict[str, SettingsTable]:
    """The tables of a section, in the order of the file."""
    written = document.get(section, {})
    if not isinstance(written, dict):
        raise UsageError(f"{path}: {section} is made of tables, like [{section}.NAME].")
    tables = {}
    for name, values in written.items():
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{path}: {section}.{name!r} is no name; letters, digits, - and _ make one, of "
                "63 characters at most."
            )
        tables[name] = _table(values, f"{path}: {section}.{name}")
    for said, values in _variables(f"REPAIR_{section.upper()}__", environment).items():
        if not isinstance(values, dict):
            raise UsageError(
                f"REPAIR_{section.upper()}__{said.upper()} is a table; set one of its settings, "
                f"like REPAIR_{section.upper()}__{said.upper()}__{EXAMPLES[section]}."
            )
        name = next((name for name in tables if _as_variable(name) == said), said)
        places = {key: f"REPAIR_{section.upper()}__{said.upper()}__{key.upper()}" for key in values}
        own = SettingsTable(values, places)
        tables[name] = own.over(tables[name]) if name in tables else own
    return tables


def _table(values: object, place: str) -> SettingsTable:
    if not isinstance(values, dict):
        raise UsageError(f"{place} is a table, like [{place.rpartition(' ')[2]}].")
    return SettingsTable(values, {name: f"{place}.{name}" for name in values})


def _as_variable(name: str) -> str:
    """A name as a variable says it: no shell takes another character."""
    return name.replace("-", "_").lower()


def _variables(prefix: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """What the variables with a prefix say, in lower case, `__` between the tables."""
    found: dict[str, Any] = {}
    for variable in sorted(environment):
        if not variable.startswith(prefix) or not environment[variable]:
            continue
        *tables, name = variable.removeprefix(prefix).lower().split("__")
        inner = found
        for table in tables:
            inner = inner.setdefault(table, {})
            if not isinstance(inner, dict):
                raise UsageError(f"{variable} is in no table, for {table.upper()} is a value.")
        inner[name] = environment[variable]
    return found
