"""A sandbox's files, from outside: `sandbox.files`, in both fronts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from belljar.api import operations
from belljar.api.link_host import Link
from belljar.api.operations import FilesToWrite, Steps
from belljar.api.owner_host import refuse_copy
from belljar.api.request import AnyPath, Data, check_path
from belljar.api.results import Entry, FileResult, GrepMatch

if TYPE_CHECKING:
    from belljar.api.async_link_host import AsyncLink
    from belljar.api.watch import AsyncWatch, Watch
    from belljar.kernel.fs.protection import Trust

Entries = list[Entry]
Paths = list[str]
Matches = list[GrepMatch]
Results = list[FileResult]


class Files:
    """Files of a sandbox. Relative paths start at its working directory; missing parents are made for you.

    >>> sandbox.files.write("notes/a.txt", "hello")
    >>> sandbox.files.read("notes/a.txt")
    'hello'
    """

    __reduce__ = refuse_copy

    def __init__(self, run: Callable[[Steps[Any]], Any], link: Callable[[], Link]) -> None:
        self._run = run
        self._link = link

    def as_user(self) -> Files:
        """The same files, with the rights of the sandbox's commands; `files` itself may do everything."""
        return Files(lambda steps: self._run(operations.with_user_rights(steps)), self._link)

    def read(self, path: AnyPath) -> str:
        """The whole file as text; bytes that are not UTF-8 become U+FFFD."""
        return str(self._run(operations.read(path)))

    def read_bytes(self, path: AnyPath) -> bytes:
        """The whole file. FileError."""
        return bytes(self._run(operations.read_bytes(path)))

    def read_range(self, path: AnyPath, offset: int, size: int) -> bytes:
        """At most `size` bytes (and 8 MiB) from `offset` on; b"" at the end: to read a large file in pieces."""
        return bytes(self._run(operations.read_range(path, offset, size)))

    def write(self, path: AnyPath, data: Data, *, mode: int | None = None, append: bool = False) -> None:
        """Create or replace a file (or add to it); missing directories above it are made."""
        self._run(operations.write(path, data, mode, append))

    def write_many(self, files: FilesToWrite) -> Results:
        """Write each pair of path and contents; one that fails does not stop the others. The results keep the order."""
        return list(self._run(operations.write_many(files)))

    def list(self, path: AnyPath = ".") -> Entries:
        """The entries of a directory, by name."""
        entries: Entries = self._run(operations.list_directory(path))
        return entries

    def stat(self, path: AnyPath, *, follow: bool = True) -> Entry:
        entry: Entry = self._run(operations.stat(path, follow))
        return entry

    def exists(self, path: AnyPath) -> bool:
        return bool(self._run(operations.exists(path)))

    def mkdir(self, path: AnyPath, parents: bool = False) -> None:
        """With `parents`, missing directories above it are made and an existing one is fine."""
        self._run(operations.mkdir(path, parents))

    def symlink(self, target: AnyPath, path: AnyPath) -> None:
        self._run(operations.symlink(target, path))

    def readlink(self, path: AnyPath) -> str:
        return str(self._run(operations.readlink(path)))

    def chmod(self, path: AnyPath, mode: int) -> None:
        self._run(operations.chmod(path, mode))

    def edit(self, path: AnyPath, old: str, new: str, *, every: bool = False) -> int:
        """Replace `old` by `new`, which must be there once unless `every`; gives how often. ValueError."""
        count: int = self._run(operations.edit(path, old, new, every))
        return count

    def remove(self, path: AnyPath, recursive: bool = False) -> None:
        """A file, a symlink or an empty directory; with `recursive` a whole tree."""
        self._run(operations.remove(path, recursive))

    def rename(self, old: AnyPath, new: AnyPath) -> None:
        self._run(operations.rename(old, new))

    def glob(self, pattern: AnyPath) -> Paths:
        """Paths that match a bash pattern (`**` included), sorted; none is an empty list."""
        paths: Paths = self._run(operations.glob(pattern))
        return paths

    def grep(self, pattern: str, path: AnyPath = ".") -> Matches:
        """Lines that match an extended regular expression, in a file or below a directory."""
        matches: Matches = self._run(operations.grep(pattern, path))
        return matches

    def upload(self, local: AnyPath, path: AnyPath) -> None:
        """Copy a file or directory tree of your machine into the sandbox."""
        self._run(operations.upload(local, path))

    def download(self, path: AnyPath, local: AnyPath, *, trust: Trust = False) -> None:
        """Copy a file or directory tree out of the sandbox, with its modes; symlinks are neither followed nor made.

        A tree with files that would make your machine run something (`.git/hooks`, `.envrc`, `.vscode` ...) is refused
        with ProtectedFileError before anything is written. `trust` lets rules or paths through, or all of it (True).
        """
        self._run(operations.download(path, local, trust))

    def watch(self, path: AnyPath = ".", *, recursive: bool = True) -> Watch:
        """Changes at and below a path from now on, whoever makes them: iterate, or ask with `next(timeout)`."""
        from belljar.api.watch import Watch

        return Watch(self._link(), check_path(path), bool(recursive))


