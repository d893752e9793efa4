"""Snapshots of native sandboxes: their writable layer over the tree of their image is one tree, as of any sandbox."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from belljar.abi.capture import Begun, CapturedTree
from belljar.abi.errors import ImageError, SnapshotError
from belljar.abi.paths import fsencode
from belljar.api.clock_host import wall_time
from belljar.api.errors import NotOnThisTier
from belljar.api.native import NativeStart
from belljar.api.settings import Settings
from belljar.api.state import HOST, NATIVE, Captured, Origin, copy_trees, is_native
from belljar.image.tree import FileTree
from belljar.native.host_image_host import host_source
from belljar.native.launch_host import NativeWorker
from belljar.native.roots import Bind, RootSource
from belljar.native.upper_host import read_upper, stopped
from belljar.store.objects import Digest
from belljar.store.snapshot import SnapshotRecord, ref_of
from belljar.store.store import Objects


def capture_with(settings: Settings, worker: NativeWorker, known: int) -> Callable[[Objects], Captured]:
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
        begun = Begun(0, int(wall_time() * 1e9), [CapturedTree(b"/", 1, 1), *mounts], lost)
        return Captured([stored], begun, directories, tree.size - known, {}, HOST if source.binds else NATIVE)

    return read


def start_from(origin: Origin, user: str) -> NativeStart:
    """How to start a sandbox from a snapshot of a native one. NotOnThisTier for one of another tier."""
    if not is_native(origin.record):
        raise NotOnThisTier("going on from a snapshot of another tier", "native", "virtual")
    host = host_source() if origin.record.config == HOST else None
    source = _source(origin.objects, origin.digest, origin.record, () if host is None else host.binds)
    return NativeStart(source, user, source.digest if host is None else host.digest)


def branch_from(settings: Settings, objects: Objects, digest: Digest, record: SnapshotRecord) -> Settings:
    """The settings of a branch, which begins with the files of a snapshot."""
    assert settings.native is not None
    source = _source(objects, digest, record, settings.native.source.binds)
    return structs.replace(settings, native=structs.replace(settings.native, source=source))


def _source(objects: Objects, digest: Digest, record: SnapshotRecord, binds: tuple[Bind, ...]) -> RootSource:
    image = SnapshotRecord(created=0, trees=record.trees[:1], cwd=record.cwd, user=record.user, size=record.size)
    return RootSource(objects, image, "", binds, ref_of(digest))
