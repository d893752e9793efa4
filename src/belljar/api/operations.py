"""What the files API does, step by step, without saying how to wait: each operation yields its requests.

The synchronous and the asynchronous front both run these; neither has logic of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from errno import EFBIG
from typing import Any, Final, TypeVar

from msgspec import Struct

from belljar.abi.base import WORKSPACE
from belljar.abi.errors import SysError
from belljar.abi.paths import basename, fsdecode, fsencode, join
from belljar.abi.wire import USER_RIGHTS
from belljar.api.errors import FileError
from belljar.api.local_host import read_local, walk_local, write_local
from belljar.api.mounts import Mount, check_mount
from belljar.api.offers import Offers
from belljar.api.request import FileContents, check_contents
from belljar.api.results import Entry, ExecResult, FileResult, GrepMatch, decode, split_grep
from belljar.api.settings import Settings
from belljar.api.stepper import Stepper

PIECE: Final = 8 << 20
READ_MAX: Final = 1 << 30
"""Bytes of one file that are read into the owner's memory. What has no end is given up after the first piece."""
_GLOB: Final = 'IFS=; printf "%s\\0" $1'


class Ask(Struct, frozen=True):
    """A call to the worker about a path; its answer is sent back into the operation."""

    path: str
    name: str
    arguments: tuple[Any, ...]


class Run(Struct, frozen=True):
    """A command to run in the sandbox; its ExecResult is sent back."""

    argv: list[str]


T = TypeVar("T")
Steps = Generator[Ask | Run, Any, T]


def _ask(path: str, name: str, *arguments: Any) -> Steps[Any]:
    return (yield Ask(path, name, arguments))


def read_bytes(path: str) -> Steps[bytes]:
    parts: list[bytes] = []
    offset, ended = 0, False
    while not ended:
        data, ended = yield from _ask(path, "read", fsencode(path), offset, PIECE)
        parts.append(data)
        offset += len(data)
        ended = ended or not data
        if not ended and (offset > READ_MAX or (yield from stat(path)).kind != "file"):
            raise FileError(EFBIG, path)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read(path: str) -> Steps[str]:
    return decode((yield from read_bytes(path)))


def write(path: str, data: str | bytes, mode: int | None = None, append: bool = False) -> Steps[None]:
    raw, _ = check_contents(path, data)
    name = fsencode(path)
    yield from _ask(path, "write", name, raw[:PIECE], mode, append, True)
    for start in range(PIECE, len(raw), PIECE):
        yield from _ask(path, "write", name, raw[start : start + PIECE], None, True, False)


def write_many(files: Iterable[tuple[str, FileContents]]) -> Steps[list[FileResult]]:
    results: list[FileResult] = []
    for path, value in files:
        try:
            data, mode = check_contents(path, value)
            yield from write(path, data, mode)
            results.append(FileResult(path))
        except FileError as error:
            results.append(FileResult(path, error))
    return results


def list_directory(path: str) -> Steps[list[Entry]]:
    entries = yield from _ask(path, "list", fsencode(path))
    return [Entry.from_fields(fsdecode(name), join(path, fsdecode(name)), *fields) for name, *fields in entries]


def stat(path: str, follow: bool = True) -> Steps[Entry]:
    fields = yield from _ask(path, "stat", fsencode(path), follow)
    return Entry.from_fields(basename(path), path, *fields)


def exists(path: str) -> Steps[bool]:
    try:
        yield from stat(path)
    except FileError as error:
        if SysError(error.errno).name in ("ENOENT", "ENOTDIR", "ELOOP"):
            return False
        raise
    return True


def mkdir(path: str, parents: bool = False) -> Steps[None]:
    yield from _ask(path, "mkdir", fsencode(path), parents)


def symlink(target: str, path: str) -> Steps[None]:
    yield from _ask(path, "symlink", fsencode(target), fsencode(path))


def readlink(path: str) -> Steps[str]:
    return fsdecode((yield from _ask(path, "readlink", fsencode(path))))


def chmod(path: str, mode: int) -> Steps[None]:
    yield from _ask(path, "chmod", fsencode(path), mode)


def remove(path: str, recursive: bool = False) -> Steps[None]:
    yield from _ask(path, "remove", fsencode(path), recursive)


def rename(old: str, new: str) -> Steps[None]:
    yield from _ask(old, "rename", fsencode(old), fsencode(new))


def glob(pattern: str) -> Steps[list[str]]:
    argv = ["bash", "-O", "globstar", "-O", "nullglob", "-O", "dotglob", "-c", _GLOB, "glob", pattern]
    result: ExecResult = yield Run(argv)
    paths = [fsdecode(path) for path in result.check().stdout_bytes.split(b"\0") if path]
    # A word without a pattern is given back as it is, whether there is such a file or not.
    return [] if paths == [pattern] and not (yield from exists(pattern)) else paths


def grep(pattern: str, path: str) -> Steps[list[GrepMatch]]:
    result: ExecResult = yield Run(["grep", "-rnIZHE", "-e", pattern, "--", path])
    return split_grep(result.stdout_bytes if result.exit_code <= 1 else result.check().stdout_bytes)


def upload(local: str, path: str) -> Steps[None]:
    for relative, is_dir, mode in walk_local(local):
        target = join(path, relative) if relative else path
        if is_dir:
            yield from mkdir(target, True)
        else:
            yield from write(target, read_local(local, relative), mode)


def download(path: str, local: str) -> Steps[None]:
    todo = [(path, "")]
    while todo:
        source, relative = todo.pop()
        if (yield from stat(source, follow=not relative)).is_dir:
            write_local(local, relative, None)
            entries = yield from list_directory(source)
            todo += [(e.path, f"{relative}/{e.name}") for e in entries if e.kind in ("file", "directory")]
        else:
            write_local(local, relative, (yield from read_bytes(source)))


def mount(path: str, tree: Mount, offers: Offers) -> Steps[None]:
    check_mount(path, tree)
    yield from _ask(path, "mount", fsencode(path), tree.build(offers.export), tree.read_only)
    for name, data, mode in tree.files:
        yield from write(f"{path}/{name.lstrip('/')}", data, mode)


def unmount(path: str) -> Steps[None]:
    yield from _ask(path, "unmount", fsencode(path))


def set_up(settings: Settings, offers: Offers) -> Steps[None]:
    """Everything that makes a fresh sandbox the one that was asked for."""
    for path, tree in settings.mounts:
        yield from mount(path, tree, offers)
    for tool in settings.tools:
        offers.offer(tool)
        yield from _ask(tool.name, "tool", fsencode(tool.name))
    if settings.cwd != WORKSPACE:
        yield from mkdir(settings.cwd, True)
    for path, data, mode in settings.files:
        yield from write(path, data, mode)


def stats() -> Steps[dict[str, float]]:
    values = yield from _ask("", "stats")
    return {key.decode(): value for key, value in values.items()}


def with_user_rights(steps: Steps[T]) -> Steps[T]:
    """The same operation with no more rights than the sandbox's own commands have."""
    stepper = Stepper(steps)
    while (step := stepper.step) is not None:
        if isinstance(step, Ask):
            step = Ask(step.path, USER_RIGHTS + step.name, step.arguments)
        try:
            value = yield step
        except FileError as error:
            stepper.fail(error)
        else:
            stepper.answer(value)
    return stepper.result  # type: ignore[return-value]
