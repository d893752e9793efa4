"""cal - display a calendar

Usage: cal [-1|-3|-y] [-m] [-j] [[[DAY] MONTH] YEAR]
"""

import calendar
from datetime import date
from itertools import zip_longest

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin._kit.clock import zone_of
from belljar.kernel.process import Process
from belljar.libc.calendar import MONTHS
from belljar.libc.zones import localtime

REFORM = (1752, 9)


@dataclass(frozen=True, slots=True)
class Options:
    one: bool = flag("-1", "--one", "show only a single month")
    three: bool = flag("-3", "--three", "show three months spanning the date")
    year: bool = flag("-y", "--year", "show the whole year")
    monday: bool = flag("-m", "--monday", "Monday as first day of week")
    sunday: bool = flag("-s", "--sunday", "Sunday as first day of week")
    no_highlight: bool = flag("-h", "turn off highlighting of today")
    julian: bool = flag("-j", "--julian", "use day-of-year for all calendars")


@utility("cal", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    today = localtime(process.kernel.now() // 10**9, zone_of(process.env))
    numbers = [_number(text) for text in operands]
    whole_year = options.year or len(numbers) == 1
    year = numbers[-1] if numbers else today.year
    month = numbers[-2] if len(numbers) > 1 else today.month
    if not 1 <= month <= 12:
        raise UsageError("illegal month value: use 1-12", hint=False)
    if not 1 <= year <= 9999:
        raise UsageError("illegal year value: use positive integer", hint=False)
    if whole_year:
        width = 27 if options.julian else 20
        process.print(f"{year:^{3 * width + 4}}".rstrip())
        process.print("")
        for row in range(1, 13, 3):
            _print_side_by_side(process, [_month(options, year, m, named=False) for m in range(row, row + 3)])
        return 0
    if options.three:
        months = [divmod(year * 12 + month - 1 + shift, 12) for shift in (-1, 0, 1)]
        _print_side_by_side(process, [_month(options, y, m + 1, named=True) for y, m in months])
        return 0
    for line in _month(options, year, month, named=True):
        process.print(line.rstrip() if line.strip() else "")
    return 0


def _number(text: str) -> int:
    if text.isdecimal():
        return int(text[:18])
    found = [n for n, name in enumerate(MONTHS, 1) if name.lower().startswith(text.lower()) and len(text) >= 3]
    if not found:
        raise UsageError(f"illegal month value: {text}", hint=False)
    return found[0]


def _month(options: Options, year: int, month: int, *, named: bool) -> list[str]:
    size = 3 if options.julian else 2
    width = 7 * (size + 1) - 1
    first = 0 if options.monday else 6
    title = f"{MONTHS[month - 1]} {year}" if named else MONTHS[month - 1]
    days = [calendar.day_abbr[(first + n) % 7][:2].rjust(size) for n in range(7)]
    lines = [f"{title:^{width}}", " ".join(days)]
    start = date(year, 1, 1)
    for week in _weeks(first, year, month):
        shown = ((date(year, month, d) - start).days + 1 if options.julian and d else d for d in week)
        lines.append(" ".join(str(d).rjust(size) if d else " " * size for d in shown))
    return lines + [" " * width] * (8 - len(lines))


def _weeks(first: int, year: int, month: int) -> list[list[int]]:
    """The days of a month in rows of seven; until September 1752, which lost eleven days, by the Julian calendar."""
    if (year, month) > REFORM:
        return calendar.Calendar(first).monthdayscalendar(year, month)
    shift = (14 - month) // 12
    years, months = year + 4800 - shift, month + 12 * shift - 3
    weekday = (1 + (153 * months + 2) // 5 + 365 * years + years // 4 - 32083) % 7
    length = 29 if month == 2 and year % 4 == 0 else calendar.monthrange(1999, month)[1]
    days = [day for day in range(1, length + 1) if (year, month) != REFORM or not 2 < day < 14]
    cells = [0] * ((weekday - first) % 7) + days
    cells += [0] * (-len(cells) % 7)
    return [cells[place : place + 7] for place in range(0, len(cells), 7)]


def _print_side_by_side(process: Process, months: list[list[str]]) -> None:
    for parts in zip_longest(*months, fillvalue=""):
        process.print("  ".join(parts).rstrip())
