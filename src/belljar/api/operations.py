"""Operations of the files API as steps, without saying how to wait: each operation yields its requests.

The synchronous and the asynchronous front both run these; neither has logic of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct, ValidationError, convert

from belljar.abi.base import WORKSPACE
from belljar.abi.errno import EFBIG
from belljar.abi.errors import SysError
from belljar.abi.paths import basename, fsdecode, fsencode, join
from belljar.abi.wire import LIST_PAGE, USER_RIGHTS
from belljar.api.errors import FileError, ProtectedFileError, SandboxError
from belljar.api.local_host import LocalTree, read_local, walk_local
from belljar.api.mounts import Mount, check_mount
from belljar.api.offers import Offers
from belljar.api.request import (
    AnyPath,
    Data,
    FileContents,
    check_contents,
    check_mode,
    check_path,
    raise_failure,
    to_bytes,
)
from belljar.api.results import Entry, ExecResult, FileResult, GrepMatch, decode, split_grep
from belljar.api.settings import Settings
from belljar.api.stepper import Link, Waits, driven

if TYPE_CHECKING:
    from belljar.kernel.fs.protection import Trust

PIECE: Final = 8 << 20
READ_MAX: Final = 1 << 30
"""Bytes of one file that are read into the owner's memory. What has no end is given up after the first piece."""
ENTRIES_MAX: Final = 2_000_000
"""Entries of one directory that are listed."""
TREE_MAX: Final = 400_000
"""Files and directories of one download."""
_GLOB: Final = 'IFS=; printf "%s\\0" $1'


class Ask(Struct, frozen=True):
    """A call to the worker about a path; its answer is sent back into the operation."""

    path: str
    name: str
    arguments: tuple[Any, ...]


class Run(Struct, frozen=True):
    """A command to run in the sandbox; its ExecResult is sent back."""

    argv: list[str]


class Work(Struct, frozen=True):
    """Something of the owner's that may take a while; its result is sent back."""

    do: Callable[[], Any]


T = TypeVar("T")
Steps = Generator[Ask | Run | Work, Any, T]


def ask(path: str, name: str, *arguments: Any) -> Steps[Any]:
    return (yield Ask(path, name, arguments))


def check_answer(value: Any, shape: type[T]) -> T:
    """Check the form of a worker's answer. SandboxError."""
    try:
        return convert(value, shape, builtin_types=(bytes,))  # else a str is taken for the Base64 of bytes
    except ValidationError:
        raise SandboxError("the sandbox's worker gave an answer of a form that was not asked for") from None


def _read_piece(path: str, offset: int, size: int = 0) -> Steps[tuple[bytes, bool]]:
    """The next bytes of a file, at most `size` or PIECE, and whether they are its last."""
    answer = yield from ask(path, "read", fsencode(path), offset, size or PIECE)
    data, ended = check_answer(answer, tuple[bytes, bool])
    return data, ended or not data


def read_range(path: AnyPath, offset: int, size: int) -> Steps[bytes]:
    """At most `size` bytes from `offset` on, or PIECE if that is less; none at the end. ValueError."""
    if offset < 0 or size < 1:
        raise ValueError(f"a range begins at 0 or later and has at least one byte, not {offset}, {size}")
    data, _ = yield from _read_piece(check_path(path), offset, min(size, PIECE))
    return data


def read_bytes(path: AnyPath) -> Steps[bytes]:
    path = check_path(path)
    parts: list[bytes] = []
    offset, ended = 0, False
    while not ended:
        data, ended = yield from _read_piece(path, offset)
        parts.append(data)
        offset += len(data)
        if not ended and (offset > READ_MAX or (yield from stat(path)).kind != "file"):
            raise FileError(EFBIG, path)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read(path: AnyPath) -> Steps[str]:
    return decode((yield from read_bytes(path)))


def write(path: AnyPath, data: Data, mode: int | None = None, append: bool = False) -> Steps[None]:
    path = check_path(path)
    raw = to_bytes(data, f"what is written to {path!r}")
    name = fsencode(path)
    mode = None if mode is None else check_mode(mode)
    yield from ask(path, "write", name, raw[:PIECE], mode, bool(append), True)
    for start in range(PIECE, len(raw), PIECE):
        yield from ask(path, "write", name, raw[start : start + PIECE], None, True, False)


def edit(path: AnyPath, old: str, new: str, every: bool) -> Steps[int]:
    """Replace text in a file; gives how often. ValueError if it is not there, or there more than once unasked."""
    path = check_path(path)
    if not all(isinstance(text, str) for text in (old, new)):
        raise TypeError("edit takes the old and the new text as str")
    if not old:
        raise ValueError("edit needs the text to replace")
    data = yield from read_bytes(path)
    before, after = (text.encode("utf-8", "surrogateescape") for text in (old, new))
    count = data.count(before)
    if count == 0:
        raise ValueError(f"{path}: the text to replace is not there; read the file and copy it exactly")
    if count > 1 and not every:
        raise ValueError(f"{path}: the text to replace is there {count} times; give more of it, or every=True")
    yield from write(path, data.replace(before, after))
    return count


