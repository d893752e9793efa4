"""Dates: jq's arrays for broken-down times, and its functions over them."""

from math import floor, isnan

from belljar.bin.jq.errors import JqError
from belljar.bin.jq.numbers import from_float, to_float
from belljar.bin.jq.values import Value, is_number
from belljar.libc import strftime as libc
from belljar.libc.calendar import LATEST, Moment, moment_at
from belljar.libc.strptime import strptime as read_time
from belljar.libc.zones import localtime as local_moment
from belljar.libc.zones import mktime as seconds_at
from belljar.libc.zones import parse_zone, wall_seconds


def to_array(moment: Moment, fraction: float = 0.0) -> list[Value]:
    """[year, month from 0, day, hours, minutes, seconds, weekday, day of the year from 0]"""
    second = from_float(moment.second + fraction)
    day = (moment.year, moment.month - 1, moment.day)
    return [*day, moment.hour, moment.minute, second, moment.weekday, moment.yearday - 1]


def split_seconds(value: Value, function: str) -> tuple[int, float]:
    if not is_number(value):
        raise JqError(f"{function} requires numeric inputs")
    number = to_float(value)
    if isnan(number) or abs(number) > LATEST:
        raise JqError("error converting number of seconds since epoch to datetime")
    # As C does: the seconds are cut towards zero, the fraction is what is left above the floor.
    return int(number), number - floor(number)


def gmtime(value: Value) -> list[Value]:
    whole, fraction = split_seconds(value, "gmtime()")
    return to_array(moment_at(whole), fraction)


def localtime(value: Value, zone: str) -> list[Value]:
    whole, fraction = split_seconds(value, "localtime()")
    return to_array(local_moment(whole, parse_zone(zone)), fraction)


def array_seconds(value: Value, complaint: str) -> int:
    """The seconds since the epoch of a jq time array in UTC: fields out of range are carried over."""
    if value.__class__ is not list:
        raise JqError(complaint)
    fields = []
    for part in value[:8]:
        if not is_number(part) or isnan(to_float(part)):
            raise JqError(complaint)
        fields.append(int(min(max(to_float(part), -(2.0**31)), 2.0**31 - 1)))
    fields += [0] * (6 - len(fields))
    if len(value) < 3:
        fields[2] = 0
    year, month, day, hour, minute, second = fields[:6]
    return wall_seconds(year, month + 1, day, hour, minute, second)


def mktime(value: Value) -> Value:
    if value.__class__ is not list:
        raise JqError("mktime requires array of 6 numbers" if is_number(value) else "mktime requires array inputs")
    return from_float(float(array_seconds(value, "mktime requires parsed datetime inputs")))


def format_time(value: Value, form: Value, function: str, zone: str) -> str:
    """`strftime` and `strflocaltime`."""
    complaint = f"{function}/1 requires parsed datetime inputs"
    place = parse_zone(zone)
    if is_number(value):
        seconds, _ = split_seconds(value, complaint.removesuffix(" requires parsed datetime inputs"))
    elif value.__class__ is list:
        seconds = seconds_at(array_seconds(value, complaint), place)
    else:
        raise JqError(complaint)
    if form.__class__ is not str:
        raise JqError(f"{function}/1 requires a string format")
    return libc.strftime(form, local_moment(seconds, place))


def strptime(text: Value, form: Value) -> list[Value]:
    if text.__class__ is not str or form.__class__ is not str:
        raise JqError("strptime/1 requires string inputs and arguments")
    found = read_time(text, form)
    if found is None or (found[1] and not found[1][0].isspace()):
        raise JqError(f'date "{text}" does not match format "{form}"')
    moment, rest = found
    return [*to_array(moment), rest] if rest else to_array(moment)
