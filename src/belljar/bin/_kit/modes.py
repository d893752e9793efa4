"""File modes in words: `drwxr-xr-x`, and the changes that `u+x,go=r` or `0644` ask for."""

from __future__ import annotations

import re
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.abi.flags import (
    PERMISSIONS,
    S_IFBLK,
    S_IFCHR,
    S_IFDIR,
    S_IFIFO,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
    S_IFSOCK,
    S_ISGID,
    S_ISUID,
    S_ISVTX,
)

_LETTERS: Final = {
    S_IFREG: "-", S_IFDIR: "d", S_IFLNK: "l", S_IFIFO: "p", S_IFSOCK: "s", S_IFCHR: "c", S_IFBLK: "b",
}  # fmt: skip
_WHO: Final = {"u": 0o4700, "g": 0o2070, "o": 0o1007, "a": 0o7777}
_CLAUSE: Final = re.compile(r"([ugoa]*)((?:[-+=](?:[0-7]+|[ugo]|[rwxXst]*))+)")
_ACTION: Final = re.compile(r"([-+=])([0-7]+|[ugo]|[rwxXst]*)")


def kind_letter(mode: int) -> str:
    return _LETTERS.get(mode & S_IFMT, "?")


def render_mode(mode: int) -> str:
    """As `ls -l` shows it."""
    text = kind_letter(mode)
    for shift, special, letter in ((6, S_ISUID, "s"), (3, S_ISGID, "s"), (0, S_ISVTX, "t")):
        bits = mode >> shift
        execute = "x" if bits & 1 else "-"
        if mode & special:
            execute = letter if bits & 1 else letter.upper()
        text += ("r" if bits & 4 else "-") + ("w" if bits & 2 else "-") + execute
    return text


@dataclass(frozen=True, slots=True)
class _Action:
    who: int
    """The bits it may touch; 0 if nobody was named: all, less the umask."""
    operator: str
    permissions: str


@dataclass(frozen=True, slots=True)
class ModeChange:
    """A change of mode, absolute or symbolic."""

    absolute: int | None
    exact: bool
    """Whether an absolute mode has so many digits that it clears set-id bits of directories."""
    actions: tuple[_Action, ...]

    def apply(self, mode: int, umask: int, *, directory: bool) -> int:
        """The new permission bits of a file whose mode is `mode`."""
        bits = mode & PERMISSIONS
        if self.absolute is not None:
            keep = bits & (S_ISUID | S_ISGID) if directory and not self.exact else 0
            return self.absolute | keep
        for action in self.actions:
            bits = _act(action, bits, umask, directory)
        return bits


def parse_mode(text: str) -> ModeChange | None:
    """None if it is no mode."""
    if text and all(char in "01234567" for char in text):
        value = int(text, 8)
        return ModeChange(value, len(text) > 4, ()) if value <= PERMISSIONS else None
    actions: list[_Action] = []
    for clause in text.split(","):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            return None
        who = 0
        for letter in match[1]:
            who |= _WHO[letter]
        for operator, permissions in _ACTION.findall(match[2]):
            if permissions[:1].isdecimal() and (match[1] or int(permissions, 8) > PERMISSIONS):
                return None
            actions.append(_Action(who, operator, permissions))
    return ModeChange(None, False, tuple(actions))


def _act(action: _Action, bits: int, umask: int, directory: bool) -> int:
    octal = action.permissions[:1].isdecimal()
    affected = PERMISSIONS if octal else action.who
    value = int(action.permissions, 8) if octal else _wanted(action.permissions, bits, directory)
    # A directory keeps its set-id bits unless they are named.
    mentioned = PERMISSIONS if octal else value & affected if affected else value
    omitted = (S_ISUID | S_ISGID) & ~mentioned if directory else 0
    value &= (affected or ~umask) & ~omitted
    if action.operator == "+":
        return bits | value
    if action.operator == "-":
        return bits & ~value
    return bits & ((~affected if affected else 0) | omitted) | value


def _wanted(permissions: str, bits: int, directory: bool) -> int:
    if permissions in ("u", "g", "o"):
        copied = bits >> {"u": 6, "g": 3, "o": 0}[permissions] & 7
        return copied * 0o111
    value = 0
    for letter in permissions:
        match letter:
            case "r":
                value |= 0o444
            case "w":
                value |= 0o222
            case "x":
                value |= 0o111
            case "X":
                value |= 0o111 if directory or bits & 0o111 else 0
            case "s":
                value |= S_ISUID | S_ISGID
            case "t":
                value |= S_ISVTX
    return value
