"""Filters of fd besides the name: type, size, age, owner, extension."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from belljar.abi.flags import S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK
from belljar.abi.records import NANO, Stat
from belljar.bin._kit import UsageError
from belljar.bin._kit.dates import BadDate, parse_date
from belljar.bin._kit.users import Accounts
from belljar.kernel.process import Process

if TYPE_CHECKING:
    from belljar.bin.fd import Options

Filter = Callable[[str, Stat], bool]

_TYPES: Final = {
    "f": "file", "file": "file", "d": "directory", "directory": "directory", "l": "symlink", "symlink": "symlink",
    "x": "executable", "executable": "executable", "e": "empty", "empty": "empty", "s": "socket", "socket": "socket",
    "p": "pipe", "pipe": "pipe",
}  # fmt: skip
_KINDS: Final = {"file": S_IFREG, "directory": S_IFDIR, "symlink": S_IFLNK, "socket": S_IFSOCK, "pipe": S_IFIFO}
_SIZE: Final = re.compile(r"([-+]?)(\d+)(b|[kmgt]i?b?)", re.IGNORECASE)
_DURATION: Final = re.compile(r"(\d+)\s*([a-z]+)")
_UNITS: Final = {
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "mins": 60, "minute": 60,
    "minutes": 60, "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400,
    "w": 604800, "week": 604800, "weeks": 604800, "month": 2630016, "months": 2630016, "y": 31557600,
    "year": 31557600, "years": 31557600,
}  # fmt: skip


def parse_filters(process: Process, options: Options) -> list[Filter]:
    """`empty` is left to the walk, which can look into directories."""
    found: list[Filter] = []
    if options.types:
        found.append(_types(options.types))
    if options.extensions:
        ends = tuple("." + extension.lower().lstrip(".") for extension in options.extensions)
        found.append(lambda name, _stat: name.lower().endswith(ends))
    found += [_size(text) for text in options.sizes]
    now = process.kernel.now()
    if options.within is not None:
        after = _moment(process, options.within, now)
        found.append(lambda _name, stat: stat.mtime >= after)
    if options.before is not None:
        before = _moment(process, options.before, now)
        found.append(lambda _name, stat: stat.mtime < before)
    if options.owner is not None:
        found.append(_owner(process, options.owner))
    return found


def wants_empty(options: Options) -> bool:
    return any(_TYPES.get(text) == "empty" for text in options.types)


def _types(texts: tuple[str, ...]) -> Filter:
    names: set[str] = set()
    for text in texts:
        if text not in _TYPES:
            known = "file, directory, symlink, executable, empty, socket, pipe"
            raise UsageError(f"'{text}' isn't a valid value for '--type <filetype>'\n  [possible values: {known}]")
        names.add(_TYPES[text])
    names.discard("empty")
    if not names:
        return lambda _name, stat: stat.is_dir or stat.is_regular
    kinds = frozenset(_KINDS[name] for name in names if name in _KINDS)
    executable = "executable" in names

    def test(_name: str, stat: Stat) -> bool:
        return stat.kind in kinds or (executable and stat.is_regular and bool(stat.mode & 0o111))

    return test


def _size(text: str) -> Filter:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is not a valid size constraint. See 'fd --help'.", hint=False)
    suffix = match[3].lower()
    power = "bkmgt".index(suffix[0])
    limit = int(match[2]) * (1024 if "i" in suffix else 1000) ** power
    match match[1]:
        case "+":
            return lambda _name, stat: stat.is_regular and stat.size >= limit
        case "-":
            return lambda _name, stat: stat.is_regular and stat.size <= limit
        case _:
            return lambda _name, stat: stat.is_regular and stat.size == limit


def _moment(process: Process, text: str, now: int) -> int:
    """A time given as an age (`2weeks`, `1h`) or as a date."""
    parts = _DURATION.findall(text)
    if parts and _DURATION.sub("", text).strip() == "" and all(unit in _UNITS for _, unit in parts):
        return now - sum(int(number) * _UNITS[unit] for number, unit in parts) * NANO
    try:
        return parse_date(text, now, process.env)
    except BadDate:
        message = f"'{text}' is not a valid date or duration. See 'fd --help'."
        raise UsageError(message, hint=False) from None


def _owner(process: Process, text: str) -> Filter:
    accounts = Accounts(process)
    user, _, group = text.partition(":")
    uid = _account(user, accounts.user)
    gid = _account(group, accounts.group)

    def test(_name: str, stat: Stat) -> bool:
        return uid(stat.uid) and gid(stat.gid)

    return test


def _account(text: str, find: Callable[[str], int | None]) -> Callable[[int], bool]:
    if not text:
        return lambda _number: True
    negated = text.startswith("!")
    name = text.removeprefix("!")
    number = find(name)
    if number is None:
        raise UsageError(f"'{name}' is not a recognized user or group name", hint=False)
    return lambda value: (value != number) if negated else (value == number)
