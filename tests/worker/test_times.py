"""The times of a schedule: as a crontab means them, and those that passed while nobody looked."""

from datetime import UTC, datetime, timedelta

import pytest

from repair_service.errors import UsageError
from repair_service.worker.times import Passed, next_time, next_times, passed, trigger_of

SUNDAY = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def following(cron: str, count: int, timezone: str = "UTC") -> list[str]:
    times = next_times(trigger_of(cron, None, timezone), SUNDAY, count)
    return [time.strftime("%a %d %H:%M") for time in times]


@pytest.mark.parametrize(
    ("cron", "times"),
    [
        ("0 3 * * *", ["Mon 02 03:00", "Tue 03 03:00"]),
        ("*/20 * * * *", ["Sun 01 12:20", "Sun 01 12:40", "Sun 01 13:00"]),
        ("0 0 * * 0", ["Sun 08 00:00", "Sun 15 00:00"]),
        ("0 0 * * 7", ["Sun 08 00:00", "Sun 15 00:00"]),
        ("0 0 * * 1", ["Mon 02 00:00", "Mon 09 00:00"]),
        ("0 0 * * 5-7", ["Fri 06 00:00", "Sat 07 00:00", "Sun 08 00:00", "Fri 13 00:00"]),
        ("0 0 * * 0-1", ["Mon 02 00:00", "Sun 08 00:00", "Mon 09 00:00"]),
        ("0 0 * * 1,3", ["Mon 02 00:00", "Wed 04 00:00", "Mon 09 00:00"]),
        ("0 0 * * */3", ["Wed 04 00:00", "Sat 07 00:00", "Sun 08 00:00"]),
        ("0 0 * * mon-tue", ["Mon 02 00:00", "Tue 03 00:00", "Mon 09 00:00"]),
        ("0 12 15 * *", ["Sun 15 12:00"]),
    ],
)
def test_five_fields_mean_what_a_crontab_means(cron: str, times: list[str]) -> None:
    assert following(cron, len(times)) == times


def test_the_calendar_is_that_of_the_time_zone() -> None:
    assert following("0 3 * * *", 1, "Europe/Berlin") == ["Mon 02 02:00"]


@pytest.mark.parametrize(
    ("cron", "every", "timezone", "said"),
    [
        ("0 3 * *", None, "UTC", "needs five"),
        ("0 3 1 * 1", None, "UTC", "of the month and of the week"),
        ("61 3 * * *", None, "UTC", "cannot be read"),
        ("0 3 * * 8", None, "UTC", "cannot be read"),
        ("0 3 * * 5-2", None, "UTC", "cannot be read"),
        ("0 3 * * *", None, "Europe/Atlantis", "no time zone"),
        (None, 0.5, "UTC", "every second at most"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    cron: str | None, every: float | None, timezone: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        trigger_of(cron, every, timezone)


def test_no_time_has_passed_before_the_next_one() -> None:
    trigger = trigger_of(None, 900.0, "UTC")

    assert passed(trigger, SUNDAY, SUNDAY + timedelta(seconds=899)) is None
    assert passed(trigger, SUNDAY, SUNDAY + timedelta(seconds=900)) == Passed(
        1, SUNDAY + timedelta(seconds=900)
    )


@pytest.mark.parametrize(
    ("cron", "every"), [("*/15 * * * *", None), (None, 900.0)], ids=["cron", "every"]
)
def test_the_times_that_passed_are_counted_up_to_the_last(
    cron: str | None, every: float | None
) -> None:
    trigger = trigger_of(cron, every, "UTC")

    found = passed(trigger, SUNDAY, SUNDAY + timedelta(hours=24, minutes=14))

    assert found == Passed(96, SUNDAY + timedelta(hours=24))
    assert next_time(trigger, found.last) == SUNDAY + timedelta(hours=24, minutes=15)


def test_a_calendar_that_was_not_looked_at_for_years_takes_no_time() -> None:
    trigger = trigger_of("0 * * * *", None, "UTC")

    found = passed(trigger, SUNDAY - timedelta(days=3000), SUNDAY)

    assert found == Passed(31 * 24, SUNDAY)
