"""Snapshots of machines. Over a built-in system they have the changes of its directories, and all others whole; of an
image one tree, as of any sandbox. A machine that goes on from one has the files laid out after its start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import structs

from belljar.abi.capture import Begun, CapturedTree
from belljar.abi.errors import SnapshotError
from belljar.abi.native import SYSTEM
from belljar.abi.paths import fsdecode, fsencode
from belljar.api.microvm import machine_settings
from belljar.api.operations import Steps, Work, ask, check_answer
from belljar.api.rootfs import Builtin, FromImage, Rootfs
from belljar.api.settings import SandboxOptions, Settings
from belljar.api.state import MACHINE, Captured, Origin, Point, check_mounts, copy_trees, tier_of
from belljar.image.tree import FileTree, Node, split_path
from belljar.native.roots import RootSource
from belljar.store.errors import StoreError
from belljar.store.objects import content_of
from belljar.store.snapshot import SnapshotRecord, ref_of
from belljar.store.store import Objects
from belljar.store.tree import Kind
from belljar.vm.files_host import receive_tree, send_tree
from belljar.vm.plan import RootMode

if TYPE_CHECKING:
    from belljar.vm.machine_host import MachineWorker

_ACCOUNTS: Final = ("etc/passwd", "etc/group")
_FILE_MAX: Final = 4 << 20


def capture_with(settings: Settings, worker: MachineWorker, known: int) -> Callable[[Objects], Steps[Captured]]:
    """A function that reads the files of a machine, whose programs wait meanwhile. `known`: bytes before."""
    start = settings.machine
    assert start is not None
    rootfs = start.rootfs
    bytes_max = (start.memory_mib << 20) + rootfs.disk().size

    def read(objects: Objects) -> Steps[Captured]:
        if worker.mode is not RootMode.MEMORY:
            raise SnapshotError(
                "no snapshot was made: the root is a disk, whose blocks are kept by its block store or not at all; "
                "leave rootfs= out, or give image=, for a root that snapshots keep"
            )
        system = sorted(fsencode(name) for name in SYSTEM)
        number = check_answer((yield from ask("", "send_tree", system)), int)
        found: tuple[FileTree, list[bytes]] = yield Work(
            lambda: receive_tree(worker.open_relay(number), objects, bytes_max)
        )
        tree, lost = found
        for path in worker.own_files - {f"/{name}" for name in _ACCOUNTS}:
            _drop(tree, path)
        base = ""
        if isinstance(rootfs, Builtin):
            base = rootfs.name
        elif isinstance(rootfs, FromImage):
            tree = yield Work(lambda: _over_image(rootfs.source, tree, objects))
        stored, directories = tree.save()
        mounts = [CapturedTree(fsencode(path), 2 + at, 0, kept=False) for at, (path, _) in enumerate(settings.mounts)]
        begun = Begun(0, int(settings.clock.time() * 1e9), [CapturedTree(b"/", 1, 1), *mounts], lost)
        config = f"{MACHINE} {start.cpus} {start.memory_mib} {base}".encode()
        return Captured([stored], begun, directories, tree.size - known, {}, config)

    return read


def _drop(tree: FileTree, path: str) -> None:
    """Leave a file out: every sandbox has its own."""
    *way, name = split_path(path[1:].encode())
    node: Node | None = tree.root
    for each in way:
        node = None if node is None else node.names.get(each)
    if node is not None:
        node.names.pop(name, None)


def _over_image(source: RootSource, changes: FileTree, objects: Objects) -> FileTree:
    base = source.record.trees[0]
    if source.objects.backend is not objects.backend and objects.backend.missing([base.digest]):
        copy_trees(source.objects, objects, [base.digest])
    tree = FileTree.load(source.objects, base)
    waiting = [(tree.root, changes.root)]
    while waiting:
        below, above = waiting.pop()
        for name, node in above.names.items():
            before = below.names.get(name)
            if node.kind is Kind.WHITEOUT:
                below.names.pop(name, None)
                continue
            if node.kind is Kind.MERGED:
                made = Node(Kind.DIRECTORY, node.mode, node.uid, node.gid, node.mtime_ns)
                if before is not None and before.is_directory:
                    made.names = before.names
                waiting.append((made, node))
                node = made
            below.names[name] = node
    return tree


class _Kept(FromImage):
    """The root of a snapshot that has all files."""

    def __init__(self, source: RootSource) -> None:
        self.source, self.mode, self.name = source, RootMode.MEMORY, source.digest


def settings_from(origin: Origin, options: dict[str, Any], image: Any) -> Settings:
    """Those of a machine that goes on from a snapshot of any tier. TypeError, ValueError, SnapshotError, ImageError."""
    given = {name: value for name, value in options.items() if value is not None}
    if tier_of(origin.record) == "microvm":
        if image is not None or "rootfs" in given:
            raise TypeError("image= and rootfs= are for snapshots of other tiers: this one has the files of its image")
        cpus, memory, _ = _config(origin.record)
        given = {"cpus": cpus, "memory_mib": memory, **given, "rootfs": _rootfs(origin)}
    elif image is not None:
        given["image"] = image
    checked = machine_settings(cast("SandboxOptions", given))
    check_mounts(origin, checked)
    return with_accounts(checked, origin)


def _config(record: SnapshotRecord) -> tuple[int, int, str]:
    try:
        _, cpus, memory, base = record.config.decode().split(" ", 3)
        return int(cpus), int(memory), base
    except ValueError:
        raise SnapshotError("the snapshot's machine makes no sense") from None


def _rootfs(origin: Origin) -> Rootfs:
    *_, base = _config(origin.record)
    if base:
        try:
            return Rootfs.default() if base == Rootfs.default().name else Builtin(base, RootMode.MEMORY)
        except ValueError as error:
            raise SnapshotError(f"the snapshot's machine can't be made: {error}") from None
    record = origin.record
    image = SnapshotRecord(created=0, trees=record.trees[:1], cwd=record.cwd, user=record.user, size=record.size)
    return _Kept(RootSource(origin.objects, image, digest=ref_of(origin.digest), kept=True))


def with_accounts(settings: Settings, origin: Origin) -> Settings:
    """The accounts of a snapshot's machine are those of the one that goes on. SnapshotError."""
    start = settings.machine
    assert start is not None
    if tier_of(origin.record) != "microvm" or isinstance(start.rootfs, _Kept):
        return settings
    tree = _load(origin)
    files: dict[str, tuple[str, bytes]] = {}
    for path in _ACCOUNTS:
        etc = tree.root.names.get(b"etc")
        node = None if etc is None else etc.names.get(path.partition("/")[2].encode())
        if node is not None and node.kind is Kind.FILE and node.size <= _FILE_MAX:
            files[f"/{path}"] = f"/{path}", content_of(origin.objects.read([part for part in node.parts if part]))
    return structs.replace(settings, machine=structs.replace(start, files=files))


