"""The tests of find: each makes a function that judges a file from the arguments that follow its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from belljar import regex
from belljar.abi.errors import SysError
from belljar.abi.flags import (
    PERMISSIONS,
    R_OK,
    S_IFBLK,
    S_IFCHR,
    S_IFDIR,
    S_IFIFO,
    S_IFLNK,
    S_IFREG,
    S_IFSOCK,
    W_OK,
    X_OK,
)
from belljar.abi.paths import basename
from belljar.abi.records import NANO, Stat
from belljar.bin._kit import UsageError
from belljar.bin._kit.dates import BadDate, parse_date
from belljar.bin._kit.modes import parse_mode
from belljar.bin._kit.quoting import quote
from belljar.bin._tree import Visit
from belljar.bin.find.search import DAY, Matcher
from belljar.libc.pattern import compile_pattern

if TYPE_CHECKING:
    from belljar.bin.find.parse import Parser

_KINDS: Final = {
    "b": S_IFBLK,
    "c": S_IFCHR,
    "d": S_IFDIR,
    "p": S_IFIFO,
    "f": S_IFREG,
    "l": S_IFLNK,
    "s": S_IFSOCK,
}
_UNITS: Final = {"b": 512, "c": 1, "w": 2, "k": 1024, "M": 1 << 20, "G": 1 << 30}
_NUMBER: Final = re.compile(r"([-+]?)(\d+)")
_DECIMAL: Final = re.compile(r"([-+]?)(\d+(?:\.\d*)?|\.\d+)")
_MINUTE: Final = 60 * NANO


def _compares(sign: str, number: int) -> Callable[[int], bool]:
    if sign == "+":
        return lambda value: value > number
    if sign == "-":
        return lambda value: value < number
    return lambda value: value == number


def _number(parser: Parser, name: str) -> Callable[[int], bool]:
    text = parser.argument(name)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UsageError(f"invalid argument `{text}' to `{name}'")
    return _compares(match[1], int(match[2][:40]))


# Names.


def base_name(path: str) -> str:
    return basename(path)


def _by_name(name: str, *, nocase: bool = False) -> Callable[[Parser], Matcher]:
    def make(parser: Parser) -> Matcher:
        matches = compile_pattern(parser.argument(name), extglob=False, nocase=nocase).matches
        return lambda visit: matches(visit.name if visit.depth else base_name(visit.path))

    return make


def _by_path(name: str, *, nocase: bool = False) -> Callable[[Parser], Matcher]:
    def make(parser: Parser) -> Matcher:
        matches = compile_pattern(parser.argument(name), extglob=False, nocase=nocase).matches
        return lambda visit: matches(visit.path)

    return make


def _by_link(name: str, *, nocase: bool = False) -> Callable[[Parser], Matcher]:
    def make(parser: Parser) -> Matcher:
        matches = compile_pattern(parser.argument(name), extglob=False, nocase=nocase).matches

        def test(visit: Visit) -> bool:
            if not visit.stat.is_symlink:
                return False
            return matches(visit.place.mount.server.readlink(visit.place.node))

        return test

    return make


def _by_regex(name: str, *, nocase: bool = False) -> Callable[[Parser], Matcher]:
    def make(parser: Parser) -> Matcher:
        text = parser.argument(name)
        try:
            compiled = regex.compile_any([text], syntax=parser.search.regex_type, ignore_case=nocase, whole_line=True)
        except regex.RegexError as error:
            raise UsageError(f"failed to compile regular expression '{text}': {error}") from None
        charge = parser.search.process.budget.charge

        def test(visit: Visit) -> bool:
            charge(1 + len(visit.path) // 64)
            return compiled.test(visit.path)

        return test

    return make


# Kinds.


def _types(parser: Parser, name: str) -> frozenset[int]:
    text = parser.argument(name)
    if not text:
        raise UsageError(f"Arguments to {name} should contain at least one letter")
    wanted: set[int] = set()
    for index, part in enumerate(text.split(",")):
        if not part:
            raise UsageError(f"Last file type in list argument to {name} is missing, i.e., list is ending on: ','")
        if part[0] not in _KINDS and part != "D":
            raise UsageError(f"Unknown argument to {name}: {part[0]}")
        if len(part) > 1:
            del index
            raise UsageError(f"Must separate multiple arguments to {name} using: ','")
        wanted.add(_KINDS.get(part, 0))
    return frozenset(wanted)


def _type(parser: Parser) -> Matcher:
    wanted = _types(parser, "-type")
    return lambda visit: visit.stat.mode & 0o170000 in wanted


def _xtype(parser: Parser) -> Matcher:
    wanted = _types(parser, "-xtype")
    search = parser.search

    def test(visit: Visit) -> bool:
        if search.follow == "always":
            search.process.fs.cwd = visit.directory
            return search.process.fs.stat(visit.name, follow=False).kind in wanted
        if visit.stat.kind != S_IFLNK:
            return visit.stat.kind in wanted
        found = search.referent(visit)
        return (found.kind if found is not None else S_IFLNK) in wanted

    return test


def _empty(parser: Parser) -> Matcher:
    fs = parser.search.process.fs

    def test(visit: Visit) -> bool:
        if visit.stat.is_dir:
            fs.cwd = visit.directory
            try:
                return not fs.readdir(visit.name)
            except SysError as error:
                parser.search.fail(f"{quote(visit.path, parser.search.process.env)}: {error.reason}")
                return False
        return visit.stat.is_regular and visit.stat.size == 0

    return test


def _size(parser: Parser) -> Matcher:
    text = parser.argument("-size")
    match = re.fullmatch(r"([-+]?)(\d+)(.?)", text, re.DOTALL)
    if match is None or (match[3] and match[3] not in _UNITS):
        if not text:
            raise UsageError("invalid null argument to -size")
        raise UsageError(
            f"invalid -size type `{text[-1]}'" if not text[-1:].isdecimal() else f"Invalid argument `{text}' to -size"
        )
    unit = _UNITS[match[3] or "b"]
    compare = _compares(match[1], int(match[2][:40]))
    return lambda visit: compare(-(-visit.stat.size // unit))


# Permissions and owners.


def _perm(parser: Parser) -> Matcher:
    text = parser.argument("-perm")
    prefix = text[:1] if text[:1] in ("-", "/") else ""
    change = parse_mode(text[1:] if prefix else text)
    if change is None:
        raise UsageError(f"invalid mode {quote(text, parser.search.process.env)}")

    def bits(visit: Visit) -> tuple[int, int]:
        return visit.stat.mode & PERMISSIONS, change.apply(0, 0, directory=visit.stat.is_dir)

    if prefix == "-":
        return lambda visit: (pair := bits(visit))[0] & pair[1] == pair[1]
    if prefix == "/":
        return lambda visit: not (pair := bits(visit))[1] or bool(pair[0] & pair[1])
    return lambda visit: (pair := bits(visit))[0] == pair[1]


def _access(want: int) -> Callable[[Parser], Matcher]:
    def make(parser: Parser) -> Matcher:
        fs = parser.search.process.fs

        def test(visit: Visit) -> bool:
            fs.cwd = visit.directory
            try:
                fs.access(visit.name, want)
            except SysError:
                return False
            return True

        return test

    return make


def _user(parser: Parser) -> Matcher:
    text = parser.argument("-user")
    uid = parser.search.accounts.user(text)
    if uid is None:
        raise UsageError(f"{quote(text, parser.search.process.env)} is not the name of a known user")
    return lambda visit: visit.stat.uid == uid


def _group(parser: Parser) -> Matcher:
    text = parser.argument("-group")
    gid = parser.search.accounts.group(text)
    if gid is None:
        raise UsageError(f"{quote(text, parser.search.process.env)} is not the name of an existing group")
    return lambda visit: visit.stat.gid == gid


def _figure(name: str, pick: Callable[[Stat], int]) -> Callable[[Parser], Matcher]:
    def make(parser: Parser) -> Matcher:
        compare = _number(parser, name)
        return lambda visit: compare(pick(visit.stat))

    return make


def _nobody(parser: Parser) -> Matcher:
    accounts = parser.search.accounts
    return lambda visit: accounts.user_name(visit.stat.uid) is None


def _no_group(parser: Parser) -> Matcher:
    accounts = parser.search.accounts
    return lambda visit: accounts.group_name(visit.stat.gid) is None


def _same_file(parser: Parser) -> Matcher:
    other = parser.stat(parser.argument("-samefile"))
    return lambda visit: (visit.stat.dev, visit.stat.ino) == (other.dev, other.ino)


def _fs_type(parser: Parser) -> Matcher:
    wanted = parser.argument("-fstype")
    return lambda visit: visit.place.mount.server.statfs().kind == wanted


# Times.


def time_of(letter: str) -> Callable[[Stat], int]:
    return {
        "a": lambda stat: stat.atime,
        "c": lambda stat: stat.ctime,
        "m": lambda stat: stat.mtime,
        "B": lambda stat: stat.ctime,
    }[letter]


def _age(name: str, letter: str) -> Callable[[Parser], Matcher]:
    """-mtime and -mmin: how long ago, counted in days or minutes."""
    days = name.endswith("time")
    pick = time_of(letter)

    def make(parser: Parser) -> Matcher:
        text = parser.argument(name)
        match = _DECIMAL.fullmatch(text)
        if match is None:
            raise UsageError(f"invalid argument `{text}' to `{name}'")
        sign, unit = match[1], DAY if days else _MINUTE
        origin = parser.search.day_start if days else parser.search.now
        if days and sign == "-":
            origin += DAY - NANO
        mark = origin - int(min(float(match[2]), 1e30) * unit)
        if sign == "-":
            return lambda visit: pick(visit.stat) > mark
        if sign == "+":
            return lambda visit: pick(visit.stat) < mark
        return lambda visit: mark < pick(visit.stat) <= mark + unit

    return make


def _newer(name: str, letter: str) -> Callable[[Parser], Matcher]:
    pick = time_of(letter)

    def make(parser: Parser) -> Matcher:
        mark = parser.stat(parser.argument(name)).mtime
        return lambda visit: pick(visit.stat) > mark

    return make


def new_time_test(parser: Parser, name: str) -> Matcher:
    """-newerXY: time X of the file against time Y of another; Y is t for a time written out."""
    mine, other = name[6], name[7]
    if mine not in "aBcm" or other not in "aBcmt":
        raise UsageError(f"invalid predicate `{name}'")
    pick = time_of(mine)
    text = parser.argument(name)
    if other == "t":
        env = parser.search.process.env
        try:
            mark = parse_date(text, parser.search.process.kernel.now(), env)
        except BadDate:
            raise UsageError(f"I cannot figure out how to interpret {quote(text, env)} as a date or time") from None
    else:
        mark = time_of(other)(parser.stat(text))
    return lambda visit: pick(visit.stat) > mark


def _used(parser: Parser) -> Matcher:
    compare = _number(parser, "-used")
    return lambda visit: compare((visit.stat.atime - visit.stat.ctime) // DAY)


TESTS: Final[dict[str, Callable[[Parser], Matcher]]] = {
    "-amin": _age("-amin", "a"),
    "-anewer": _newer("-anewer", "a"),
    "-atime": _age("-atime", "a"),
    "-cmin": _age("-cmin", "c"),
    "-cnewer": _newer("-cnewer", "c"),
    "-ctime": _age("-ctime", "c"),
    "-empty": _empty,
    "-executable": _access(X_OK),
    "-false": lambda _parser: lambda _visit: False,
    "-fstype": _fs_type,
    "-gid": _figure("-gid", lambda stat: stat.gid),
    "-group": _group,
    "-ilname": _by_link("-ilname", nocase=True),
    "-iname": _by_name("-iname", nocase=True),
    "-inum": _figure("-inum", lambda stat: stat.ino),
    "-ipath": _by_path("-ipath", nocase=True),
    "-iregex": _by_regex("-iregex", nocase=True),
    "-iwholename": _by_path("-iwholename", nocase=True),
    "-links": _figure("-links", lambda stat: stat.nlink),
    "-lname": _by_link("-lname"),
    "-mmin": _age("-mmin", "m"),
    "-mtime": _age("-mtime", "m"),
    "-name": _by_name("-name"),
    "-newer": _newer("-newer", "m"),
    "-nogroup": _no_group,
    "-nouser": _nobody,
    "-path": _by_path("-path"),
    "-perm": _perm,
    "-readable": _access(R_OK),
    "-regex": _by_regex("-regex"),
    "-samefile": _same_file,
    "-size": _size,
    "-true": lambda _parser: lambda _visit: True,
    "-type": _type,
    "-uid": _figure("-uid", lambda stat: stat.uid),
    "-used": _used,
    "-user": _user,
    "-wholename": _by_path("-wholename"),
    "-writable": _access(W_OK),
    "-xtype": _xtype,
}
