"""Walking a tree of files for chmod, chown, du, find and their like, as fts(3) does.

Directories are entered by themselves, not by their paths, so depth is no limit, and nobody can lead the walk astray
by renaming what it stands on. While a file is visited the process is in the directory that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import ELOOP
from belljar.abi.errors import SysError
from belljar.abi.records import Dirent, Stat
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Place

Follow = Literal["never", "operands", "always"]
Problem = Literal["stat", "read", "loop"]


@dataclass(slots=True)
class Visit:
    """One file on the way. `name` finds it from the directory that the process is in; `path` is what to show."""

    path: str
    name: str
    place: Place
    stat: Stat
    depth: int
    directory: Place
    """Its directory; of an operand, where the walk began."""
    after: bool = False
    """A directory on the way back, its contents done or left alone."""
    dangling: bool = False
    """A symlink that should be followed and leads nowhere."""
    prune: bool = False
    """Set by the visitor: do not go in."""


@dataclass(slots=True)
class _Level:
    visit: Visit
    directory: Place
    """Its parent directory."""
    entries: Iterator[Dirent]


class Walk:
    """The files at and below some operands, each directory before its contents and, marked `after`, behind them."""

    def __init__(
        self,
        process: Process,
        report: Callable[[Problem, str, SysError], None],
        *,
        follow: Follow = "never",
        max_depth: int | None = None,
        one_file_system: bool = False,
        sort: bool = False,
    ) -> None:
        self._process = process
        self._fs = process.fs
        self._report = report
        self._follow = follow
        self._max_depth = max_depth
        self._one_file_system = one_file_system
        self._sort = sort

    def walk(self, operand: str) -> Iterator[Visit]:
        """The process's own directory is put back when the walk ends."""
        home = self._fs.cwd
        try:
            yield from self._walk(home, operand)
        finally:
            self._fs.cwd = home

    def _walk(self, home: Place, operand: str) -> Iterator[Visit]:
        fs, charge = self._fs, self._process.budget.charge
        first = self._find(operand, operand, 0, home)
        if first is None:
            return
        yield first
        device = first.stat.dev
        stack: list[_Level] = []
        if first.stat.is_dir and not self._enter(first, home, stack, device):
            first.after = True
            yield first
        while stack:
            level = stack[-1]
            entry = next(level.entries, None)
            if entry is None:
                stack.pop()
                fs.cwd = level.directory
                level.visit.after = True
                yield level.visit
                continue
            charge()
            fs.cwd = level.visit.place
            above = level.visit.path
            path = f"{above}{entry.name}" if above.endswith("/") else f"{above}/{entry.name}"
            visit = self._find(entry.name, path, level.visit.depth + 1, level.visit.place)
            if visit is None:
                continue
            yield visit
            if visit.stat.is_dir and not self._enter(visit, level.visit.place, stack, device):
                visit.after = True
                yield visit

    def _find(self, name: str, path: str, depth: int, directory: Place) -> Visit | None:
        fs = self._fs
        follow = self._follow == "always" or (self._follow == "operands" and depth == 0)
        dangling = False
        try:
            try:
                place = fs.resolve(name, follow=follow)
            except SysError as error:
                if not follow or error.name not in ("ENOENT", "ENOTDIR", "ELOOP", "EACCES"):
                    raise
                place = fs.resolve(name, follow=False)
                dangling = True
            stat = place.mount.server.stat(place.node)
        except SysError as error:
            self._report("stat", path, error)
            return None
        return Visit(path, name, place, stat, depth, directory, dangling=dangling)

    def _enter(self, visit: Visit, directory: Place, stack: list[_Level], device: int) -> bool:
        """Put a directory on the stack, if it is one to go into."""
        if visit.prune or (self._max_depth is not None and visit.depth >= self._max_depth):
            return False
        if self._one_file_system and visit.stat.dev != device:
            return False
        if self._follow != "never" and any(level.visit.place.node is visit.place.node for level in stack):
            self._report("loop", visit.path, SysError(ELOOP))
            return False
        fs = self._fs
        fs.cwd = directory
        entries: Sequence[Dirent] = ()
        try:
            entries = fs.readdir(visit.name)
        except SysError as error:
            self._report("read", visit.path, error)
        if self._sort:
            entries = sorted(entries, key=lambda entry: entry.name)
        stack.append(_Level(visit, directory, iter(entries)))
        return True
