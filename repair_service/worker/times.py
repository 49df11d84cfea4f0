"""The times of a schedule: by the calendar (five fields, as in a crontab), or every so often."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from repair_service.errors import UsageError
from repair_service.worker.configuration import ScheduleConfiguration

DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""The days of the week by their numbers in a crontab, where Sunday is 0 and 7."""

FARTHEST_BACK = timedelta(days=31)
"""Times that passed longer ago are not counted: one by one, that would take a while."""

_DAY = re.compile(r"(?P<all>\*)?(?:(?P<first>[0-7])(?:-(?P<last>[0-7]))?)?(?:/(?P<step>[1-7]))?")


@dataclass(frozen=True, slots=True)
class Passed:
    """The times of a schedule that have passed.

    Attributes:
        count: How many.
        last: The last of them.
    """

    count: int
    last: datetime


def trigger_of(cron: str | None, every: float | None, timezone: str) -> BaseTrigger:
    """The trigger of a schedule.

    Args:
        cron: Five fields, as in a crontab; None where it runs every so often.
        every: Seconds between two runs; None where it runs by the calendar.
        timezone: The zone of the five fields.

    Raises:
        UsageError: They cannot be meant; the message is a clause that says why.
    """
    try:
        zone = ZoneInfo(timezone)
    except (OSError, ValueError, KeyError):
        raise UsageError(
            f"{timezone!r} is no time zone known here; write it like UTC or Europe/Berlin"
        ) from None
    if cron is None:
        if every is None or every < 1:
            raise UsageError("it runs every second at most; write it like 15m")
        return IntervalTrigger(seconds=every, timezone=UTC)
    fields = cron.split()
    if len(fields) != 5:
        raise UsageError(
            f"{cron!r} has {len(fields)} fields and needs five: minute, hour, day of the month, "
            "month and day of the week, like 0 3 * * *"
        )
    minute, hour, day, month, weekday = fields
    if day != "*" and weekday != "*":
        raise UsageError(
            f"{cron!r} names days of the month and of the week, which some take for both and "
            "others for either; give * for one of the two, or make two schedules"
        )
    try:
        return CronTrigger(
            minute=minute,
            hour=hour,
            day=day,
            month=month,
            day_of_week=_weekdays(weekday),
            timezone=zone,
        )
    except ValueError:
        raise UsageError(
            f"{cron!r} cannot be read as minute, hour, day of the month, month and day of the "
            "week; write it like 0 3 * * *"
        ) from None


def trigger_for(schedule: ScheduleConfiguration) -> BaseTrigger:
    """The trigger of a schedule that was checked when the settings were read."""
    return trigger_of(schedule.cron, schedule.every, schedule.timezone)


def next_time(trigger: BaseTrigger, behind: datetime) -> datetime | None:
    """The first time behind another one; None where there is none for ever."""
    found: datetime | None = trigger.get_next_fire_time(behind, behind)
    return None if found is None else found.astimezone(UTC)


def next_times(trigger: BaseTrigger, behind: datetime, count: int) -> list[datetime]:
    """The first so many times behind another one."""
    found: list[datetime] = []
    while len(found) < count and (following := next_time(trigger, behind)) is not None:
        found.append(following)
        behind = following
    return found


def passed(trigger: BaseTrigger, behind: datetime, now: datetime) -> Passed | None:
    """The times behind another one that have passed by now; None where there is none."""
    if isinstance(trigger, IntervalTrigger):
        count = (now - behind) // trigger.interval
        return Passed(count, behind + count * trigger.interval) if count > 0 else None
    count, last = 0, max(behind, now - FARTHEST_BACK)
    while (following := next_time(trigger, last)) is not None and following <= now:
        count, last = count + 1, following
    return Passed(count, last) if count else None


def _weekdays(field: str) -> str:
    """A crontab's days of the week by their names: APScheduler's own numbers begin on Monday.

    Raises:
        ValueError: The field cannot be read.
    """
    if field == "*":
        return field
    return ",".join(_days_of(part) for part in field.split(","))


def _days_of(part: str) -> str:
    read = _DAY.fullmatch(part)
    if read is None or not (read["all"] or read["first"]):
        return part  # names, which mean the same to both
    if read["all"]:
        first, last = 0, 6
    else:
        first = int(read["first"])
        last = int(read["last"] or (7 if read["step"] else first))
    days = range(first, last + 1, int(read["step"] or 1))
    if not days or (read["all"] and read["first"]):
        raise ValueError("no day")
    return ",".join(dict.fromkeys(DAYS[day] for day in days))
