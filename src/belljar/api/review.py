"""Changes that a sandbox made in an overlay, to be read as a diff and applied to a directory of the owner's machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, overload

from msgspec import Meta

from belljar.abi.errno import EFBIG, ENOTSUP
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode, join
from belljar.abi.wire import LIST_PAGE
from belljar.api import operations
from belljar.api.apply_host import apply_changes, arrival_of
from belljar.api.arrivals import refused_files
from belljar.api.errors import FileError, SandboxError
from belljar.api.local_host import DIRECTORY, SYMLINK, TYPES, git_mode
from belljar.api.operations import PIECE, Steps, Work, ask, check_answer
from belljar.api.patch import render_file
from belljar.api.request import AnyPath, check_path
from belljar.kernel.fs.protection import Protection, Trust

if TYPE_CHECKING:
    from belljar.api.offers import Offers
    from belljar.api.restored_changes import RestoredChanges

T = TypeVar("T")

CHANGES_MAX: Final = 200_000
"""Files in one list of changes."""
BYTES_MAX: Final = 1 << 30
"""Bytes of all their new contents: they are kept, so that what was read is what is applied."""
READ_MAX: Final = 8 << 30
"""Bytes of all their old contents, which are read to be compared."""
PATHS_MAX: Final = 64 << 20
"""Bytes of all their paths."""
SHOWN_MAX: Final = 1 << 20
"""Bytes of a file that is shown in a diff."""

Kind = Literal["added", "modified", "deleted", "mode"]
_LETTERS: Final = {"added": "A", "modified": "M", "deleted": "D", "mode": "X"}

Applied = set[tuple[str, bytes]]
"""Paths in the sandbox and digests of contents that were applied: an original that has them was changed by that."""
Mode = Annotated[int, Meta(ge=0, le=0o177777)]
Row = tuple[bytes, Mode, Mode, bool]
"""A path, its mode now and before (0: nothing was there), and whether the original has changed since it was copied."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file before or after: its mode as git writes it (100644, 100755, 120000, 040000), size and SHA-256."""

    mode: int
    size: int
    digest: bytes
    data: bytes | None = field(repr=False, compare=False)
    """Contents, or a symlink's target; None of a large file that is no longer there."""

    @property
    def type(self) -> str:
        return TYPES[self.mode]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file, symlink or directory that differs, by its path below the directory that was asked for."""

    path: str
    old: FileState | None
    new: FileState | None
    conflict: bool = False
    """Whether the original was changed after the sandbox had taken its copy."""
    rule: str | None = None
    """The rule by which `apply` refuses it, unless it is trusted."""

    @property
    def kind(self) -> Kind:
        """added, modified, deleted, or mode: only whether it can be executed."""
        if self.old is None:
            return "added"
        if self.new is None:
            return "deleted"
        return "mode" if self.old.digest == self.new.digest and self.type == self.old.type else "modified"

    @property
    def type(self) -> str:
        """file, symlink or directory: now, or what it was."""
        state = self.new or self.old
        assert state is not None
        return state.type

    @property
    def size(self) -> int:
        """Bytes it has now; 0 if it was deleted."""
        return self.new.size if self.new is not None else 0

    @property
    def old_size(self) -> int:
        return self.old.size if self.old is not None else 0

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The lines of its diff; none for a directory."""
        sides = [_shown(state) for state in (self.old, self.new)]
        if sides == [None, None]:
            return
        if self.rule is not None:
            yield f"# protected by the rule {self.rule!r}: refused by apply() unless it is trusted"
        if self.conflict:
            yield "# changed on the host since the sandbox copied it"
        yield from render_file(self.path, *sides)


def _shown(state: FileState | None) -> tuple[int, bytes | None] | None:
    if state is None or state.mode == DIRECTORY:
        return None
    return state.mode, state.data if state.size <= SHOWN_MAX else None


