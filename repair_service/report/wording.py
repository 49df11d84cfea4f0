"""Numbers, times and settings as a report says them."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from repair_service.repair.durations import said_duration
from repair_service.report.table import printable

LONGEST_SETTING = 300
"""Characters of a setting that are shown: a selection may name thousands of threads."""

MOST_VALUES = 20
"""Values of one setting that are shown."""

TIMES = frozenset({"since", "deployed_at"})
DURATIONS = frozenset({"min_idle", "settle"})


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number and its noun: `1 head`, `5,000 heads`."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def said_time(moment: datetime) -> str:
    """A time in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def settings_of(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The settings that were set, by name, as text without line breaks.

    Args:
        values: What the ledger keeps of a selection or a policy.
        prefix: The name of what they belong to.

    Yields:
        Name and value; settings that are empty, false or missing ask for nothing and are left out.
    """
    for name, value in values.items():
        full = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from settings_of(value, f"{full}.")
        elif said := _said_setting(name, value):
            yield printable(full), said


def _said_setting(name: str, value: Any) -> str:
    if value is None or value is False or value in ([], ()):
        return ""
    if value is True:
        return "yes"
    if isinstance(value, list | tuple):
        said = ", ".join(_said_value(each) for each in value[:MOST_VALUES])
        left = len(value) - MOST_VALUES
        return f"{_cut(said)} and {left:,} more" if left > 0 else _cut(said)
    if isinstance(value, int | float):
        if name in TIMES:
            return _said_seconds(value)
        return said_duration(value) if name in DURATIONS else f"{value:g}"
    return _cut(_said_value(value))


def _said_seconds(value: float) -> str:
    try:
        return said_time(datetime.fromtimestamp(value, UTC))
    except (ValueError, OverflowError, OSError):
        return f"{value:g}"


def _said_value(value: Any) -> str:
    return printable(str(value)) or "(empty)"


def _cut(text: str) -> str:
    if len(text) <= LONGEST_SETTING:
        return text
    return f"{text[:LONGEST_SETTING]}… ({len(text):,} characters)"