FilesToWrite = Iterable[tuple[AnyPath, FileContents]] | Mapping[str, FileContents]


def write_many(files: FilesToWrite) -> Steps[list[FileResult]]:
    results: list[FileResult] = []
    for path, data, mode in [_file_to_write(file) for file in (files.items() if isinstance(files, Mapping) else files)]:
        try:
            yield from write(path, data, mode)
            results.append(FileResult(path))
        except FileError as error:
            results.append(FileResult(path, error))
    return results


def _file_to_write(file: object) -> tuple[str, bytes, int | None]:
    """TypeError, ValueError before anything was written."""
    match file:
        case (path, contents):
            return check_path(path), *check_contents(path, contents)
    raise TypeError(f"write_many takes pairs of a path and its contents, not {file!r}")


def list_directory(path: AnyPath) -> Steps[list[Entry]]:
    path = check_path(path)
    found: list[Entry] = []
    while True:
        last = found[-1].name if found else ""
        page = check_entries((yield from ask(path, "list", fsencode(path), fsencode(last))))
        found += [Entry.from_fields(fsdecode(name), join(path, fsdecode(name)), *fields) for name, *fields in page]
        if len(page) < LIST_PAGE or found[-1].name <= last:
            return found
        if len(found) > ENTRIES_MAX:
            raise FileError(EFBIG, path)


def check_entries(page: Any) -> list[list[Any]]:
    """Check a worker's list of a directory. SandboxError for anything that is no list of names and numbers."""
    if isinstance(page, list) and all(
        isinstance(entry, list) and len(entry) >= 6 and type(entry[0]) is bytes and {*map(type, entry[1:])} == {int}
        for entry in page
    ):
        return page
    raise SandboxError("the sandbox does not say what is in the directory")


def stat(path: AnyPath, follow: bool = True) -> Steps[Entry]:
    path = check_path(path)
    fields = yield from ask(path, "stat", fsencode(path), bool(follow))
    (entry,) = check_entries([[b"", *check_answer(fields, list[int])]])
    return Entry.from_fields(basename(path), path, *entry[1:])


def exists(path: AnyPath) -> Steps[bool]:
    try:
        yield from stat(path)
    except FileError as error:
        if SysError(error.errno).name in ("ENOENT", "ENOTDIR", "ELOOP"):
            return False
        raise
    return True


def mkdir(path: AnyPath, parents: bool = False) -> Steps[None]:
    path = check_path(path)
    yield from ask(path, "mkdir", fsencode(path), bool(parents))


def symlink(target: AnyPath, path: AnyPath) -> Steps[None]:
    target = check_path(target)
    path = check_path(path)
    yield from ask(path, "symlink", fsencode(target), fsencode(path))


def readlink(path: AnyPath) -> Steps[str]:
    path = check_path(path)
    return fsdecode(check_answer((yield from ask(path, "readlink", fsencode(path))), bytes))


def chmod(path: AnyPath, mode: int) -> Steps[None]:
    path = check_path(path)
    yield from ask(path, "chmod", fsencode(path), check_mode(mode))


def remove(path: AnyPath, recursive: bool = False) -> Steps[None]:
    path = check_path(path)
    yield from ask(path, "remove", fsencode(path), bool(recursive))


def rename(old: AnyPath, new: AnyPath) -> Steps[None]:
    old = check_path(old)
    new = check_path(new)
    yield from ask(old, "rename", fsencode(old), fsencode(new))


def glob(pattern: AnyPath) -> Steps[list[str]]:
    pattern = check_path(pattern)
    argv = ["bash", "-O", "globstar", "-O", "nullglob", "-c", _GLOB, "glob", pattern]
    result: ExecResult = yield Run(argv)
    paths = [fsdecode(path) for path in result.check().stdout_bytes.split(b"\0") if path]
    # A word without a pattern is given back as it is, whether there is such a file or not.
    return [] if paths == [pattern] and not (yield from exists(pattern)) else paths


def grep(pattern: str, path: AnyPath) -> Steps[list[GrepMatch]]:
    path = check_path(path)
    result: ExecResult = yield Run(["grep", "-rnIZHE", "-e", pattern, "--", path])
    return split_grep(result.stdout_bytes if result.exit_code <= 1 else result.check().stdout_bytes)


def upload(local: AnyPath, path: AnyPath) -> Steps[None]:
    path = check_path(path)
    for relative, is_dir, mode in walk_local(local):
        target = join(path, relative) if relative else path
        if is_dir:
            yield from mkdir(target, True)
        else:
            yield from _upload_file(local, relative, target, mode)


