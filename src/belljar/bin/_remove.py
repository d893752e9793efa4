"""Removing files and whole trees, as rm does; mv, rsync and find -delete share it.

A tree is walked by its directories themselves, not by their paths: however deep it is, and whatever is renamed
meanwhile, nothing outside of it is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EACCES, EISDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import W_OK
from belljar.abi.records import Dirent, Stat
from belljar.bin._kit.asking import ask
from belljar.bin._kit.kinds import kind_name
from belljar.bin._kit.quoting import quote_name
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Place


@dataclass(slots=True)
class _Level:
    """A directory being emptied."""

    above: Place
    """The directory that holds it, as seen by `name`."""
    name: str
    shown: str
    place: Place
    entries: Iterator[Dirent]
    keep: bool = False
    """Something in it stayed, so it stays too, and that was said already."""


class Remover:
    """Removes what it is given; says what it could not, and remembers that in `failed`."""

    def __init__(
        self,
        process: Process,
        *,
        recursive: bool = False,
        empty_directories: bool = False,
        force: bool = False,
        interactive: bool = False,
        verbose: bool = False,
        one_file_system: bool = False,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self._process = process
        self._fs = process.fs
        self._recursive = recursive
        self._empty_directories = empty_directories
        self._force = force
        self._interactive = interactive
        self._verbose = verbose
        self._one_file_system = one_file_system
        self._report = report
        self._asks_protected = not force and not interactive and process.isatty(0)
        self.failed = False

    def remove(self, path: str) -> None:
        home = self._fs.cwd
        try:
            self._remove(home, path)
        finally:
            self._fs.cwd = home

    def _remove(self, home: Place, path: str) -> None:
        fs, charge = self._fs, self._process.budget.charge
        level = self._visit(home, path, path)
        if level is None:
            return
        device = level.place.mount
        stack = [level]
        while stack:
            level = stack[-1]
            entry = next(level.entries, None)
            if entry is None:
                stack.pop()
                kept = level.keep or not self._leave(level)
                if kept and stack:
                    stack[-1].keep = True
                continue
            charge()
            shown = f"{level.shown}{entry.name}" if level.shown.endswith("/") else f"{level.shown}/{entry.name}"
            fs.cwd = level.place
            if entry.is_dir:
                child = self._visit(level.place, entry.name, shown)
                if child is None:
                    level.keep = True
                elif self._one_file_system and child.place.mount is not device:
                    self._warn(f"skipping {quote_name(shown)}, since it's on a different device")
                    level.keep = True
                else:
                    stack.append(child)
            elif not self._file(entry.name, shown):
                level.keep = True

    def _visit(self, above: Place, name: str, shown: str) -> _Level | None:
        """Remove a file, or begin with a directory. None if nothing is left to do."""
        fs = self._fs
        try:
            place = fs.resolve(name, follow=False)
        except SysError as error:
            self._missing(shown, error)
            return None
        if not place.node.is_dir:
            self._file(name, shown)
            return None
        if not self._recursive:
            if not self._empty_directories:
                self._fail(shown, SysError(EISDIR))
                return None
            return _Level(above, name, shown, place, iter(()))
        try:
            entries = fs.readdir(name)
        except SysError as error:
            if error.errno != EACCES or not self._try_empty(name):
                self._fail(shown, error)
            return None
        if entries and not self._agreed("descend into", shown, place.mount.server.stat(place.node)):
            return None
        return _Level(above, name, shown, place, iter(entries))

    def _try_empty(self, name: str) -> bool:
        """A directory that can't be read may still be empty, and then can go."""
        try:
            self._fs.rmdir(name)
        except SysError:
            return False
        return True

    def _leave(self, level: _Level) -> bool:
        stat = level.place.mount.server.stat(level.place.node)
        if not self._agreed("remove", level.shown, stat):
            return False
        self._fs.cwd = level.above
        try:
            self._fs.rmdir(level.name)
        except SysError as error:
            self._fail(level.shown, error)
            return False
        self._done("removed directory", level.shown)
        return True

    def _file(self, name: str, shown: str) -> bool:
        try:
            if (self._interactive or self._asks_protected) and not self._agreed(
                "remove", shown, self._fs.stat(name, follow=False)
            ):
                return False
            self._fs.unlink(name)
        except SysError as error:
            return self._missing(shown, error)
        self._done("removed", shown)
        return True

    def _agreed(self, action: str, shown: str, stat: Stat) -> bool:
        """Whether the user lets it go; asked only if that was wanted, or if the file is not writable."""
        if not self._interactive and not self._asks_protected:
            return True
        protected = not stat.is_symlink and not self._writable(stat)
        if not self._interactive and not protected:
            return True
        if action == "descend into" and protected:
            what = "descend into write-protected directory"
        else:
            what = f"{action} {'write-protected ' if protected else ''}{kind_name(stat)}"
        return ask(self._process, f"{what} {quote_name(shown)}")

    def _writable(self, stat: Stat) -> bool:
        who = self._fs.credentials
        mode = stat.mode
        if who.uid == 0:
            return True
        if stat.uid == who.uid:
            mode >>= 6
        elif who.in_group(stat.gid):
            mode >>= 3
        return bool(mode & W_OK)

    def _missing(self, shown: str, error: SysError) -> bool:
        if self._force and error.name in ("ENOENT", "ENOTDIR"):
            return True
        self._fail(shown, error)
        return False

    def _fail(self, shown: str, error: SysError) -> None:
        self._warn(f"cannot remove {quote_name(shown)}: {error.reason}")

    def _warn(self, message: str) -> None:
        self.failed = True
        self._process.warn(message)

    def _done(self, what: str, shown: str) -> None:
        if self._verbose:
            self._process.print(f"{what} {quote_name(shown)}")
        if self._report is not None:
            self._report(shown)


def is_dot(path: str) -> bool:
    """Whether the last component is . or .., which nobody may remove."""
    return path.rstrip("/").rpartition("/")[2] in (".", "..")
