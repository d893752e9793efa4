"""Broken-down times (struct tm) of any year, and the Gregorian calendar under them."""

from __future__ import annotations

from datetime import date
from typing import Final

from msgspec import Struct

DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAY: Final = 86_400
EARLIEST: Final = -67_768_040_609_740_800
LATEST: Final = 67_768_036_191_676_799
"""Seconds since the epoch between which a year fits the `int tm_year` of C."""
_CYCLE: Final = 146_097
"""Days in 400 years, after which the calendar repeats."""
_EPOCH: Final = date(1970, 1, 1).toordinal()


class Moment(Struct, frozen=True):
    """Broken-down local time (struct tm)."""

    year: int
    month: int
    """1 for January."""
    day: int
    hour: int
    minute: int
    second: int
    weekday: int
    """0 for Sunday."""
    yearday: int
    """1 for the first of January."""
    seconds: int = 0
    """Since the epoch."""
    offset: int = 0
    """Seconds east of UTC."""
    zone: str = "UTC"


def moment_at(seconds: int, offset: int = 0, zone: str = "UTC") -> Moment:
    """The time on a clock that is `offset` seconds ahead of UTC."""
    days, rest = divmod(seconds + offset, DAY)
    cycles, within = divmod(days, _CYCLE)
    day = date.fromordinal(_EPOCH + within)
    minutes, second = divmod(rest, 60)
    return Moment(
        day.year + 400 * cycles,
        day.month,
        day.day,
        minutes // 60,
        minutes % 60,
        second,
        (days + 4) % 7,
        day.toordinal() - date(day.year, 1, 1).toordinal() + 1,
        seconds,
        offset,
        zone,
    )


def days_since_epoch(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01; months and days out of range are carried over."""
    year, month = year + (month - 1) // 12, (month - 1) % 12
    cycles, within = divmod(year - 2000, 400)
    return date(2000 + within, month + 1, 1).toordinal() - _EPOCH + cycles * _CYCLE + day - 1


def month_days(year: int, month: int) -> int:
    return days_since_epoch(year, month + 1, 1) - days_since_epoch(year, month, 1)


def iso_week(moment: Moment) -> tuple[int, int]:
    """The ISO 8601 year and week."""
    cycles, within = divmod(moment.year - 2000, 400)
    found = date(2000 + within, moment.month, max(1, moment.day)).isocalendar()
    return found.year + 400 * cycles, found.week