def _load(origin: Origin) -> FileTree:
    try:
        return FileTree.load(origin.objects, origin.record.trees[0], changes=True)
    except StoreError as error:
        raise SnapshotError(f"the snapshot's files can't be read: {error}") from error


def branch_from(settings: Settings, point: Point) -> Settings:
    """The settings of a branch, which begins with the files of a snapshot."""
    origin = Origin(point.objects, point.digest, point.record)
    assert settings.machine is not None
    if isinstance(settings.machine.rootfs, FromImage):
        settings = structs.replace(settings, machine=structs.replace(settings.machine, rootfs=_rootfs(origin)))
    return with_accounts(settings, origin)


def lay_files(origin: Origin, settings: Settings, worker: MachineWorker) -> Steps[None]:
    """Give a fresh machine the files of a snapshot. SnapshotError."""
    assert settings.machine is not None
    if isinstance(settings.machine.rootfs, _Kept):
        return
    if worker.mode is RootMode.READ_ONLY:
        raise SnapshotError(
            "the snapshot's files can't be laid out in a root that is read-only: leave rootfs= out, or give "
            "Rootfs.ephemeral(...) or Rootfs.cow(...) of it"
        )
    number = check_answer((yield from ask("", "take_tree")), int)

    def send() -> None:
        tree = _load(origin)
        if tier_of(origin.record) != "microvm":
            tree = _own_files(origin, tree)
        leave = frozenset(path[1:].encode() for path in worker.own_files)
        send_tree(worker.open_relay(number), origin.objects, tree, leave)

    try:
        yield Work(send)
    except StoreError as error:
        raise SnapshotError(f"the snapshot's files can't be read: {error}") from error


def _own_files(origin: Origin, root: FileTree) -> FileTree:
    """Of another tier's snapshot, the directories that no image has."""
    tree = FileTree(Node(Kind.DIRECTORY, 0o755))
    tree.root.names = {name: node for name, node in root.root.names.items() if fsdecode(name) not in SYSTEM}
    for each in origin.record.trees[1:]:
        *way, name = split_path(each.path[1:])
        if each.kind == "overlay":
            raise SnapshotError(
                f"the snapshot has changes that were made over {fsdecode(each.path)!r}, a tree of yours: "
                "only the virtual tier can go on with them"
            )
        if fsdecode((way or [name])[0]) in SYSTEM:
            continue
        found = FileTree.load(origin.objects, each).root
        above = tree.way(way, make=found)
        assert above is not None
        above[-1][1].names[name] = found
    return tree