class AsyncFiles:
    """The same, awaited. See `Files`."""

    __reduce__ = refuse_copy

    def __init__(self, run: Callable[[Steps[Any]], Awaitable[Any]], link: Callable[[], AsyncLink]) -> None:
        self._run = run
        self._link = link

    def as_user(self) -> AsyncFiles:
        return AsyncFiles(lambda steps: self._run(operations.with_user_rights(steps)), self._link)

    async def read(self, path: AnyPath) -> str:
        return str(await self._run(operations.read(path)))

    async def read_bytes(self, path: AnyPath) -> bytes:
        return bytes(await self._run(operations.read_bytes(path)))

    async def read_range(self, path: AnyPath, offset: int, size: int) -> bytes:
        return bytes(await self._run(operations.read_range(path, offset, size)))

    async def write(self, path: AnyPath, data: Data, *, mode: int | None = None, append: bool = False) -> None:
        await self._run(operations.write(path, data, mode, append))

    async def write_many(self, files: FilesToWrite) -> Results:
        results: Results = await self._run(operations.write_many(files))
        return results

    async def list(self, path: AnyPath = ".") -> Entries:
        entries: Entries = await self._run(operations.list_directory(path))
        return entries

    async def stat(self, path: AnyPath, *, follow: bool = True) -> Entry:
        entry: Entry = await self._run(operations.stat(path, follow))
        return entry

    async def exists(self, path: AnyPath) -> bool:
        return bool(await self._run(operations.exists(path)))

    async def mkdir(self, path: AnyPath, parents: bool = False) -> None:
        await self._run(operations.mkdir(path, parents))

    async def symlink(self, target: AnyPath, path: AnyPath) -> None:
        await self._run(operations.symlink(target, path))

    async def readlink(self, path: AnyPath) -> str:
        return str(await self._run(operations.readlink(path)))

    async def chmod(self, path: AnyPath, mode: int) -> None:
        await self._run(operations.chmod(path, mode))

    async def edit(self, path: AnyPath, old: str, new: str, *, every: bool = False) -> int:
        count: int = await self._run(operations.edit(path, old, new, every))
        return count

    async def remove(self, path: AnyPath, recursive: bool = False) -> None:
        await self._run(operations.remove(path, recursive))

    async def rename(self, old: AnyPath, new: AnyPath) -> None:
        await self._run(operations.rename(old, new))

    async def glob(self, pattern: AnyPath) -> Paths:
        paths: Paths = await self._run(operations.glob(pattern))
        return paths

    async def grep(self, pattern: str, path: AnyPath = ".") -> Matches:
        matches: Matches = await self._run(operations.grep(pattern, path))
        return matches

    async def upload(self, local: AnyPath, path: AnyPath) -> None:
        await self._run(operations.upload(local, path))

    async def download(self, path: AnyPath, local: AnyPath, *, trust: Trust = False) -> None:
        await self._run(operations.download(path, local, trust))

    def watch(self, path: AnyPath = ".", *, recursive: bool = True) -> AsyncWatch:
        """Changes at and below a path, from `async with` on."""
        from belljar.api.watch import AsyncWatch

        return AsyncWatch(self._link(), check_path(path), bool(recursive))
