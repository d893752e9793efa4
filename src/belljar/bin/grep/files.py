"""Which files grep searches: operands, directory trees, and the globs that include or exclude them."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFDIR, S_IFLNK, S_IFREG
from belljar.bin.grep.options import Options
from belljar.kernel.process import Process


class Selection:
    """The --include, --exclude and --exclude-dir options."""

    def __init__(self, process: Process, options: Options) -> None:
        self.include = options.include
        self.exclude = list(options.exclude)
        self.exclude_dir = [glob.rstrip("/") or "/" for glob in options.exclude_dir]
        for name in options.exclude_from:
            listed = process.read_file(name).decode("utf-8", "surrogateescape").split("\n")
            self.exclude += [glob for glob in listed if glob and not glob.startswith("#")]

    @property
    def takes_all(self) -> bool:
        return not (self.include or self.exclude or self.exclude_dir)

    def accepts_file(self, name: str, *, operand: bool) -> bool:
        if any(_matches(name, glob, operand) for glob in self.exclude):
            return False
        return not self.include or any(_matches(name, glob, operand) for glob in self.include)

    def accepts_directory(self, name: str, *, operand: bool) -> bool:
        return not any(_matches(name, glob, operand) for glob in self.exclude_dir)


def _matches(name: str, glob: str, operand: bool) -> bool:
    """An operand may match with any of its trailing components, a file found in a tree with its own name."""
    if not operand:
        return fnmatchcase(name.rpartition("/")[2], glob)
    name = name.rstrip("/") or "/"
    parts = name.split("/")
    return any(fnmatchcase("/".join(parts[start:]), glob) for start in range(len(parts)))


def walk(
    process: Process, root: str, shown: str, selection: Selection, follow: bool, silent: bool
) -> Iterator[str | None]:
    """The regular files below a directory, by name; None stands for one that failed, already reported.

    `shown` replaces `root` in the names (a tree searched by default is not called `.`).
    """
    stack: list[tuple[str, str]] = [(root, shown)]
    visited: set[tuple[int, int]] = set()
    while stack:
        path, prefix = stack.pop()
        try:
            if follow:
                stat = process.fs.stat(path)
                if (stat.dev, stat.ino) in visited:
                    process.warn(f"warning: {path}: recursive directory loop")
                    continue
                visited.add((stat.dev, stat.ino))
            entries = sorted(process.fs.readdir(path))
        except SysError as error:
            if not silent:
                process.warn(f"{path}: {error.reason}")
            yield None
            continue
        process.budget.charge(len(entries))
        below: list[tuple[str, str]] = []
        for entry in entries:
            if entry.name in (".", ".."):
                continue
            inner = f"{path.rstrip('/')}/{entry.name}"
            name = f"{prefix}{entry.name}"
            kind = entry.kind
            if kind == S_IFLNK:
                if not follow:
                    continue
                try:
                    kind = process.fs.stat(inner).kind
                except SysError as error:
                    if not silent:
                        process.warn(f"{name}: {error.reason}")
                    yield None
                    continue
            if kind == S_IFDIR:
                if selection.accepts_directory(name, operand=False):
                    below.append((inner, name + "/"))
            elif kind == S_IFREG and selection.accepts_file(name, operand=False):
                yield name
        stack += reversed(below)
