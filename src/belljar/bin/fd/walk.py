"""fd's walk: below a directory in order of name, past what ignore files exclude."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.abi.records import Stat
from belljar.bin._kit import UsageError
from belljar.bin.fd.filters import Filter, wants_empty
from belljar.bin.rg.ignore import Rules
from belljar.kernel.process import Process

if TYPE_CHECKING:
    from belljar.bin.fd import Options

_FILES = (".gitignore", ".ignore", ".fdignore")
Scope = tuple[tuple[str, Rules], ...]
"""The rules that hold in a directory, each with the absolute path it is relative to, nearest first."""


@dataclass(frozen=True, slots=True)
class Found:
    path: str
    is_dir: bool


@dataclass(frozen=True, slots=True)
class _Level:
    """A directory to look through."""

    path: str
    shown: str
    absolute: str
    scope: Scope
    depth: int
    in_repository: bool
    above: frozenset[tuple[int, int]]
    """The directories it was reached through, where symlinks are followed."""


class Finder:
    def __init__(
        self, process: Process, options: Options, filters: list[Filter], matches: Callable[[str], bool]
    ) -> None:
        self._process = process
        self._fs = process.fs
        self._options = options
        self._filters = filters
        self._matches = matches
        self._hidden = options.hidden or options.unrestricted
        self._ignores = not (options.no_ignore or options.unrestricted)
        self._empty = wants_empty(options)
        self._excluded = Rules([*options.exclude])
        exact = _number(options.exact_depth)
        self._most = exact if exact is not None else _number(options.max_depth)
        self._least = exact if exact is not None else _number(options.min_depth) or 0
        self.status = 0

    def find(self, root: str, shown: str) -> Iterator[Found]:
        absolute = self._process.absolute(root)
        device = self._fs.stat(root).dev
        absolute = absolute.rstrip("/")
        in_repository = self._ignores and self._in_repository(absolute)
        scope = self._above(absolute, in_repository) if self._ignores else ()
        base = shown if not shown or shown.endswith("/") else shown + "/"
        stack = [self._directory(_Level(root, base, absolute, scope, 1, in_repository, frozenset()), device)]
        # A stack of walks, not walks within walks: what is found deep down must not be handed up level by level.
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
            elif isinstance(found, Found):
                yield found
            else:
                stack.append(self._directory(found, device))

    # Ignore files.

    def _above(self, absolute: str, in_repository: bool) -> Scope:
        scope: Scope = ()
        parts = absolute.strip("/").split("/")
        for count in range(len(parts)):
            directory = "/" + "/".join(parts[:count])
            scope = self._enter(directory.rstrip("/"), scope, in_repository)
        return scope

    def _enter(self, directory: str, scope: Scope, in_repository: bool) -> Scope:
        for name in _FILES:
            if name == ".gitignore" and (self._options.no_ignore_vcs or not in_repository):
                continue
            if (data := self._process.try_read(f"{directory}/{name}")) is not None:
                scope = ((directory, Rules(fsdecode(data).split("\n"))), *scope)
        return scope

    def _in_repository(self, directory: str) -> bool:
        """Git's own ignore files count only inside a repository."""
        while True:
            if not self._fs.exists(f"{directory}/.git"):
                if not directory:
                    return False
                directory = directory.rpartition("/")[0]
                continue
            return True

    def _ignored(self, scope: Scope, absolute: str, directory: bool) -> bool:
        for base, rules in scope:
            verdict = rules.decide(absolute[len(base) + 1 :], directory=directory)
            if verdict is not None:
                return verdict
        return False

    # Files.

    def _directory(self, level: _Level, device: int) -> Iterator[Found | _Level]:
        """Yield a directory's entries, and the directories to descend into."""
        path, shown = level.path, level.shown
        if self._most is not None and level.depth > self._most:
            return
        try:
            here = self._fs.stat(path)
            entries = sorted(self._fs.readdir(path), key=lambda entry: entry.name)
        except SysError as error:
            self._report(path, error)
            return
        identity = (here.dev, here.ino)
        if identity in level.above or (self._options.one_file_system and here.dev != device):
            return
        self._process.budget.charge(len(entries) + 1)
        scope, in_repository = level.scope, level.in_repository
        if self._ignores:
            in_repository = in_repository or any(entry.name == ".git" for entry in entries)
            if any(entry.name in _FILES for entry in entries):
                scope = self._enter(level.absolute, scope, in_repository)
        above = level.above | {identity} if self._options.follow else level.above
        for entry in entries:
            name = entry.name
            if name[0] == "." and not self._hidden:
                continue
            full = f"{level.absolute}/{name}"
            inner = f"{path.rstrip('/') or ''}/{name}"
            try:
                stat = self._look(inner)
            except SysError as error:
                self._report(inner, error)
                continue
            if self._excluded.decide(shown + name, directory=stat.is_dir) or self._ignored(scope, full, stat.is_dir):
                continue
            accepted = self._accepts(name, full, inner, stat, level.depth)
            if accepted:
                yield Found(shown + name, stat.is_dir)
            if stat.is_dir and not (accepted and self._options.prune):
                yield _Level(inner, f"{shown}{name}/", full, scope, level.depth + 1, in_repository, above)

    def _look(self, path: str) -> Stat:
        if self._options.follow:
            try:
                return self._fs.stat(path)
            except SysError:
                return self._fs.stat(path, follow=False)
        return self._fs.stat(path, follow=False)

    def _accepts(self, name: str, full: str, path: str, stat: Stat, depth: int) -> bool:
        if depth < self._least or not self._matches(full if self._options.full_path else name):
            return False
        if self._filters and not all(test(name, stat) for test in self._filters):
            return False
        return not self._empty or self._is_empty(path, stat)

    def _is_empty(self, path: str, stat: Stat) -> bool:
        if not stat.is_dir:
            return stat.is_regular and stat.size == 0
        try:
            return not self._fs.readdir(path)
        except SysError:
            return False

    def _report(self, path: str, error: SysError) -> None:
        if self._options.show_errors:
            self._process.error(f"[fd error]: {path}: {error.reason} (os error {error.errno})\n")
        self.status = 1


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"invalid value '{text}' for a depth: invalid digit found in string", hint=False)
    return int(text[:18])
