"""The owner's direct operations on a sandbox's files: each a function of plain data.

They run with all rights inside the sandbox; what they create belongs to the agent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.abi.errno import EEXIST, EISDIR, ENOENT, ENOTDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_NONBLOCK, O_RDONLY, O_TRUNC, O_WRONLY
from belljar.abi.paths import dirname, fsdecode, fsencode, join
from belljar.abi.records import Stat
from belljar.abi.wire import LIST_PAGE, Plain
from belljar.kernel.fs.overlay_changes import OverlayChanges
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.view import View

Operation = Callable[..., Plain]


class FileCalls:
    """The operations by name; `table` is what a server looks a call's name up in."""

    def __init__(self, view: View, cwd: str) -> None:
        self._view = view
        self._cwd = cwd
        self.table: Final[dict[str, Operation]] = {
            "read": self.read,
            "write": self.write,
            "list": self.list,
            "stat": self.stat,
            "mkdir": self.mkdir,
            "symlink": self.symlink,
            "readlink": self.readlink,
            "remove": self.remove,
            "rename": self.rename,
            "chmod": self.chmod,
            "differences": self.differences,
            "read_lower": self.read_lower,
            "lower_place": self.lower_place,
        }

    def _path(self, raw: bytes) -> str:
        return join(self._cwd, fsdecode(raw))

    def read(self, path: bytes, offset: int, size: int) -> Plain:
        """Read at most `size` bytes at `offset`; return them, and whether that was the end."""
        file = self._open(self._path(path), O_RDONLY | O_NONBLOCK)  # nobody waits for the writer of a FIFO
        try:
            if file.place.node.is_dir:
                raise SysError(EISDIR, self._path(path))
            data = file.pread(size, offset) if file.handle.seekable else file.read(size)
            return [data, len(data) < size]
        finally:
            file.release()

    def write(self, path: bytes, data: bytes, mode: int | None, append: bool, parents: bool) -> Plain:
        name = self._path(path)
        if parents:
            self._make_parents(name)
        file = self._open(name, O_WRONLY | O_CREAT | (O_APPEND if append else O_TRUNC), 0o666 if mode is None else mode)
        try:
            while data:
                data = data[file.write(data) :]
            if mode is not None:
                self._view.set_mode(file.place, mode, name)
        finally:
            file.release()
        return None

    def _open(self, path: str, flags: int, mode: int = 0o666) -> OpenFile:
        return self._view.open(path, flags, mode).retain()

    def _make_parents(self, path: str) -> None:
        parent = dirname(path)
        try:
            if not self._view.stat(parent).is_dir:
                raise SysError(ENOTDIR, parent)
        except SysError as error:
            if error.errno != ENOENT:
                raise
            self._make_parents(parent)
            self._view.mkdir(parent)

    def list(self, path: bytes, after: bytes = b"") -> Plain:
        """A page of a directory: the first entries, by name, of those that follow a name."""
        name, last = self._path(path), fsdecode(after)
        entries = []
        for entry in sorted(entry for entry in self._view.readdir(name) if entry.name > last)[:LIST_PAGE]:
            if (stat := self._view.try_stat(join(name, entry.name), follow=False)) is None:
                continue  # gone since it was listed
            entries.append([fsencode(entry.name), *_fields(stat)])
        return entries

    def stat(self, path: bytes, follow: bool) -> Plain:
        return _fields(self._view.stat(self._path(path), follow=follow))

    def mkdir(self, path: bytes, parents: bool) -> Plain:
        name = self._path(path)
        if parents:
            self._make_parents(name)
        try:
            self._view.mkdir(name)
        except SysError as error:
            if not (parents and error.errno == EEXIST and self._view.stat(name).is_dir):
                raise
        return None

    def symlink(self, target: bytes, path: bytes) -> Plain:
        self._make_parents(self._path(path))
        self._view.symlink(fsdecode(target), self._path(path))
        return None

    def readlink(self, path: bytes) -> Plain:
        return fsencode(self._view.readlink(self._path(path)))

    def remove(self, path: bytes, recursive: bool) -> Plain:
        self._remove(self._path(path), recursive)
        return None

    def _remove(self, path: str, recursive: bool) -> None:
        if not self._view.stat(path, follow=False).is_dir:
            self._view.unlink(path)
            return
        if recursive:
            # Depth first with a list, not recursion: a guest may have made ten thousand levels.
            directories, todo = [], [path]
            while todo:
                directory = todo.pop()
                directories.append(directory)
                for entry in self._view.readdir(directory):
                    child = join(directory, entry.name)
                    if entry.is_dir:
                        todo.append(child)
                    else:
                        self._view.unlink(child)
            for directory in reversed(directories[1:]):
                self._view.rmdir(directory)
        self._view.rmdir(path)

    def rename(self, old: bytes, new: bytes) -> Plain:
        self._view.rename(self._path(old), self._path(new))
        return None

    def chmod(self, path: bytes, mode: int) -> Plain:
        self._view.chmod(self._path(path), mode)
        return None

    def _overlay(self, path: bytes) -> OverlayChanges:
        place = self._view.resolve(self._path(path))
        return OverlayChanges(place.mount.server, place.node)

    def differences(self, path: bytes, after: bytes) -> Plain:
        """A page of the files that differ from an overlay's lower tree."""
        return self._overlay(path).page(after, LIST_PAGE)

    def lower_place(self, path: bytes) -> Plain:
        """The owner's export below an overlay, -1 if there is none, and the names that lead to a directory in it."""
        number, names = self._overlay(path).lower_place()
        return [-1 if number is None else number, [fsencode(name) for name in names]]

    def read_lower(self, path: bytes, name: bytes, offset: int, size: int) -> Plain:
        """As `read`, of a file of an overlay's lower tree."""
        return list(self._overlay(path).read_lower(fsdecode(name), offset, size))


def _fields(stat: Stat) -> list[Plain]:
    return [stat.mode, stat.size, stat.mtime, stat.uid, stat.gid, stat.nlink, stat.ino]
