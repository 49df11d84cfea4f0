"""Durations and points in time as operators write them."""

import pytest

from repair_service.cli.times import parse_duration, parse_time, say_duration, say_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1d", 86400),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (" 10M ", 600),
        ("0", 0),
        ("0s", 0),
    ],
)
def test_durations_have_units(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "10x", "m", "-5m", "10 m", "1e3s", "infs", "5m!", "٣s"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 90s, 10m, 2h or 1d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-03-01T14:30:00Z", 1772375400),
        ("2026-03-01T14:30:00", 1772375400),
        ("2026-03-01 14:30", 1772375400),
        ("2026-03-01T15:30:00+01:00", 1772375400),
        ("20260301T143000Z", 1772375400),
        ("2026-03-01", 1772323200),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "14:30", "2026-13-01", "1772375400"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="ISO 8601, like 2026-03-01T14:30:00Z"):
        parse_time(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.6, "1m"), (90, "1m 30s"), (3600, "1h"), (90061, "1d 1h"), (86405, "1d")],
)
def test_durations_are_said_in_their_two_greatest_units(seconds: float, text: str) -> None:
    assert say_duration(seconds) == text


def test_times_are_said_in_utc() -> None:
    assert say_time(1772375400.9) == "2026-03-01T14:30:00Z"
