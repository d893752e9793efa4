"""Snapshots of native sandboxes: their writable layer over the tree of their image is one tree, as of any sandbox."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from belljar.abi.capture import Begun, CapturedTree
from belljar.abi.errors import ImageError, SnapshotError
from belljar.abi.native import SYSTEM
from belljar.abi.paths import fsdecode, fsencode
from belljar.api.image import Image, root_source
from belljar.api.native import NativeStart
from belljar.api.operations import Steps, Work, ask
from belljar.api.settings import Settings
from belljar.api.state import HOST, NATIVE, Captured, Origin, copy_trees, tier_of
from belljar.image.tree import FileTree, split_path
from belljar.native.host_image_host import host_source
from belljar.native.launch_host import NativeWorker
from belljar.native.roots import Bind, RootSource
from belljar.native.upper_host import read_upper, stopped
from belljar.store.errors import StoreError
from belljar.store.joined_host import JoinedStore
from belljar.store.objects import Digest
from belljar.store.snapshot import SnapshotRecord, ref_of
from belljar.store.store import Objects


def capture_with(settings: Settings, worker: NativeWorker, known: int) -> Callable[[Objects], Steps[Captured]]:
    """As `reader_of`, as an operation."""
    read_now = reader_of(settings, worker, known)

    def read(objects: Objects) -> Steps[Captured]:
        yield from ask("", "stats")  # it lives
        captured: Captured = yield Work(lambda: read_now(objects))
        return captured

    return read


def reader_of(settings: Settings, worker: NativeWorker, known: int) -> Callable[[Objects], Captured]:
    """A function that reads the files of a sandbox, whose programs are stopped meanwhile. `known`: bytes before."""
    start = settings.native
    assert start is not None
    source = start.source

    def read(objects: Objects) -> Captured:
        if source.directory:
            raise SnapshotError("no snapshot was made: Image.directory() is not kept; build the image (.build()) first")
        base = source.record.trees[0]
        if source.objects.backend is not objects.backend and objects.backend.missing([base.digest]):
            copy_trees(source.objects, objects, [base.digest])
        tree = FileTree.load(source.objects, base)
        try:
            with stopped(worker.guests):
                lost = read_upper(worker.upper, tree, objects, worker.ids, (worker.account.uid, worker.account.gid))
        except (ImageError, OSError) as error:
            raise SnapshotError(f"no snapshot was made: {error}") from error
        stored, directories = tree.save()
        mounts = [CapturedTree(fsencode(path), 2 + at, 0, kept=False) for at, (path, _) in enumerate(settings.mounts)]
        begun = Begun(0, int(settings.clock.time() * 1e9), [CapturedTree(b"/", 1, 1), *mounts], lost)
        return Captured([stored], begun, directories, tree.size - known, {}, HOST if source.binds else NATIVE)

    return read


def start_from(origin: Origin, user: str, image: Image | str | None) -> NativeStart:
    """How to start a sandbox from a snapshot. One of another tier has files, and its programs are an image's, or else
    this machine's own. ImageError, SnapshotError.
    """
    if tier_of(origin.record) != "native":
        source = root_source(image, origin.objects.backend)
        try:
            return NativeStart(_with_files(source, origin), user, source.digest or "image")
        except StoreError as error:
            raise SnapshotError(f"the snapshot's files can't be read: {error}") from error
    if image is not None:
        raise TypeError("image= is for snapshots of other tiers: this one has the files of its image")
    host = host_source() if origin.record.config == HOST else None
    source = _source(origin.objects, origin.digest, origin.record, () if host is None else host.binds)
    return NativeStart(source, user, source.digest if host is None else host.digest)


def _with_files(source: RootSource, origin: Origin) -> RootSource:
    """The root of an image, with the directories of a snapshot that no image has."""
    tree = FileTree.load(source.objects, source.record.trees[0])
    for each in origin.record.trees:  # the root first
        if each.kind == "overlay":
            raise SnapshotError(
                f"the snapshot has changes that were made over {fsdecode(each.path)!r}, a tree of yours: "
                "only the virtual tier can go on with them"
            )
        top = each.path.split(b"/")[1]
        if fsdecode(top) in SYSTEM:
            continue
        found = FileTree.load(origin.objects, each, changes=each.kind == "root").root
        if each.kind == "root":
            tree.root.names |= {name: node for name, node in found.names.items() if fsdecode(name) not in SYSTEM}
        else:
            *way, name = split_path(each.path[1:])
            above = tree.way(way, make=found)
            assert above is not None
            above[-1][1].names[name] = found
    objects = Objects(JoinedStore(source.objects.backend, origin.objects.backend))
    stored, directories = tree.save()
    objects.write(directories)
    record = structs.replace(source.record, trees=[stored], size=tree.size)
    return structs.replace(source, objects=objects, record=record, digest="", kept=True)


def branch_from(settings: Settings, objects: Objects, digest: Digest, record: SnapshotRecord) -> Settings:
    """The settings of a branch, which begins with the files of a snapshot."""
    assert settings.native is not None
    source = _source(objects, digest, record, settings.native.source.binds)
    return structs.replace(settings, native=structs.replace(settings.native, source=source))


def _source(objects: Objects, digest: Digest, record: SnapshotRecord, binds: tuple[Bind, ...]) -> RootSource:
    image = SnapshotRecord(created=0, trees=record.trees[:1], cwd=record.cwd, user=record.user, size=record.size)
    return RootSource(objects, image, "", binds, ref_of(digest), kept=True)
