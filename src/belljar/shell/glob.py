"""Pathname expansion: the files whose names match a pattern, sorted as in the C.UTF-8 locale."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFDIR, S_IFLNK
from belljar.abi.paths import fsencode, narrow
from belljar.abi.records import Dirent
from belljar.kernel.process import Process
from belljar.libc.pattern import Pattern, compile_pattern, is_pattern, unescape

_ALL: Final = "**"
_QUOTED_SLASH: Final = re.compile(r"((?<!\\)(?:\\\\)*)\\/")


class GlobOptions(Struct, frozen=True):
    """The shell options and variables that matter to globbing.

    `bytewise`: a character is a byte; `ignore`: the patterns of GLOBIGNORE.
    """

    dotglob: bool = False
    extglob: bool = False
    globstar: bool = False
    nocase: bool = False
    skip_dots: bool = True
    bytewise: bool = False
    ignore: tuple[str, ...] = ()


DEFAULT: Final = GlobOptions()


def glob(process: Process, pattern: str, options: GlobOptions = DEFAULT) -> list[str]:
    r"""The paths that match; none if nothing does. Quoted characters of the pattern are escaped as `\x`."""
    found = _Walk(process, options).run(pattern)
    if options.ignore:
        ignored = [_Ignored(text, options) for text in options.ignore if text]
        found = [path for path in found if not any(pattern.matches(path) for pattern in ignored)]
    return sort_paths(found)


def sort_paths(paths: Iterable[str]) -> list[str]:
    """Sort by bytes, which for UTF-8 is by code point."""
    found = list(paths)
    if all(map(str.isascii, found)):
        found.sort()
    else:
        found.sort(key=fsencode)
    return found


def split_ignored(text: str) -> tuple[str, ...]:
    """The patterns of GLOBIGNORE: at its colons, except those in brackets or extended forms."""
    parts: list[str] = []
    start = depth = pos = 0
    while pos < len(text):
        char = text[pos]
        if char == "\\":
            pos += 1
        elif char == "[":
            pos = max(pos, _bracket_end(text, pos))
        elif char == "(":
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        elif char == ":" and not depth:
            parts.append(text[start:pos])
            start = pos + 1
        pos += 1
    return (*parts, text[start:])


def _bracket_end(text: str, start: int) -> int:
    """The position where a bracket expression closes; -1 if it doesn't."""
    pos = start + 1
    while pos < len(text):
        if text.startswith("[:", pos):
            pos = text.find(":]", pos) + 1
            if pos <= 0:
                return -1
        elif text[pos] == "]" and pos > start + 1:
            return pos
        pos += 1
    return -1


def split_components(pattern: str, *, extglob: bool) -> list[str]:
    """The pattern at its unquoted slashes, except those inside an extended form."""
    if "(" not in pattern or not extglob:
        return pattern.split("/")
    parts: list[str] = []
    start = depth = pos = 0
    while pos < len(pattern):
        char = pattern[pos]
        if char == "\\":
            pos += 1
        elif char == "(" and (depth or (pos and pattern[pos - 1] in "?*+@!")):
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        elif char == "/" and not depth:
            parts.append(pattern[start:pos])
            start = pos + 1
        pos += 1
    if depth:
        return pattern.split("/")
    parts.append(pattern[start:])
    return parts


class _Ignored:
    """One pattern of GLOBIGNORE: matched component by component."""

    def __init__(self, text: str, options: GlobOptions) -> None:
        self.parts = [
            compile_pattern(part, extglob=options.extglob, nocase=options.nocase)
            for part in split_components(text, extglob=options.extglob)
        ]

    def matches(self, path: str) -> bool:
        names = path.split("/")
        return len(names) == len(self.parts) and all(p.matches(n) for p, n in zip(self.parts, names, strict=True))