class Changes(Sequence[FileChange]):
    """The changes of a directory, as they were when they were asked for: what the sandbox does later is not in here.

    >>> changes = sandbox.changes("/repo")
    >>> print(changes.diff())
    >>> changes.apply("./repo", ["src", "README.md"])
    """

    def __init__(self, top: str, changes: Iterable[FileChange], applied: Applied) -> None:
        self.top = top
        self._changes = tuple(changes)
        self._applied = applied

    def __len__(self) -> int:
        return len(self._changes)

    @overload
    def __getitem__(self, index: int) -> FileChange: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[FileChange]: ...

    def __getitem__(self, index: int | slice) -> FileChange | Sequence[FileChange]:
        return self._changes[index]

    def __repr__(self) -> str:
        counts = Counter(change.kind for change in self)
        return f"<Changes of {self.top}: {', '.join(f'{n} {kind}' for kind, n in counts.items()) or 'none'}>"

    def __str__(self) -> str:
        return self.diff()

    @property
    def summary(self) -> str:
        """A line for each: A, M, D or X (mode), the path, and a mark for those that `apply` refuses by default."""
        return "".join(
            f"{_LETTERS[change.kind]} {change.path}{'/' if change.type == 'directory' else ''}"
            f"{f'  ! {change.rule}' if change.rule else ''}{'  ! conflict' if change.conflict else ''}\n"
            for change in self
        )

    def diff(self, paths: str | Iterable[str] | None = None) -> str:
        """A unified diff as git shows it, of all or some. Characters that would hide something are shown escaped."""
        return "".join(f"{line}\n" for change in self._select(paths) for line in change.lines())

    def apply(self, host_dir: AnyPath, paths: str | Iterable[str] | None = None, *, trust: Trust = False) -> list[str]:
        """Make all or some of the changes in a directory of your machine; gives the paths that were changed.

        Everything is checked before anything is written: no step leads through a symlink, each file is as it was
        before the change (ConflictError), and no rule names it (ProtectedFileError) unless `trust` lets it through.
        Files are replaced whole. What is there already as it should be is left alone.
        """
        selected = self._select(paths)
        done = apply_changes(selected, check_path(host_dir, "the directory to change"), trust)
        self._applied |= {(join(self.top, change.path), change.new.digest) for change in selected if change.new}
        return done

    def _select(self, paths: str | Iterable[str] | None) -> list[FileChange]:
        """The changes at or below some paths. ValueError if there are none at one of them."""
        if paths is None:
            return list(self)
        wanted = [check_path(path, "a path").strip("/") for path in ([paths] if isinstance(paths, str) else paths)]
        for path in wanted:
            if not any(_is_below(change.path, path) for change in self):
                raise ValueError(f"nothing was changed at {path!r}: paths are relative to {self.top}")
        return [change for change in self if any(_is_below(change.path, path) for path in wanted)]


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/") or top in ("", ".")


def changes(path: AnyPath, applied: Applied, offers: Offers) -> Steps[Changes]:
    """List the changes of an overlay's directory, with their contents."""
    path = check_path(path)
    found: list[FileChange] = []
    new_room, old_room = BYTES_MAX, READ_MAX
    found_rows = yield from _list_rows(path, offers)
    rows = {_check_relative(name): (new, old, stale) for name, new, old, stale in found_rows}
    restored = yield from _find_restored(path, offers)
    own: dict[str, tuple[int, int]] = {}
    if restored is not None:
        own = yield from _work(path, lambda: restored.modes(CHANGES_MAX))
        for relative, (shown_mode, own_mode) in own.items():
            new_mode, _, stale = rows.get(relative, (shown_mode, 0, False))
            rows[relative] = new_mode, own_mode, stale
        if len(rows) > CHANGES_MAX:
            raise _too_many(path)
    for relative, (new_mode, old_mode, stale) in sorted(rows.items()):
        inside = join(path, relative)
        new = yield from _read_new(git_mode(new_mode), inside, new_room)
        below = restored if relative in own else None
        old = yield from _read_old(git_mode(old_mode), path, relative, old_room, below, offers)
        new_room -= new.size if new is not None else 0
        old_room -= old.size if old is not None else 0
        if new != old:
            ours = old is not None and (inside, old.digest) in applied
            found.append(FileChange(relative, old, new, stale and not ours))
    return Changes(path, _with_rules(found), applied)


def _find_restored(path: str, offers: Offers) -> Steps[RestoredChanges | None]:
    """The changes that an overlay's directory had in the snapshot that the sandbox goes on from."""
    if not offers.exports_any("layered"):
        return None
    answer = yield from ask(path, "lower_place", fsencode(path))
    number, names = check_answer(answer, tuple[int, list[bytes]])
    export = offers.exported(number)
    from belljar.api.restored_changes import RestoredChanges  # few overlays are restored
    from belljar.store.layered import Layered

    if export is None or not isinstance(export.server, Layered):
        return None
    return RestoredChanges(export.server, offers.guard, [fsdecode(name) for name in names])


