"""The format of -printf, compiled once to a function of the file."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from belljar.abi.errors import SysError
from belljar.abi.flags import PERMISSIONS
from belljar.abi.paths import basename, fsdecode
from belljar.abi.records import NANO
from belljar.bin._kit import UsageError
from belljar.bin._kit.clock import format_time
from belljar.bin._kit.modes import kind_letter, render_mode
from belljar.bin._tree import Visit
from belljar.bin.find.search import Search
from belljar.bin.find.tests import time_of

_PIECE: Final = re.compile(
    r"\\([0-7]{1,3}|.|\Z)|%([-+ #0]*)(\d*)(?:\.(\d*))?([ABCT].?|.|\Z)|[^\\%]+",
    re.DOTALL,
)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
_LETTERS: Final = "abcCdDfFgGhHiklmMnpPsStuUyYZ"

Value = Callable[[Visit], str | int]


def compile_format(search: Search, template: str) -> Callable[[Visit], str]:
    parts: list[str | Callable[[Visit], str]] = []
    for match in _PIECE.finditer(template):
        escape, flags, width, precision, letter = match.groups()
        if escape is not None:
            if escape == "c":
                break
            parts.append(_escape(search, escape))
        elif letter is None:
            parts.append(match[0])
        else:
            parts.append(_directive(search, match[0], flags, width, precision, letter))
    joined = "".join
    return lambda visit: joined([part if isinstance(part, str) else part(visit) for part in parts])


def _escape(search: Search, body: str) -> str:
    if not body:
        search.process.warn("warning: escape `\\' followed by nothing at all")
        return "\\"
    if body[0] in "01234567":
        return fsdecode(bytes([int(body, 8) & 0xFF]))
    if body in _ESCAPES:
        return _ESCAPES[body]
    search.process.warn(f"warning: unrecognized escape `\\{body}'")
    return "\\" + body


def _directive(
    search: Search, whole: str, flags: str, width: str, precision: str | None, letter: str
) -> str | Callable[[Visit], str]:
    if letter == "%":
        return "%"
    if not letter:
        raise UsageError("error: % at end of format string")
    if letter[0] in "ABCT" and len(letter) == 2:
        value: Value = _time(search, letter)
    elif letter in _LETTERS and letter not in "ABCT":
        value = _value(search, letter)
    else:
        search.process.warn(f"warning: unrecognized format directive `%{letter[0]}'")
        return whole
    size, digits = int((width or "0")[:18]), None if precision is None else int((precision or "0")[:18])
    search.process.budget.charge_size(size + (digits or 0))
    if not flags and not size and digits is None:
        return lambda visit: str(value(visit))
    return lambda visit: _pad(value(visit), flags, size, digits)


def _pad(value: str | int, flags: str, size: int, digits: int | None) -> str:
    if isinstance(value, int):
        text = str(value).zfill(digits or 0)
        text = "+" + text if "+" in flags and value >= 0 else text
        if "0" in flags and "-" not in flags and digits is None:
            return text.zfill(size)
    else:
        text = value if digits is None else value[:digits]
    return text.ljust(size) if "-" in flags else text.rjust(size)


def _value(search: Search, letter: str) -> Value:
    accounts = search.accounts
    values: dict[str, Value] = {
        "a": lambda v: full_time(search, v.stat.atime),
        "b": lambda v: str(v.stat.blocks),
        "c": lambda v: full_time(search, v.stat.ctime),
        "d": lambda v: v.depth,
        "D": lambda v: str(v.stat.dev),
        "f": lambda v: v.name if v.depth else basename(v.path.rstrip("/") or v.path),
        "F": lambda v: v.place.mount.server.statfs().kind,
        "g": lambda v: accounts.group_name(v.stat.gid) or str(v.stat.gid),
        "G": lambda v: str(v.stat.gid),
        "h": lambda v: _above(v.path),
        "H": lambda _v: search.start,
        "i": lambda v: str(v.stat.ino),
        "k": lambda v: str(-(-v.stat.blocks // 2)),
        "l": lambda v: v.place.mount.server.readlink(v.place.node) if v.stat.is_symlink else "",
        "m": lambda v: f"{v.stat.mode & PERMISSIONS:o}",
        "M": lambda v: render_mode(v.stat.mode),
        "n": lambda v: str(v.stat.nlink),
        "p": lambda v: v.path,
        "P": lambda v: v.path[len(search.start) :].lstrip("/") if v.depth else "",
        "s": lambda v: str(v.stat.size),
        "S": lambda v: f"{v.stat.blocks * 512 / v.stat.size:g}" if v.stat.size else "1",
        "t": lambda v: full_time(search, v.stat.mtime),
        "u": lambda v: accounts.user_name(v.stat.uid) or str(v.stat.uid),
        "U": lambda v: str(v.stat.uid),
        "y": lambda v: _letter(v.stat.mode),
        "Y": lambda v: _target_letter(search, v),
        "Z": lambda _v: "",
    }
    return values[letter]


def _above(path: str) -> str:
    """Everything before the last slash."""
    head, slash, _ = path.rpartition("/")
    return head if slash else "."


def _letter(mode: int) -> str:
    letter = kind_letter(mode)
    return "f" if letter == "-" else letter


def _target_letter(search: Search, visit: Visit) -> str:
    if not visit.stat.is_symlink:
        return _letter(visit.stat.mode)
    search.process.fs.cwd = visit.directory
    try:
        return _letter(search.process.fs.stat(visit.name).mode)
    except SysError as error:
        return {"ENOENT": "N", "ENOTDIR": "N", "ELOOP": "L"}.get(error.name, "?")


def full_time(search: Search, ns: int) -> str:
    """As ctime(3), with the fraction."""
    return format_time("%a %b %e %H:%M:%S.%N0 %Y", ns, search.zone)


def _time(search: Search, letters: str) -> Value:
    pick = time_of({"A": "a", "B": "B", "C": "c", "T": "m"}[letters[0]])
    template = _TIME_TEMPLATES.get(letters[1], "%" + letters[1])
    if letters[1] == "@":
        return lambda v: f"{pick(v.stat) // NANO}.{pick(v.stat) % NANO:09d}0"
    return lambda v: format_time(template, pick(v.stat), search.zone)


_TIME_TEMPLATES: Final = {
    "+": "%Y-%m-%d+%H:%M:%S.%N0",
    "S": "%S.%N0",
    "T": "%H:%M:%S.%N0",
    "X": "%H:%M:%S.%N0",
    "r": "%I:%M:%S.%N0 %p",
}
