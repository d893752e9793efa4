"""Time zones: TZ values as POSIX defines them and names of the tz database, with the history of each zone."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from struct import unpack_from
from typing import Final, NamedTuple

from msgspec import Struct

from belljar.libc.calendar import DAY, Moment, days_since_epoch, moment_at
from belljar.libc.tzdata_host import zone_files

_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
_OFFSET = r"[+-]?\d{1,2}(?::\d{1,2}){0,2}"
_TIME = r"[+-]?\d{1,3}(?::\d{1,2}){0,2}"
_RULE = rf"(?:M\d{{1,2}}\.\d\.\d|J?\d{{1,3}})(?:/{_TIME})?"
_POSIX = re.compile(rf"({_NAME})(?:({_OFFSET})(?:({_NAME})({_OFFSET})?(?:,({_RULE})(?:,({_RULE}))?)?)?)?")
_SEARCH_STEP: Final = 7 * DAY
_SEARCH_STEPS: Final = 450
"""Range in which mktime looks for a time of the asked kind: about eight years to either side, as glibc does."""


class Offset(NamedTuple):
    """The UTC offset at some time: seconds east of UTC, whether that is daylight saving time, and its name."""

    seconds: int
    daylight: bool
    name: str


class Change(NamedTuple):
    """The yearly time of a change, on the clock before it."""

    month: int
    """0: `day` counts from the first of January."""
    week: int
    day: int
    """A weekday if there is a month; else a day of the year from 0."""
    skips_leap_day: bool
    seconds: int

    def wall(self, year: int) -> int:
        """Seconds since the epoch, as if the clock before the change were UTC."""
        if not self.month:
            day = days_since_epoch(year, 1, 1) + self.day
            if self.skips_leap_day and self.day >= 59:
                day += days_since_epoch(year, 3, 1) - days_since_epoch(year, 2, 1) - 28
        else:
            first = days_since_epoch(year, self.month, 1)
            day = first + (self.day - (first + 4)) % 7 + 7 * (self.week - 1)
            if day >= days_since_epoch(year, self.month + 1, 1):
                day -= 7
        return day * DAY + self.seconds


class Rule(NamedTuple):
    """Daylight saving time of every year."""

    standard: Offset
    daylight: Offset
    begin: Change
    end: Change

    def at(self, seconds: int) -> Offset:
        year = moment_at(seconds + self.standard.seconds).year
        begin = self.begin.wall(year) - self.standard.seconds
        end = self.end.wall(year) - self.daylight.seconds
        inside = begin <= seconds < end if begin < end else not end <= seconds < begin
        return self.daylight if inside else self.standard


class Zone(Struct, frozen=True):
    """The offsets of a zone: a first one, those that follow at given times, and a rule for all time after these."""

    first: Offset
    times: tuple[int, ...] = ()
    offsets: tuple[Offset, ...] = ()
    rule: Rule | None = None

    def at(self, seconds: int) -> Offset:
        if self.rule is not None and (not self.times or seconds >= self.times[-1]):
            return self.rule.at(seconds)
        place = bisect_right(self.times, seconds)
        return self.offsets[place - 1] if place else self.first


def fixed_zone(offset: int, name: str = "") -> Zone:
    """A zone that is always so many seconds east of UTC."""
    return Zone(Offset(offset, False, name))


UTC: Final = fixed_zone(0, "UTC")


@lru_cache(maxsize=64)
def parse_zone(text: str) -> Zone:
    """Read a TZ value: a zone's name or a POSIX rule. Else it is UTC under the name it begins with, as in glibc."""
    text = text.removeprefix(":").removeprefix("/usr/share/zoneinfo/").removeprefix("posix/")
    data = zone_files().get(text)
    if data is not None:
        return _read_tzif(data)
    match = _POSIX.match(text)
    if match is None:
        return UTC if not text else fixed_zone(0)
    return _posix_zone(match)


