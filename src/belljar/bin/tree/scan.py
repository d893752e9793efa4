"""Reads the tree that is to be shown: which files, in which order, and what they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.abi.records import NANO, Stat
from belljar.bin._kit.versions import version_key
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Place
from belljar.libc.pattern import compile_pattern


@dataclass(frozen=True, slots=True)
class Selection:
    """Options that select and sort the entries."""

    all: bool
    directories: bool
    follow: bool
    one_file_system: bool
    level: int | None
    patterns: tuple[str, ...]
    ignored: tuple[str, ...]
    ignore_case: bool
    match_directories: bool
    prune: bool
    limit: int
    sort: str
    reverse: bool
    grouping: str | None
    usage: bool


@dataclass(slots=True)
class Branch:
    name: str
    path: str
    stat: Stat | None
    target: str | None = None
    """Target of a symlink."""
    referent: Stat | None = None
    children: list[Branch] = field(default_factory=list)
    opened: bool = False
    error: str = ""
    size: int = 0

    @property
    def counts_as_directory(self) -> bool:
        return (self.stat is not None and self.stat.is_dir) or (self.referent is not None and self.referent.is_dir)


class Scanner:
    def __init__(self, process: Process, selection: Selection) -> None:
        self._process = process
        self._fs = process.fs
        self._selection = selection
        nocase = selection.ignore_case
        self._wanted = [compile_pattern(p, extglob=False, nocase=nocase).matches for p in selection.patterns]
        self._ignored = [compile_pattern(p, extglob=False, nocase=nocase).matches for p in selection.ignored]

    def scan(self, path: str) -> Branch:
        if (stat := self._fs.try_stat(path)) is None:
            return Branch(path, path, None, error="error opening dir")
        root = Branch(path, path, stat, size=stat.size)
        if not stat.is_dir:
            root.error = "error opening dir"
            return root
        home = self._fs.cwd
        try:
            self._read(root, self._fs.resolve(path), 1, stat.dev, ())
        finally:
            self._fs.cwd = home
        return root

    def _read(
        self,
        branch: Branch,
        place: Place,
        depth: int,
        device: int,
        above: tuple[Place, ...],
        *,
        matched: bool = False,
    ) -> None:
        """The contents of a directory, all of them if its own name `matched`.

        While they are looked at, the process is in it.
        """
        selection, fs = self._selection, self._fs
        if selection.level is not None and depth > selection.level:
            return
        fs.cwd = place
        try:
            entries = fs.readdir(".")
        except SysError:
            branch.error = "error opening dir"
            return
        self._process.budget.charge(len(entries) + 1)
        branch.opened = True
        base = branch.path if branch.path.endswith("/") else branch.path + "/"
        shown = [self._look(entry.name, base + entry.name) for entry in entries if self._may_show(entry.name)]
        kept = [child for child in shown if matched or self._keeps(child)]
        if selection.limit and len(kept) > selection.limit:
            branch.error = f"{len(kept)} entries exceeds filelimit, not opening dir"
            return
        self._order(kept)
        for child in kept:
            inside = selection.match_directories and any(matches(child.name) for matches in self._wanted)
            self._descend(child, place, depth, device, (*above, place), matched=inside)
            branch.size += child.size
        if selection.prune:
            kept = [child for child in kept if child.children or not child.counts_as_directory]
        branch.children = kept

    def _may_show(self, name: str) -> bool:
        if not self._selection.all and name[0] == ".":
            return False
        return not any(matches(name) for matches in self._ignored)

    def _look(self, name: str, path: str) -> Branch:
        fs = self._fs
        if (stat := fs.try_stat(name, follow=False)) is None:
            return Branch(name, path, None)
        branch = Branch(name, path, stat, size=stat.size)
        if stat.is_symlink:
            branch.target = fs.readlink(name)
            branch.referent = fs.try_stat(name)
        return branch

    def _keeps(self, branch: Branch) -> bool:
        selection = self._selection
        directory = branch.stat is not None and branch.stat.is_dir
        if selection.directories and not branch.counts_as_directory:
            return False
        if self._wanted and not any(matches(branch.name) for matches in self._wanted):
            return directory or (selection.follow and branch.counts_as_directory)
        return True

    def _descend(
        self, branch: Branch, place: Place, depth: int, device: int, above: tuple[Place, ...], *, matched: bool
    ) -> None:
        if branch.stat is None:
            return
        link = branch.stat.is_symlink
        if not branch.stat.is_dir and not (link and self._selection.follow and branch.counts_as_directory):
            return
        if self._selection.one_file_system and branch.stat.dev != device:
            return
        self._fs.cwd = place
        try:
            inside = self._fs.resolve(branch.name)
        except SysError:
            branch.error = "error opening dir"
            return
        if link and (inside in above or any(inside.node is seen.node for seen in above)):
            branch.error = "recursive, not followed"
            return
        if link and self._is_below(inside, above[0]):
            branch.error = "recursive, not followed"
            return
        self._read(branch, inside, depth + 1, device, above, matched=matched)

    def _is_below(self, place: Place, top: Place) -> bool:
        """Whether a link leads into the tree that is being shown anyway."""
        node = place.node
        server = place.mount.server
        while True:
            if node is top.node:
                return True
            found = server.locate(node)
            if found is None:
                return False
            node = found[0]

    def _order(self, branches: list[Branch]) -> None:
        selection = self._selection
        if selection.sort != "none":
            branches.sort(key=_key(selection.sort), reverse=selection.reverse)
        if selection.grouping is not None:
            first = selection.grouping == "directories"
            branches.sort(key=lambda branch: branch.counts_as_directory is not first)


def _key(sort: str) -> Callable[[Branch], Any]:
    match sort:
        case "version":
            return lambda branch: version_key(fsencode(branch.name))
        case "size":
            return lambda branch: (-branch.stat.size if branch.stat else 0, branch.name)
        case "mtime":
            return lambda branch: (branch.stat.mtime // NANO if branch.stat else 0, branch.name)
        case "ctime":
            return lambda branch: (branch.stat.ctime // NANO if branch.stat else 0, branch.name)
    return lambda branch: branch.name