def _upload_file(local: AnyPath, relative: str, target: str, mode: int | None) -> Steps[None]:
    """In pieces: a file may be larger than memory."""
    started = False
    for piece in read_local(local, relative, PIECE):
        yield from ask(target, "write", fsencode(target), piece, None if started else mode, started, not started)
        started = True


def download(path: AnyPath, local: AnyPath, trust: Trust = False) -> Steps[None]:
    """Copy out a file, or a tree: all of it is listed and checked before anything is written."""
    from belljar.api.arrivals import Arrival, refused_files  # few programs download
    from belljar.kernel.fs.protection import Protection

    path, tree = check_path(path), LocalTree(check_path(local, "the place of a download"))
    protection = Protection(trust, tree.above)
    found = yield from _list_tree(path)
    arrivals = [Arrival(parts, "directory" if entry.is_dir else "file") for parts, entry in found]
    refused = refused_files(protection, arrivals, tree.has, tree.count_names)
    if refused:
        raise ProtectedFileError(refused)
    for parts, entry in found:
        if entry.is_dir:
            tree.make_directory(parts)
        else:
            yield from _download_file(entry, tree, parts)


def _list_tree(path: str) -> Steps[list[tuple[list[str], Entry]]]:
    """A file, or a directory and all files and directories below it, each after the one it is in."""
    found: list[tuple[list[str], Entry]] = [([], (yield from stat(path)))]
    for parts, entry in found:  # which grows
        if entry.is_dir:
            entries = yield from list_directory(entry.path)
            found += [([*parts, e.name], e) for e in entries if e.kind in ("file", "directory")]
        if len(found) > TREE_MAX:
            raise FileError(EFBIG, path)
    return found


def _download_file(entry: Entry, tree: LocalTree, parts: list[str]) -> Steps[None]:
    """In pieces: a file may be larger than memory. One that grows meanwhile can't fill the disk."""
    most = max(entry.size, READ_MAX) if entry.kind == "file" else PIECE
    with tree.replacing(parts, entry.mode) as file:
        offset, ended = 0, False
        while not ended:
            data, ended = yield from _read_piece(entry.path, offset)
            offset += len(data)
            if offset > most:
                raise FileError(EFBIG, entry.path)
            file.write(data)


def mount(path: AnyPath, tree: Mount, offers: Offers) -> Steps[None]:
    path = check_mount(path, tree)
    recipe = yield Work(lambda: tree.build(offers.export))
    if offers.native_mounts is not None:
        yield from offers.native_mounts.mount(path, recipe, tree.read_only, offers)
        offers.native_mounts.trees.append((path, tree))
    else:
        yield from ask(path, "mount", fsencode(path), recipe, tree.read_only)
    for name, data, mode in tree.files:
        yield from write(f"{path}/{name.lstrip('/')}", data, mode)


def unmount(path: AnyPath, offers: Offers) -> Steps[None]:
    path = check_path(path)
    if offers.native_mounts is not None:
        yield from offers.native_mounts.unmount(path)
    else:
        yield from ask(path, "unmount", fsencode(path))


def set_up(settings: Settings, offers: Offers) -> Steps[None]:
    """Everything that makes a fresh sandbox the one that was asked for."""
    for path, tree in settings.mounts:
        yield from mount(path, tree, offers)
    if settings.grant is not None:
        from belljar.api.companion import grant_programs

        yield from grant_programs(settings.grant)
    for tool in settings.tools:
        offers.offer(tool)
        yield from ask(tool.name, "tool", fsencode(tool.name))
    if settings.cwd != WORKSPACE:
        yield from mkdir(settings.cwd, True)
    for path, data, mode in settings.files:
        yield from write(path, data, mode)


def stats() -> Steps[dict[str, float]]:
    values = check_answer((yield from ask("", "stats")), dict[bytes, int | float])
    return {key.decode("utf-8", "replace"): value for key, value in values.items()}


def with_user_rights(steps: Steps[T]) -> Steps[T]:
    """The same operation with no more rights than the sandbox's own commands have."""

    def perform(step: Ask | Run | Work) -> Steps[Any]:
        return (yield Ask(step.path, USER_RIGHTS + step.name, step.arguments) if isinstance(step, Ask) else step)

    return driven(steps, perform, FileError)


def run_operation(link: Link, steps: Steps[T], execute: Callable[[list[str]], Any]) -> Waits[T]:
    """Ask a sandbox for each step of an operation; `execute` is the front's way to run a command."""

    def perform(step: Ask | Run | Work) -> Waits[Any]:
        if isinstance(step, Run):
            return (yield execute(step.argv))
        if isinstance(step, Work):
            return (yield link.call_blocking(step.do, lambda _: None))
        pending, frame = link.conversation.call(step.name, *step.arguments)
        link.send(frame)
        yield link.expect(lambda: pending.done)
        raise_failure(pending, step.path)
        return pending.value

    return driven(steps, perform, Exception)