def _posix_zone(match: re.Match[str]) -> Zone:
    name, offset, daylight_name, daylight_offset, begin, end = match.groups()
    standard = Offset(-_duration(offset or "0"), False, name.strip("<>"))
    if not daylight_name:
        return Zone(standard)
    shifted = -_duration(daylight_offset) if daylight_offset else standard.seconds + 3600
    daylight = Offset(shifted, True, daylight_name.strip("<>"))
    return Zone(
        standard, rule=Rule(standard, daylight, _parse_change(begin or "M3.2.0"), _parse_change(end or "M11.1.0"))
    )


def _duration(text: str) -> int:
    parts = [int(part) for part in text.lstrip("+-").split(":")] + [0, 0]
    seconds = parts[0] * 3600 + min(parts[1], 59) * 60 + min(parts[2], 59)
    return -seconds if text.startswith("-") else seconds


def _parse_change(text: str) -> Change:
    day, _, time = text.partition("/")
    seconds = _duration(time or "2")
    if day.startswith("M"):
        month, week, weekday = map(int, day[1:].split("."))
        return Change(min(max(month, 1), 12), min(max(week, 1), 5), weekday % 7, False, seconds)
    if day.startswith("J"):
        return Change(0, 0, min(max(int(day[1:]), 1), 365) - 1, True, seconds)
    return Change(0, 0, min(int(day), 365), False, seconds)


def _read_tzif(data: bytes) -> Zone:
    """Read a zone's file (RFC 9636): its block of 64-bit times, and the rule in its last line."""
    header = ">4sc15x6l"
    sizes = unpack_from(header, data)[2:]
    isut, isstd, leaps, times, types, names = sizes
    start = 44 + times * 5 + types * 6 + names + leaps * 8 + isstd + isut
    isut, isstd, leaps, times, types, names = unpack_from(header, data, start)[2:]
    start += 44
    changes = unpack_from(f">{times}q", data, start)
    start += 8 * times
    kinds = data[start : start + times]
    start += times
    table = start + 6 * types
    offsets = []
    for place in range(start, table, 6):
        seconds, daylight, name = unpack_from(">l?B", data, place)
        text = data[table + name : data.index(b"\0", table + name)]
        offsets.append(Offset(seconds, daylight, text.decode("ascii")))
    footer = data[table + names + leaps * 12 + isstd + isut :].strip(b"\n").decode("ascii")
    match = _POSIX.fullmatch(footer)
    tail = None if match is None else _posix_zone(match)
    if tail is not None and tail.rule is None and not times:
        return tail
    return Zone(offsets[0], changes, tuple(offsets[kind] for kind in kinds), None if tail is None else tail.rule)


def localtime(seconds: int, zone: Zone) -> Moment:
    """Local time of a zone at a time since the epoch."""
    offset = zone.at(seconds)
    return moment_at(seconds, offset.seconds, offset.name)


def wall_seconds(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    """Seconds since the epoch of a time in UTC; fields out of range are carried over."""
    return days_since_epoch(year, month, day) * DAY + hour * 3600 + minute * 60 + second


def mktime(wall: int, zone: Zone, daylight: bool | None = None) -> int:
    """The time at which a zone's clocks show `wall` (see wall_seconds), in daylight saving time or not if that is said.

    As glibc does it: which of two times is meant depends on where the search begins, at the same time in UTC. If clocks
    are put forward past `wall`, it is counted from before that.
    """
    found = wall - zone.at(wall).seconds
    found = wall - zone.at(found).seconds
    offset = zone.at(found)
    if found + offset.seconds != wall:
        offset = zone.at(wall - DAY)
        found = wall - offset.seconds
    if daylight is None or offset.daylight == daylight:
        return found
    for step in range(_SEARCH_STEPS):
        for near in (wall - step * _SEARCH_STEP, wall + step * _SEARCH_STEP):
            if (other := zone.at(near)).daylight == daylight:
                return wall - other.seconds
    return found - 3600 if daylight else found + 3600
