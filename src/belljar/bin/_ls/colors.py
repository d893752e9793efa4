"""LS_COLORS: which escape sequence a file's name is shown in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from belljar.abi.flags import S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK, S_ISGID, S_ISUID, S_ISVTX
from belljar.abi.records import Stat
from belljar.libc.pattern import compile_pattern

_DEFAULTS: Final = {
    "lc": "\x1b[", "rc": "m", "ec": "", "rs": "0", "no": "", "fi": "", "di": "01;34", "ln": "01;36", "pi": "33",
    "so": "01;35", "bd": "01;33", "cd": "01;33", "mi": "", "or": "", "ex": "01;32", "do": "01;35", "su": "37;41",
    "sg": "30;43", "st": "37;44", "ow": "34;42", "tw": "30;42", "ca": "30;41", "mh": "", "cl": "\x1b[K",
}  # fmt: skip
_KINDS: Final = {S_IFIFO: "pi", S_IFSOCK: "so", S_IFBLK: "bd", S_IFCHR: "cd", S_IFLNK: "ln"}
_ESCAPE: Final = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)|\^(.)", re.DOTALL)
_LETTERS: Final = {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "_": " "}
_OFF: Final = ("", "0", "00")


COLOR_TERMS: Final = (
    "Eterm", "ansi", "*color*", "con[0-9]*x[0-9]*", "cons25", "console", "cygwin", "*direct*", "dtterm", "gnome",
    "hurd", "jfbterm", "konsole", "kterm", "linux", "linux-c", "mlterm", "putty", "rxvt*", "screen*", "st",
    "terminator", "tmux*", "vt100", "xterm*",
)  # fmt: skip
"""The kinds of terminal that are known to show colours."""


def is_color_terminal(env: Mapping[str, str]) -> bool:
    term = env.get("TERM", "none") or "none"
    return any(compile_pattern(pattern).matches(term) for pattern in COLOR_TERMS)


def wants_color(env: Mapping[str, str]) -> bool:
    """Whether colours make sense here: they were chosen, or the terminal is one that has them."""
    return bool(env.get("LS_COLORS") or env.get("COLORTERM")) or is_color_terminal(env)


class BadColors(ValueError):
    """LS_COLORS can't be read; the text is the unknown prefix, if it was that."""


class Colors:
    """The sequences for kinds of files and for ends of names."""

    def __init__(self, env: Mapping[str, str], *, builtin: bool = True) -> None:
        self.codes = dict(_DEFAULTS)
        if not builtin:
            self.codes.update(dict.fromkeys(_DEFAULTS.keys() - {"lc", "rc", "ec", "rs", "cl"}, ""))
        self._suffixes: dict[str, str] = {}
        self._lengths: tuple[int, ...] = ()
        text = env.get("LS_COLORS", "")
        if text:
            self._parse(text)

    def _parse(self, text: str) -> None:
        for item in text.split(":"):
            if not item:
                continue
            key, equals, code = item.partition("=")
            if not equals:
                raise BadColors
            if key.startswith("*"):
                self._suffixes[_unescape(key[1:]).lower()] = _unescape(code)
            elif key in self.codes:
                self.codes[key] = _unescape(code)
            else:
                raise BadColors(key)
        self._lengths = tuple(sorted({len(suffix) for suffix in self._suffixes}, reverse=True))

    @property
    def as_target(self) -> bool:
        """Whether symlinks look like what they lead to."""
        return self.codes["ln"] == "target"

    def looks_behind_links(self, *, long: bool) -> bool:
        """Whether what a symlink leads to changes any colour."""
        return self._on("or") or (self._on("ex") and self.as_target) or (long and self._on("mi"))

    def code(self, name: str, stat: Stat | None, kind: int, *, ok: bool = True) -> str | None:
        """Return the code between lc and rc before a name; None for none. `ok` is off for a dangling link."""
        key = self._key(stat, kind)
        if key == "ln" and not ok and (self.codes["or"] not in _OFF or self.as_target):
            key = "or"
        if key == "fi":
            suffix = self._suffix(name)
            if suffix is not None:
                return suffix
        code = self.codes[key]
        return None if code in _OFF or code == "target" else code

    def missing(self) -> str | None:
        code = self.codes["mi"]
        return None if code in _OFF else code

    def _key(self, stat: Stat | None, kind: int) -> str:
        mode = stat.mode if stat is not None else kind
        if kind == S_IFREG:
            return self._regular(stat, mode)
        if kind == S_IFDIR:
            sticky, open_to_all = mode & S_ISVTX, mode & 0o002
            if sticky and open_to_all and self._on("tw"):
                return "tw"
            if open_to_all and self._on("ow"):
                return "ow"
            return "st" if sticky and self._on("st") else "di"
        return _KINDS.get(kind, "or")

    def _regular(self, stat: Stat | None, mode: int) -> str:
        if mode & S_ISUID and self._on("su"):
            return "su"
        if mode & S_ISGID and self._on("sg"):
            return "sg"
        if mode & 0o111 and self._on("ex"):
            return "ex"
        if stat is not None and stat.nlink > 1 and self._on("mh"):
            return "mh"
        return "fi"

    def _on(self, key: str) -> bool:
        return self.codes[key] not in _OFF

    def _suffix(self, name: str) -> str | None:
        lower = name.lower()
        for length in self._lengths:
            if length <= len(lower):
                found = self._suffixes.get(lower[len(lower) - length :])
                if found is not None:
                    return found
        return None

    # Sequences.

    def start(self, code: str) -> str:
        return f"{self.codes['lc']}{code}{self.codes['rc']}"

    @property
    def stop(self) -> str:
        return self.codes["ec"] or self.start(self.codes["rs"])

    @property
    def clear_line(self) -> str:
        return self.codes["cl"]


def _unescape(text: str) -> str:
    if "\\" not in text and "^" not in text:
        return text
    return _ESCAPE.sub(_plain, text)


def _plain(match: re.Match[str]) -> str:
    body, control = match.groups()
    if control is not None:
        return "\x7f" if control == "?" else chr(ord(control) & 0x1F)
    if body[0] in "01234567":
        return chr(int(body, 8) & 0xFF)
    if body[0] == "x" and len(body) > 1:
        return chr(int(body[1:], 16))
    return _LETTERS.get(body, body)
