"""Snapshots of sandboxes, as their owner sees them: `Snapshot`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SnapshotError
from belljar.abi.flags import S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG
from belljar.abi.limits import Limits
from belljar.abi.paths import fsdecode
from belljar.api.errors import printable
from belljar.api.results import Entry
from belljar.api.settings import check_store
from belljar.api.snapshot_files import SnapshotFiles
from belljar.store.bundle_host import export_bundle, import_bundle
from belljar.store.default_host import default_store
from belljar.store.objects import Digest
from belljar.store.snapshot import (
    SnapshotRecord,
    find_snapshot,
    list_snapshots,
    read_snapshot,
    ref_of,
    remove_snapshot,
)
from belljar.store.store import Objects, Store
from belljar.store.tree import Entry as StoredEntry
from belljar.store.tree import Kind
from belljar.store.tree_diff import diff_trees

if TYPE_CHECKING:
    from os import PathLike

ChangeKind = Literal["added", "modified", "deleted", "attributes"]
_TYPES: Final = {Kind.FILE: S_IFREG, Kind.SYMLINK: S_IFLNK, Kind.FIFO: S_IFIFO}


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between two snapshots. `attributes`: only mode, owner or time differ."""

    path: str
    kind: ChangeKind
    before: Entry | None
    after: Entry | None


Differences = list[Change]
Snapshots = list["Snapshot"]


class Snapshot:
    """A sandbox as it was at one moment, kept in a store. Its methods read from there, and wait for it.

    >>> before, after = sandbox.snapshot("before"), sandbox.snapshot("after")
    >>> [change.path for change in before.diff(after)]
    >>> before.files.read("/workspace/a")
    """

    def __init__(self, store: Store, digest: Digest, record: SnapshotRecord) -> None:
        """Snapshots come from `sandbox.snapshot()`, `Snapshot.find` and `Snapshot.list`."""
        self.store: Final = store
        self.digest: Final = digest
        self.record: Final = record

    @classmethod
    def find(cls, ref: str, store: Store | None = None) -> Snapshot:
        """The snapshot that a label, the name of a sandbox, a ref or the first digits of one mean. SnapshotError."""
        if not isinstance(ref, str):
            raise TypeError(f"a snapshot is named by its label or ref, not by {type(ref).__name__}")
        store = check_store(store) or default_store()
        digest = find_snapshot(store, ref)
        return cls(store, digest, read_snapshot(Objects(store), digest))

    @classmethod
    def list(cls, store: Store | None = None) -> Snapshots:
        """All snapshots of a store that can be read, oldest first."""
        store = check_store(store) or default_store()
        listed = list_snapshots(Objects(store)).items()
        return [cls(store, digest, record) for digest, (record, _) in listed if record is not None]

    @classmethod
    def import_(cls, path: str | PathLike[str], store: Store | None = None) -> Snapshot:
        """Take a snapshot from a file that `export` wrote. SnapshotError, and nothing is kept, if anything is wrong.

        A label that the store has already stays with the snapshot that has it.
        """
        store = check_store(store) or default_store()
        digest = import_bundle(Objects(store), path)
        return cls(store, digest, read_snapshot(Objects(store), digest))

    def export(self, path: str | PathLike[str]) -> None:
        """Write it, with all that it needs, to one file. SnapshotError, StoreError."""
        export_bundle(Objects(self.store), self.digest, path)

    def remove(self) -> None:
        """Keep it no more: its label, and what nothing else needs, go. RefConflict if a label was moved meanwhile."""
        remove_snapshot(Objects(self.store), self.digest)

    @property
    def ref(self) -> str:
        """ "sha256:..." """
        return ref_of(self.digest)

    @property
    def label(self) -> str | None:
        return self.record.label or None

    @property
    def parent(self) -> str | None:
        """The ref of the snapshot that its sandbox went on from. That one may have been removed."""
        return ref_of(self.record.parent) if self.record.parent else None

    @property
    def created(self) -> float:
        """Seconds since 1970."""
        return self.record.created / 1e9

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return self.record.size

    @property
    def tree(self) -> str:
        """The digest of its root directory: equal for equal files."""
        return ref_of(self.record.trees[0].digest)

    @property
    def cwd(self) -> str:
        """The working directory of its commands."""
        return fsdecode(self.record.cwd)

    @property
    def limits(self) -> Limits:
        """SnapshotError if this version has no such limits."""
        try:
            return Limits(**dict(self.record.limits))  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot's limits make no sense: {printable(str(error))}") from None

    @property
    def lost(self) -> tuple[str, ...]:
        """What could not be kept, in words."""
        return tuple(self.record.lost)

    @cached_property
    def files(self) -> SnapshotFiles:
        """Its files, to be read."""
        return SnapshotFiles(self.store, self.record)

    def diff(self, other: Snapshot | str) -> Differences:
        """What is different in `other`, by path."""
        if isinstance(other, str):
            other = Snapshot.find(other, self.store)
        if not isinstance(other, Snapshot):
            raise TypeError(f"a snapshot is compared with a Snapshot, not with {type(other).__name__}")
        trees = [{tree.path: tree.digest for tree in each.record.trees} for each in (self, other)]
        found: Differences = []
        for top in sorted(trees[0].keys() | trees[1].keys()):
            differences = diff_trees(Objects(self.store), trees[0].get(top), Objects(other.store), trees[1].get(top))
            for path, before, after in differences:
                found += _changes((b"" if top == b"/" else top) + path, before, after)
        return sorted(found, key=lambda change: change.path.split("/"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        label = f" {self.label!r}" if self.label else ""
        return f"<Snapshot{label} {self.ref[:19]}>"


def _changes(path: bytes, before: StoredEntry | None, after: StoredEntry | None) -> Iterator[Change]:
    name = fsdecode(path)
    old, new = _entry(name, before), _entry(name, after)
    kind: ChangeKind
    if new is None:
        # A name that is deleted in the upper layer of an overlay is there below.
        if old is not None or (after is not None and before is None):
            yield Change(name, "deleted", old, None)
        return
    if old is None:
        kind = "added"
    elif before is not None and after is not None and _contents(before) == _contents(after):
        kind = "attributes"
    else:
        kind = "modified"
    yield Change(name, kind, old, new)


def _contents(entry: StoredEntry) -> tuple[object, ...]:
    if entry.kind in (Kind.DIRECTORY, Kind.MERGED):
        return (Kind.DIRECTORY,)
    return entry.kind, entry.size, entry.target, entry.parts


def _entry(path: str, entry: StoredEntry | None) -> Entry | None:
    if entry is None or entry.kind is Kind.WHITEOUT:
        return None
    mode = _TYPES.get(entry.kind, S_IFDIR) | entry.mode
    size = len(entry.target) or entry.size
    return Entry.from_fields(fsdecode(entry.name), path, mode, size, entry.mtime_ns, entry.uid, entry.gid)