class _Walk:
    def __init__(self, process: Process, options: GlobOptions) -> None:
        self.process = process
        self.options = options
        self.dotglob = options.dotglob

    def run(self, pattern: str) -> list[str]:
        options = self.options
        if "\\/" in pattern:
            pattern = _QUOTED_SLASH.sub(r"\1/", pattern)
        components = split_components(pattern, extglob=options.extglob)
        literal = 0
        while literal < len(components) and not is_pattern(components[literal], extglob=options.extglob):
            literal += 1
        if literal == len(components):
            path = unescape(pattern)
            return [path] if self._exists(path) else []
        base = "".join(unescape(part) + "/" for part in components[:literal])
        slash = components[-1] == ""
        rest = [part for part in components[literal:] if part]
        found = {base: None}
        for place, part in enumerate(rest):
            last = place == len(rest) - 1
            if part == _ALL and options.globstar:
                if place and rest[place - 1] == _ALL:
                    continue
                final = all(later == _ALL for later in rest[place:])
                found = self._everything(found, final=final, slash=slash, base=base if last else "")
            elif is_pattern(part, extglob=options.extglob):
                found = self._match(found, part, last=last, slash=slash)
            else:
                found = self._literal(found, unescape(part), last=last, slash=slash)
            self.process.budget.charge(1 + len(found))
        return list(found)

    def _literal(self, prefixes: Iterable[str], name: str, *, last: bool, slash: bool) -> dict[str, None]:
        if not last:
            return dict.fromkeys(f"{prefix}{name}/" for prefix in prefixes)
        end = "/" if slash else ""
        return dict.fromkeys(path for prefix in prefixes if self._exists(path := f"{prefix}{name}{end}"))

    def _match(self, prefixes: Iterable[str], part: str, *, last: bool, slash: bool) -> dict[str, None]:
        if self.options.bytewise:
            part = narrow(part)
        pattern = compile_pattern(part, extglob=self.options.extglob, nocase=self.options.nocase)
        found: dict[str, None] = {}
        size = 0
        for prefix in prefixes:
            entries = self._entries(prefix)
            if entries is None:
                continue
            names = self._select(pattern, entries, directories=not last or slash)
            if not last or slash:
                names = [f"{name}/" for name in names]
                if last:
                    names = [name for name in names if self._exists(prefix + name)]
            size += len(names) * (len(prefix) + 8)
            self.process.budget.charge_size(size)
            found.update(dict.fromkeys([prefix + name for name in names] if prefix else names))
        return found

    def _select(self, pattern: Pattern, entries: list[Dirent], *, directories: bool) -> list[str]:
        """The entries that match: a leading dot only if the pattern has it, or dotglob is set."""
        matches, named = pattern.matches, pattern.matches_name
        if self.options.bytewise:
            matches, named = lambda name: pattern.matches(narrow(name)), lambda name: pattern.matches_name(narrow(name))
        if directories:
            entries = [entry for entry in entries if entry.kind in (S_IFDIR, S_IFLNK)]
        if self.dotglob:
            names = [entry.name for entry in entries if matches(entry.name)]
        else:
            names = [
                entry.name for entry in entries if (matches(entry.name) if entry.name[0] != "." else named(entry.name))
            ]
        if not self.options.skip_dots and not self.options.ignore:
            names += [name for name in (".", "..") if named(name)]
        return names

    def _everything(self, prefixes: Iterable[str], *, final: bool, slash: bool, base: str) -> dict[str, None]:
        """`**`: all directories below (as the next component's prefixes), or all files too if it is the last."""
        found: dict[str, None] = {}
        budget = self.process.budget
        for start in prefixes:
            if not final:
                found[start] = None
            elif start and self._exists(start):
                # As bash: the starting directory itself, with its slash only if it was written out.
                found[start if start == base or slash else start[:-1]] = None
            pending = [start]
            while pending:
                prefix = pending.pop()
                for entry in self._entries(prefix) or ():
                    name = entry.name
                    if name[0] == "." and not self.dotglob:
                        continue
                    path = prefix + name
                    if entry.kind == S_IFDIR:
                        pending.append(path + "/")
                    if not final:
                        if entry.kind == S_IFDIR:
                            found[path + "/"] = None
                    elif not slash:
                        found[path] = None
                    elif entry.kind == S_IFDIR or (entry.kind == S_IFLNK and self._exists(path + "/")):
                        found[path + "/"] = None
                budget.charge_size(len(found) * 16)
        return found

    def _entries(self, prefix: str) -> list[Dirent] | None:
        """The entries of a directory; None if it can't be listed."""
        try:
            entries = list(self.process.fs.readdir(prefix or "."))
        except SysError:
            return None
        self.process.budget.charge(1 + len(entries) // 8)
        return entries

    def _exists(self, path: str) -> bool:
        self.process.budget.charge()
        if (stat := self.process.fs.try_stat(path, follow=path.endswith("/"))) is None:
            return False
        return stat.is_dir or not path.endswith("/")
