"""Zones of the tz database against Python's own reading of the same files, and POSIX rules."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from zoneinfo import ZoneInfo

import pytest

from belljar.libc.calendar import EARLIEST, LATEST, days_since_epoch, iso_week, moment_at, month_days
from belljar.libc.tzdata_host import pack, zone_files
from belljar.libc.zones import localtime, mktime, parse_zone, wall_seconds


def pythons_zone(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)


@pytest.mark.parametrize("continent", sorted({name.partition("/")[0] for name in zone_files()}))
def test_each_zone_is_pythons(continent: str) -> None:
    times = random.Random(continent)
    for name in zone_files():
        if name.partition("/")[0] != continent:
            continue
        ours, theirs = parse_zone(name), pythons_zone(name)
        near = [time + shift for time in ours.times[-40:] for shift in (-1, 0)]
        for seconds in [*near, *(times.randrange(-5_000_000_000, 20_000_000_000) for _ in range(40))]:
            there = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
            there = there.astimezone(theirs)
            found = ours.at(seconds)
            wanted = there.utcoffset()
            assert wanted is not None
            assert (found.seconds, found.name) == (wanted.total_seconds(), there.tzname()), (name, seconds)


def test_a_rule_of_daylight_saving_time() -> None:
    zone = parse_zone("EST5EDT,M3.2.0,M11.1.0")
    assert [zone.at(time).name for time in (1710053999, 1710054000, 1730613599, 1730613600)] == [
        "EST",
        "EDT",
        "EDT",
        "EST",
    ]
    south = parse_zone("AEST-10AEDT,M10.1.0,M4.1.0/3")
    assert south.at(wall_seconds(2024, 1, 1, 0, 0, 0)).daylight
    assert not south.at(wall_seconds(2024, 7, 1, 0, 0, 0)).daylight


@pytest.mark.parametrize(
    ("rule", "begins"), [("J60", (3, 1)), ("59", (2, 29)), ("J59", (2, 28)), ("M2.5.4", (2, 29)), ("60/-24", (2, 29))]
)
def test_rules_by_day_of_the_year(rule: str, begins: tuple[int, int]) -> None:
    """In a leap year Jn leaves the 29th of February out, n counts it from 0."""
    zone = parse_zone(f"AAA0BBB,{rule.partition('/')[0]}/{rule.partition('/')[2] or 0},J365")
    midnight = wall_seconds(2024, *begins, 0, 0, 0)
    assert [zone.at(midnight - 1).daylight, zone.at(midnight).daylight] == [False, True]


@pytest.mark.parametrize("name", ["America/New_York", "Europe/Paris", "Australia/Lord_Howe", "Asia/Tokyo", "AAA0BBB"])
def test_mktime_is_the_way_back(name: str) -> None:
    zone = parse_zone(name)
    times = random.Random(name)
    for _ in range(500):
        seconds = times.randrange(-4_000_000_000, 8_000_000_000)
        moment = localtime(seconds, zone)
        wall = wall_seconds(moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)
        found = mktime(wall, zone)
        assert found + zone.at(found).seconds == wall
        assert mktime(wall, zone, zone.at(seconds).daylight) == seconds


def test_the_calendar_is_pythons_and_goes_on() -> None:
    days = random.Random(7)
    for _ in range(2000):
        when = datetime(1, 1, 1, tzinfo=UTC) + timedelta(seconds=days.randrange(315_537_897_599))
        found = moment_at(round((when - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()))
        fields = (found.year, found.month, found.day, found.hour, found.minute, found.second)
        assert fields == (when.year, when.month, when.day, when.hour, when.minute, when.second)
        assert (found.weekday, found.yearday) == (when.isoweekday() % 7, when.timetuple().tm_yday)
        assert iso_week(found) == when.isocalendar()[:2]
        shifted = moment_at(found.seconds + 146_097 * 86_400 * 1_000_000)
        assert (shifted.year - 400_000_000, shifted.weekday, shifted.yearday) == (
            found.year,
            found.weekday,
            found.yearday,
        )
    assert (moment_at(EARLIEST).year, moment_at(LATEST).year) == (-2147481748, 2147485547)
    assert days_since_epoch(2024, 14, 0) == days_since_epoch(2025, 1, 31)
    assert [month_days(year, 2) for year in (1900, 2000, 2023, 2024, 100_000)] == [28, 29, 28, 29, 29]


def test_packed_zones_are_the_files() -> None:
    assert pack().count(b"TZif") >= 2 * len(zone_files()) > 1000
