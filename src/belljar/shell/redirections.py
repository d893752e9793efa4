"""Redirections at run time: changing the process's descriptors and restoring them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.errno import EBADF, EEXIST
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY
from belljar.kernel.process import Process
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.view import View
from belljar.shell.control import ShellError
from belljar.shell.network import PREFIXES, DialError, dial

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

FLAGS = {
    "<": O_RDONLY,
    ">": O_WRONLY | O_CREAT | O_TRUNC,
    ">|": O_WRONLY | O_CREAT | O_TRUNC,
    ">>": O_WRONLY | O_CREAT | O_APPEND,
    "<>": O_RDWR | O_CREAT,
    "&>": O_WRONLY | O_CREAT | O_TRUNC,
    "&>>": O_WRONLY | O_CREAT | O_APPEND,
}
LOWEST_NAMED = 10


class RedirectError(ShellError):
    """A redirection that failed: the command isn't run."""


class Saved:
    """Descriptors as they were, for as long as a command runs with others."""

    __slots__ = ("files", "shell")

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.files: list[tuple[int, OpenFile | None, bool]] = []

    def save(self, fd: int) -> None:
        fds = self.shell.process.fds
        old = fds.get(fd)
        if old is not None:
            old.retain()
        self.files.append((fd, old, fd in fds.cloexec))

    def restore(self) -> None:
        fds = self.shell.process.fds
        for fd, old, cloexec in reversed(self.files):
            if old is not None:
                fds.put(fd, old, cloexec=cloexec)
                old.release()
            elif fd in fds:
                fds.close(fd)
        self.files.clear()

    def keep(self) -> None:
        """Keep the redirections (`exec > file`)."""
        for _, old, _ in self.files:
            if old is not None:
                old.release()
        self.files.clear()


def open_target(process: Process, name: str, op: str, *, noclobber: bool) -> OpenFile:
    """The file a redirection names, opened by this process. RedirectError."""
    flags = FLAGS[op]
    try:
        if name.startswith(PREFIXES) and (connection := dial(process, name)) is not None:
            return connection
        if noclobber and op in (">", "&>"):
            return _open_new(process.fs, name, flags)
        return process.fs.open(name, flags, 0o666)
    except SysError as error:
        raise RedirectError(f"{name}: {error.reason}") from None
    except DialError as error:
        raise RedirectError(f"{name}: {error}") from None


def _open_new(fs: View, name: str, flags: int) -> OpenFile:
    """`set -C`: a regular file that exists isn't overwritten."""
    try:
        if not fs.stat(name).is_regular:
            return fs.open(name, flags, 0o666)
    except SysError:
        pass
    try:
        return fs.open(name, flags | O_EXCL, 0o666)
    except SysError as error:
        if error.errno == EEXIST:
            raise RedirectError(f"{name}: cannot overwrite existing file") from None
        raise


def bad_descriptor(text: str) -> RedirectError:
    return RedirectError(f"{text}: {SysError(EBADF).reason}")
