"""Durations (`10m`, `1h30m`) and points in time (ISO 8601), as operators write them."""

import re
from datetime import UTC, datetime

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def parse_duration(text: str) -> float:
    """Read a duration.

    Args:
        text: Numbers, each with a unit of `s`, `m`, `h` or `d`: `90s`, `10m`, `1h30m`. A bare `0`
            needs no unit.

    Returns:
        The duration in seconds.

    Raises:
        ValueError: The text is no duration; the message says how to write one.
    """
    written = text.strip().lower()
    if written == "0":
        return 0.0
    if not _DURATION.fullmatch(written):
        raise ValueError(f"{text!r} is no duration; write it like 90s, 10m, 2h or 1d")
    return sum(float(number) * SECONDS[unit] for number, unit in _PART.findall(written))


def parse_time(text: str) -> float:
    """Read a point in time.

    Args:
        text: ISO 8601, a date or a date with a time; without a zone it is UTC.

    Returns:
        Seconds since 1970.

    Raises:
        ValueError: The text is no time; the message says how to write one.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{text!r} is no time; write it in ISO 8601, like 2026-03-01T14:30:00Z "
            "(without a zone it is UTC)"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def say_duration(seconds: float) -> str:
    """A duration as a person reads it, in its two greatest units: `2d 3h`, `1m 30s`, `0s`."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for unit in ("d", "h", "m", "s"):
        count, left = divmod(left, int(SECONDS[unit]))
        if count or parts:
            parts.append(f"{count}{unit}")
    return " ".join([part for part in parts[:2] if not part.startswith("0")] or ["0s"])


def say_time(seconds: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC, to the second."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
