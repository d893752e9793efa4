"""The files of a snapshot, read without a sandbox: `Snapshot.files`."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from belljar.abi.errno import EFBIG, ENXIO, EROFS
from belljar.abi.errors import SysError
from belljar.abi.flags import O_NONBLOCK, O_RDONLY
from belljar.abi.paths import fsdecode, fsencode, join
from belljar.abi.wire import LIST_PAGE
from belljar.api import operations
from belljar.api.errors import FileError
from belljar.api.files import Entries, Matches, Paths
from belljar.api.operations import Ask, Run, Steps, Work
from belljar.api.request import AnyPath, check_path
from belljar.api.results import Entry, GrepMatch, decode
from belljar.api.stepper import driven, finish
from belljar.kernel.lookup_cache import LookupCache
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.namespace import Mount, Namespace
from belljar.kernel.vfs.server import Handle, Node
from belljar.kernel.vfs.view import View
from belljar.store.errors import StoreError
from belljar.store.snapshot import SnapshotRecord, Tree
from belljar.store.store import Objects, Store
from belljar.store.stored_tree import StoredTree

if TYPE_CHECKING:
    from belljar.kernel.fs.protection import Trust

T = TypeVar("T")

_WALKED_MAX: Final = 2_000_000
"""Files that one `glob` or `grep` looks at."""


class SnapshotFiles:
    """The files of a snapshot: those methods of `Files` that read. Relative paths start at its working directory.

    Of a mount that was an overlay over your own files, only the files that the sandbox changed are here.
    """

    def __init__(self, store: Store, record: SnapshotRecord) -> None:
        self._cwd = fsdecode(record.cwd)
        objects = Objects(store)
        servers = [StoredTree(objects, tree) for tree in record.trees]
        self._view = View(
            Namespace(Mount(servers[0], servers[0].root, None)),
            Credentials(0, 0),
            open_fifo=_open_fifo,
            now=lambda: 0,
            lookup_cache=LookupCache(),
        )
        self._others: list[tuple[Tree, StoredTree]] = list(zip(record.trees, servers, strict=True))[1:]

    def read(self, path: AnyPath) -> str:
        """The whole file as text; bytes that are not UTF-8 become U+FFFD."""
        return self._run(operations.read(path))

    def read_bytes(self, path: AnyPath) -> bytes:
        """The whole file. FileError."""
        return self._run(operations.read_bytes(path))

    def list(self, path: AnyPath = ".") -> Entries:
        """The entries of a directory, by name."""
        return self._run(operations.list_directory(path))

    def stat(self, path: AnyPath, *, follow: bool = True) -> Entry:
        return self._run(operations.stat(path, follow))

    def exists(self, path: AnyPath) -> bool:
        return self._run(operations.exists(path))

    def readlink(self, path: AnyPath) -> str:
        return self._run(operations.readlink(path))

    def glob(self, pattern: AnyPath) -> Paths:
        """Paths that match a bash pattern (`**` included), sorted; none is an empty list."""
        from belljar.libc.pattern import is_pattern

        *parts, last = check_path(pattern).split("/")
        found = {""}
        for part in parts:  # directories, with a "/" at the end
            if part == "**":
                found = {path for base in found for path in self._below(base) if path == base or path.endswith("/")}
            elif is_pattern(part):
                found = {path + "/" for base in found for path in self._matches(base, part)}
            else:
                found = {base + part + "/" for base in found}
        if last == "**":
            found = {path.removesuffix("/") for base in found for path in self._below(base) if path != base}
        elif is_pattern(last):
            found = {path for base in found for path in self._matches(base, last)}
        else:
            found = {base + last for base in found}
        return sorted(path for path in found if path and self._has(path))

    def grep(self, pattern: str, path: AnyPath = ".") -> Matches:
        """Lines that match an extended regular expression, in a file or below a directory."""
        from belljar.regex import RegexError
        from belljar.regex import compile as compile_regex

        try:
            regex = compile_regex(pattern, syntax="egrep")
        except RegexError as error:
            raise ValueError(f"grep: {error}") from None
        top = check_path(path)
        files = [top]
        if self.stat(top).is_dir:
            files = [each for each in self._below(top.rstrip("/") + "/") if not each.endswith("/")]
        matches: Matches = []
        for name in files:
            if self.stat(name, follow=name == top).kind != "file":
                continue
            data = self.read_bytes(name)
            if b"\0" not in data:
                matches += [
                    GrepMatch(name, number, decode(line))
                    for number, line in enumerate(data.splitlines(), 1)
                    if regex.search(line)
                ]
        return matches

    def download(self, path: AnyPath, local: AnyPath, *, trust: Trust = False) -> None:
        """Copy a file or directory tree to your machine, as `sandbox.files.download` does."""
        self._run(operations.download(path, local, trust))

    def _has(self, path: str) -> bool:
        try:
            return self.stat(path, follow=path.endswith("/")).is_dir or not path.endswith("/")
        except FileError:
            return False

    def _matches(self, base: str, part: str) -> Iterator[str]:
        from belljar.libc.pattern import compile_pattern

        pattern = compile_pattern(part)
        try:
            entries = self.list(base or ".")
        except FileError:
            return
        yield from (base + entry.name for entry in entries if pattern.matches_name(entry.name))

    def _below(self, base: str) -> Paths:
        """A directory and all that is below it, directories with a "/" at the end; none whose name is hidden."""
        found: Paths = [base]
        for path in found:  # which grows
            if path == base or path.endswith("/"):
                try:
                    entries = self.list(path or ".")
                except FileError:
                    continue
                found += [path + entry.name + "/" * entry.is_dir for entry in entries if entry.name[:1] != "."]
            if len(found) > _WALKED_MAX:
                raise FileError(EFBIG, base)
        return found

    def _run(self, steps: Steps[T]) -> T:
        def perform(step: Ask | Run | Work) -> Generator[Any, Any, Any]:
            yield from ()  # nothing to wait for
            return self._answer(step)

        return finish(driven(steps, perform, FileError))

    def _answer(self, step: Ask | Run | Work) -> Any:
        """Do a step of an operation, as a worker would. FileError; StoreError where the store is to blame."""
        assert isinstance(step, Ask)
        try:
            self._mount_others()
            return self._perform(step)
        except SysError as error:
            if isinstance(error.__cause__, StoreError):
                raise error.__cause__ from None
            raise FileError(error.errno, step.path) from None

    def _perform(self, step: Ask) -> Any:
        path = join(self._cwd, fsdecode(step.arguments[0]))
        match step.name, step.arguments[1:]:
            case "read", (int(offset), int(size)):
                file = self._view.open(path, O_RDONLY | O_NONBLOCK).retain()
                try:
                    data = file.pread(size, offset)
                finally:
                    file.release()
                return data, len(data) < size
            case "list", (bytes(after),):
                last = fsdecode(after)
                names = sorted(entry.name for entry in self._view.readdir(path) if entry.name > last)[:LIST_PAGE]
                return [[fsencode(name), *self._stat(join(path, name), follow=False)] for name in names]
            case "stat", (bool(follow),):
                return self._stat(path, follow=follow)
            case "readlink", ():
                return fsencode(self._view.readlink(path))
        raise SysError(EROFS)

    def _stat(self, path: str, *, follow: bool) -> tuple[int, ...]:
        stat = self._view.stat(path, follow=follow)
        return stat.mode, stat.size, stat.mtime, stat.uid, stat.gid, stat.nlink, stat.ino

    def _mount_others(self) -> None:
        """Put the other trees in their places, when the first file is asked for."""
        while self._others:
            tree, server = self._others[0]
            try:
                self._view.namespace.mount(self._view.resolve(fsdecode(tree.path)), server)
            except SysError as error:
                if error.__cause__ is not None:
                    raise
                # The place is not there in the root: what was mounted can't be shown.
            del self._others[0]


def _open_fifo(_node: Node, _flags: int) -> Handle:
    raise SysError(ENXIO)
