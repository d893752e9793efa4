"""A sandbox's files, from outside: `sandbox.files`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from belljar.abi.errors import SysError
from belljar.abi.paths import basename, fsdecode, fsencode, join
from belljar.api.errors import FileError
from belljar.api.local_host import read_local, walk_local, write_local
from belljar.api.request import FileContents, check_contents
from belljar.api.results import Entry, ExecResult, FileResult, GrepMatch, decode, split_grep

PIECE: Final = 8 << 20

Paths = list[str]
Matches = list[GrepMatch]
Call = Callable[..., Any]
"""`call(path, operation, *arguments)`: the worker's answer, or FileError about `path`."""


class Files:
    """Files of a sandbox. Relative paths start at its working directory; missing parents are made for you.

    >>> sandbox.files.write("notes/a.txt", "hello")
    >>> sandbox.files.read("notes/a.txt")
    'hello'
    """

    def __init__(self, call: Call, execute: Callable[..., ExecResult], cwd: str) -> None:
        self._call = call
        self._exec = execute
        self._cwd = cwd

    def read_bytes(self, path: str) -> bytes:
        """The whole file. FileError."""
        parts: list[bytes] = []
        offset, ended = 0, False
        while not ended:
            data, ended = self._call(path, "read", fsencode(path), offset, PIECE)
            parts.append(data)
            offset += len(data)
            ended = ended or not data
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read(self, path: str) -> str:
        """The whole file as text; bytes that are not UTF-8 become U+FFFD."""
        return decode(self.read_bytes(path))

    def write(self, path: str, data: str | bytes, *, mode: int | None = None, append: bool = False) -> None:
        """Create or replace a file (or add to it); missing directories above it are made."""
        raw, _ = check_contents(path, data)
        name = fsencode(path)
        self._call(path, "write", name, raw[:PIECE], mode, append, True)
        for start in range(PIECE, len(raw), PIECE):
            self._call(path, "write", name, raw[start : start + PIECE], None, True, False)

    def write_many(self, files: Iterable[tuple[str, FileContents]]) -> list[FileResult]:
        """Write each; one that fails does not stop the others. The results keep the order."""
        results: list[FileResult] = []
        for path, value in files:
            try:
                data, mode = check_contents(path, value)
                self.write(path, data, mode=mode)
                results.append(FileResult(path))
            except FileError as error:
                results.append(FileResult(path, error))
        return results

    def list(self, path: str = ".") -> list[Entry]:
        """The entries of a directory, by name."""
        return [
            Entry.from_fields(fsdecode(name), join(path, fsdecode(name)), *fields)
            for name, *fields in self._call(path, "list", fsencode(path))
        ]

    def stat(self, path: str, *, follow: bool = True) -> Entry:
        return Entry.from_fields(basename(path), path, *self._call(path, "stat", fsencode(path), follow))

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except FileError as error:
            if SysError(error.errno).name in ("ENOENT", "ENOTDIR", "ELOOP"):
                return False
            raise
        return True

    def mkdir(self, path: str, parents: bool = False) -> None:
        """With `parents`, missing directories above it are made and an existing one is fine."""
        self._call(path, "mkdir", fsencode(path), parents)

    def symlink(self, target: str, path: str) -> None:
        self._call(path, "symlink", fsencode(target), fsencode(path))

    def readlink(self, path: str) -> str:
        return fsdecode(self._call(path, "readlink", fsencode(path)))

    def chmod(self, path: str, mode: int) -> None:
        self._call(path, "chmod", fsencode(path), mode)

    def remove(self, path: str, recursive: bool = False) -> None:
        """A file, a symlink or an empty directory; with `recursive` a whole tree."""
        self._call(path, "remove", fsencode(path), recursive)

    def rename(self, old: str, new: str) -> None:
        self._call(old, "rename", fsencode(old), fsencode(new))

    def glob(self, pattern: str) -> Paths:
        """Paths that match a bash pattern (`**` included), sorted; none is an empty list."""
        script = 'IFS=; printf "%s\\0" $1'
        argv = ["bash", "-O", "globstar", "-O", "nullglob", "-O", "dotglob", "-c", script, "glob", pattern]
        return [fsdecode(path) for path in self._exec(argv).check().stdout_bytes.split(b"\0") if path]

    def grep(self, pattern: str, path: str = ".") -> Matches:
        """Lines that match an extended regular expression, in a file or below a directory."""
        result = self._exec(["grep", "-rnIZHE", "-e", pattern, "--", path])
        return split_grep(result.stdout_bytes if result.exit_code <= 1 else result.check().stdout_bytes)

    def upload(self, local: str, path: str) -> None:
        """Copy a file or directory tree of your machine into the sandbox."""
        for relative, is_dir, mode in walk_local(local):
            target = join(path, relative) if relative else path
            if is_dir:
                self.mkdir(target, parents=True)
            else:
                self.write(target, read_local(local, relative), mode=mode)

    def download(self, path: str, local: str) -> None:
        """Copy a file or directory tree out of the sandbox; symlinks are not followed nor made."""
        todo = [(path, "")]
        while todo:
            source, relative = todo.pop()
            if self.stat(source, follow=not relative).is_dir:
                write_local(local, relative, None)
                todo += [(e.path, f"{relative}/{e.name}") for e in self.list(source) if e.kind in ("file", "directory")]
            else:
                write_local(local, relative, self.read_bytes(source))