def _work(path: str, do: Callable[[], T]) -> Steps[T]:
    """Read files of the owner's. FileError."""
    try:
        result: T = yield Work(do)
    except SysError as error:
        raise FileError(error.errno, path) from None
    return result


def _too_many(path: str) -> SandboxError:
    return SandboxError(f"more than {CHANGES_MAX} files were changed in {path}: ask for a part of it")


def _ask_overlay(offers: Offers, path: str, name: Literal["differences", "read_lower"], *arguments: Any) -> Steps[Any]:
    """Ask for something of an overlay: its worker, or on the native tier the server that is in this process."""
    if offers.native_mounts is None:
        return (yield from ask(path, name, fsencode(path), *arguments))
    mounts = offers.native_mounts
    return (yield from _work(path, lambda: mounts.ask_overlay(path, name, arguments)))


def _list_rows(path: str, offers: Offers) -> Steps[list[Row]]:
    rows: list[Row] = []
    room = PATHS_MAX
    while True:
        last = rows[-1][0] if rows else b""
        try:
            answer = yield from _ask_overlay(offers, path, "differences", last)
        except FileError as error:
            if error.errno != ENOTSUP:
                raise
            raise SandboxError(
                f"{path} is not a directory of an overlay: mount yours by Mount.overlay(Mount.host(...))"
            ) from None
        page = check_answer(answer, list[Row])
        rows += page
        room -= sum(len(row[0]) for row in page)
        if len(rows) > CHANGES_MAX or room < 0 or (page and rows[-1][0] <= last):
            raise _too_many(path)
        if len(page) < LIST_PAGE:
            return rows


def _check_relative(name: bytes) -> str:
    path = fsdecode(name)
    if any(part in ("", ".", "..") or "\0" in part for part in path.split("/")):
        raise SandboxError("the sandbox's worker gave a path that leads elsewhere")
    return path


def _read_new(mode: int, path: str, room: int) -> Steps[FileState | None]:
    if mode != SYMLINK:
        return (yield from _read(mode, path, lambda at: ask(path, "read", fsencode(path), at, PIECE), room, room))
    target = fsencode((yield from operations.readlink(path)))
    return FileState(mode, len(target), sha256(target).digest(), target)


def _read_old(
    mode: int, top: str, relative: str, room: int, restored: RestoredChanges | None, offers: Offers
) -> Steps[FileState | None]:
    """A file of the lower tree; of a large one only the digest is kept."""
    path = join(top, relative)

    def read(offset: int) -> Steps[Any]:
        if restored is not None:
            return (yield from _work(path, lambda: restored.read(relative, offset, PIECE)))
        return (yield from _ask_overlay(offers, top, "read_lower", fsencode(relative), offset, PIECE))

    return (yield from _read(mode, path, read, room, SHOWN_MAX))


def _read(mode: int, path: str, read: Callable[[int], Steps[Any]], most: int, kept: int) -> Steps[FileState | None]:
    """A file's state, read in pieces. More than `most` bytes are EFBIG; contents of more than `kept` are not kept."""
    if not mode:
        return None
    digest, parts, size, ended = sha256(), list[bytes](), 0, mode == DIRECTORY
    while not ended:
        data, ended = check_answer((yield from read(size)), tuple[bytes, bool])
        digest.update(data)
        size += len(data)
        ended = ended or not data
        if size > most:
            raise FileError(EFBIG, path)
        if size <= kept:
            parts.append(data)
    return FileState(mode, size, digest.digest(), b"".join(parts) if size <= kept else None)


def _with_rules(found: Sequence[FileChange]) -> list[FileChange]:
    """The same, with the rule that refuses each, as far as that can be told without the host's directory."""
    refused = refused_files(Protection(), [*map(arrival_of, found)], lambda _directory, _name: False, lambda _path: 0)
    rules = {file.path: file.rule for file in refused}
    return [
        FileChange(change.path, change.old, change.new, change.conflict, rules.get(change.path)) for change in found
    ]
