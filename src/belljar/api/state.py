"""Snapshots of a live sandbox, and sandboxes that go on from one: what both fronts do, without saying how to wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct, structs, to_builtins

from belljar.abi.capture import PIECE_BYTES, Begun, CapturedTree, Record
from belljar.abi.container_state import CONTAINERS_MAX
from belljar.abi.errors import SnapshotError
from belljar.abi.flags import NAME_MAX, PATH_MAX, S_IFMT, S_IFREG
from belljar.abi.limits import Limits
from belljar.abi.native import SYSTEM
from belljar.abi.paths import fsdecode, fsencode, normalise
from belljar.api.captured_tree import TreeTable, nonsense
from belljar.api.errors import FileError, SandboxError, printable
from belljar.api.lower import Lower
from belljar.api.mounts import Mount
from belljar.api.offers import Offers
from belljar.api.operations import Steps, Work, ask, check_answer
from belljar.api.saved import Language
from belljar.api.settings import Settings
from belljar.kernel.fs.remote_export import complete
from belljar.kernel.loader import program_file
from belljar.kernel.vfs.server import FileServer
from belljar.store.errors import StoreError
from belljar.store.layered import Layered
from belljar.store.objects import PIECE, Digest, content_of, digest_of, pieces_of
from belljar.store.reader_host import Reader
from belljar.store.snapshot import (
    ContainerRecord,
    SnapshotRecord,
    Tree,
    Variables,
    encode_snapshot,
    find_snapshot,
    read_snapshot,
    ref_of,
    save_snapshot,
)
from belljar.store.store import Objects, Store
from belljar.store.stored_tree import LISTINGS, StoredTree
from belljar.store.tree import Kind, decode_directory, encode_directory, links_of

_BATCH_BYTES: Final = 16 << 20
_PIECES_MAX: Final = 1 << 20
"""Pieces of all files of one capture, those that are all zeros too: 4 TiB."""
_SLACK: Final = 10_000
_CONTAINER_FILES: Final = 1000
"""Files of the built-in image that a container may have beside those that its sandbox's limit counts."""
_PIECE_COST: Final = 16 << 10
"""Bytes that a piece that was asked for counts at least: empty ones do not come for ever."""
_PADDING_MAX: Final = 16 << 30
"""Zeros in pieces that are not all hole: a byte here and there would cost as much to hash as all between."""
_LOST_MAX: Final = 200
_AT_ONCE: Final = 16
"""Objects that are copied together: 64 MB, if they are pieces."""
_EMPTY: Final = digest_of(encode_directory([]))
_SHM: Final = b"/dev/shm"
TreeKind = Literal["root", "memory", "overlay"]


NATIVE: Final = b"native"
HOST: Final = b"native host"
"""What the record of a snapshot says of a native sandbox; of one whose programs are the machine's own."""


MACHINE: Final = "microvm"
"""What it begins with for a machine: numbers of processors and mebibytes, and the built-in system follow."""


def tier_of(record: SnapshotRecord) -> str:
    """The tier of the sandbox that a snapshot is of."""
    if record.config in (NATIVE, HOST):
        return "native"
    return "microvm" if record.config.startswith(MACHINE.encode()) else "virtual"


class Origin(Struct, frozen=True):
    """The snapshot that a sandbox goes on from."""

    objects: Objects
    digest: Digest
    record: SnapshotRecord

    @classmethod
    def find(cls, store: Store, text: str) -> Origin:
        """SnapshotError; StoreError."""
        objects = Objects(store)
        digest = find_snapshot(store, text)
        return cls(objects, digest, read_snapshot(objects, digest))

    def options(self) -> dict[str, Any]:
        """The arguments of a sandbox like the one that it is of."""
        record = self.record
        try:
            limits = Limits(**dict(record.limits))  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot's limits make no sense: {printable(str(error))}") from None
        env = {fsdecode(name): fsdecode(value) for name, value in record.env}
        found = {"env": env, "cwd": fsdecode(record.cwd), "user": record.user, "hostname": record.hostname}
        options: dict[str, Any] = {"limits": limits, **{name: value for name, value in found.items() if value}}
        try:
            Settings.check(options)  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot's settings make no sense: {printable(str(error))}") from None
        return options


class Captured(NamedTuple):
    """A sandbox's files at one moment."""

    trees: list[Tree]
    begun: Begun
    new: list[bytes]
    """Objects that are not in the store yet."""
    growth: int
    """Bytes of all files, less those of the trees below."""
    tables: dict[int, TreeTable]
    config: bytes = b""
    """What else the snapshot is to say of its sandbox."""
    containers: list[ContainerRecord] = []  # noqa: RUF012 - never changed


class State:
    """What an owner knows of its sandbox's last snapshot: the next one costs what has changed since."""

    def __init__(self, origin: Origin | None = None) -> None:
        self.origin = origin
        self.parent: Digest = b"" if origin is None else origin.digest
        self.checkpoints: frozenset[Digest | None] = frozenset({None})
        """The checkpoints of this owner's that the sandbox's name may stand for; None: it is not kept yet."""
        self.last: Point | None = None
        self._tables: dict[int, TreeTable] = {}
        self._mark = 0
        self._store: Store | None = None
        """The store that has everything in the tables; None while a snapshot is made, and if that was not done."""
        self.exports: dict[int, Tree] = {}
        """Trees of the origin, by the number that the sandbox asks for each by."""
        self.read: Callable[[Objects], Steps[Captured]] | None = None
        """Reads the files of a sandbox that does not capture them itself."""

    def branch(self) -> State:
        """For a fork of the sandbox, which has the same trees below."""
        branch = State(self.origin)
        branch.parent, branch.exports = self.parent, dict(self.exports)
        return branch

    def prepare(self, objects: Objects) -> None:
        """Have the store keep what the next snapshot will need beside its own objects; else forget the tables."""
        store, origin = objects.backend, self.origin
        if self._store is not store or not self.parent or store.missing([self.parent]):
            self._tables, self._mark = {}, 0
        self._store = None  # until all is written: whatever ends this on the way, the tables are of no use then
        if origin is not None and store.missing([origin.digest]):
            copy_trees(origin.objects, objects, origin.record.roots)

    def capture(self, objects: Objects, offers: Offers, limits: Limits) -> Steps[Captured]:
        """The trees of the sandbox as they are now."""
        yield Work(lambda: self.prepare(objects))
        if (read := self.read) is not None:
            return (yield from read(objects))
        # Its own from here on: a capture that fails or is cancelled leaves no tables, whatever still works on them.
        tables, mark = self._tables, self._mark
        self._tables = {}
        begun = check_answer((yield from ask("", "capture", mark, list(tables))), Begun)
        if len(begun.containers) > CONTAINERS_MAX:
            raise nonsense("too many containers")
        kept = [tree for tree in begun.trees if tree.kept] + [each.files for each in begun.containers]
        intake = _Intake(objects, {tree.tree for tree in kept}, limits, _CONTAINER_FILES * len(begun.containers))
        try:
            while page := check_answer(
                (yield from ask("", "captured_records", begun.number, intake.count)), list[Record]
            ):
                large = yield Work(lambda page=page: intake.take(page))  # type: ignore[misc]
                for record, parts in large:
                    for piece in intake.wanted(record, parts):
                        answer = yield from ask("", "captured_data", begun.number, record.tree, record.id, piece)
                        data = check_answer(answer, bytes)
                        yield Work(lambda: intake.put(record, parts, piece, data))  # noqa: B023
        except (SandboxError, StoreError):
            yield from ask("", "capture_end", begun.number)
            raise
        yield from ask("", "capture_end", begun.number)
        captured: Captured = yield Work(lambda: self._update(tables, objects, offers, begun, intake))
        return captured

    def written(self, captured: Captured, point: Point) -> Point:
        """A snapshot is in its store: the next one costs what changes from now on."""
        self._tables, self._mark, self._store = captured.tables, captured.begun.time, point.objects.backend
        self.parent, self.last = point.digest, point
        return point

    def _update(
        self, before: dict[int, TreeTable], objects: Objects, offers: Offers, begun: Begun, intake: _Intake
    ) -> Captured:
        """Bring the tables up to date."""
        tables: dict[int, TreeTable] = {}
        new = intake.rest()
        self._keep_images(objects, offers, begun)
        reader, mine = Reader(objects if self.origin is None else self.origin.objects), Reader(objects)

        def update(tree: CapturedTree, *, contained: bool = False) -> Tree:
            export = offers.exported(tree.over)
            if export is None and tree.over >= 0:
                raise nonsense("an overlay of nothing")
            stored = export.server if export is not None and isinstance(export.server, StoredTree) else None
            merges = export is not None and stored is None
            if merges and (contained or tree.path == b"/"):
                raise nonsense("a root of another tree")
            below = stored.tree if contained and stored is not None else self.exports.get(tree.over)
            table = before.get(tree.tree) or _table(tree, below, merges=merges)
            tables[tree.tree] = table
            lower = None if export is None else Lower(export, offers.guard, objects)
            source = mine if contained else reader
            records = intake.records.get(tree.tree, [])
            new.extend(table.update(records, lower, lambda digest: [*source.get(LISTINGS, digest).values()]).values())
            if sum(each.count for each in tables.values()) > intake.records_max:
                raise nonsense("more files than its limit allows")
            root = table.root
            kind: TreeKind = "root" if tree.path == b"/" else "overlay" if merges else "memory"
            attributes = root.mode, root.uid, root.gid, root.mtime_ns
            return Tree(tree.path, kind, root.parts[0], *attributes, table.hard_links())

        if len({tree.path for tree in begun.trees}) < len(begun.trees):
            raise nonsense("two file systems at one path")
        trees = [update(tree) for tree in begun.trees if tree.kept]
        trees.sort(key=lambda tree: (tree.kind != "root", tree.path))
        containers = [ContainerRecord(each.state, update(each.files, contained=True)) for each in begun.containers]
        growth = sum(table.growth for table in tables.values())
        return Captured(trees, begun, new, growth, tables, containers=containers)

    def _keep_images(self, objects: Objects, offers: Offers, begun: Begun) -> None:
        """Have the store keep the trees that containers are over; those of the origin it has (`prepare`)."""
        exports = [offers.exported(each.files.over) for each in begun.containers]
        stored = [export.server for export in exports if export is not None and isinstance(export.server, StoredTree)]
        known = set() if self.origin is None else set(self.origin.record.roots)
        images = {server.tree.digest: server.objects for server in stored if server.tree.digest not in known}
        for digest in objects.backend.missing(list(images)) if images else ():
            copy_trees(images[digest], objects, [digest])


def _table(tree: CapturedTree, below: Tree | None, *, merges: bool) -> TreeTable:
    if below is None:
        return TreeTable(tree.root, b"", {}, merges=merges)
    return TreeTable(tree.root, below.digest, dict(below.hard_links), merges=merges)


class _Intake:
    """Records of a capture on their way to the store."""

    def __init__(self, objects: Objects, trees: set[int], limits: Limits, more_files: int = 0) -> None:
        self._objects = objects
        self._trees = trees
        self.records_max = 2 * limits.files + more_files + _SLACK
        self._pages = self.records_max // 1000 + (limits.file_bytes >> 20) + 100
        """Pages of records: an honest one has some 4 MB, or thousands of files."""
        self._padding = _PADDING_MAX
        self._room = limits.file_bytes + _BATCH_BYTES
        self._pieces = _PIECES_MAX
        self.count = 0
        self._names = 0
        self.records: dict[int, list[tuple[Record, list[Digest]]]] = {}
        self._waiting: list[tuple[list[Digest], int, bytes]] = []
        self._size = 0

    def take(self, page: list[Record]) -> list[tuple[Record, list[Digest]]]:
        """Take a page; gives the records whose contents are still to be asked for, with their pieces so far."""
        large: list[tuple[Record, list[Digest]]] = []
        self.count += len(page)
        self._names += sum(len(record.names) for record in page)
        self._pages -= 1
        if max(self.count, self._names) > self.records_max or self._pages < 0:
            raise nonsense("more files than its limit allows")
        for record in page:
            if record.tree not in self._trees:
                raise nonsense("a file of no tree")
            if len(record.target) > PATH_MAX or max(map(len, record.names), default=0) > NAME_MAX:
                raise nonsense("a name that is too long")
            parts: list[Digest] = []
            kept = structs.replace(record, data=None, pieces=[])  # contents are not kept in memory
            self.records.setdefault(record.tree, []).append((kept, parts))
            if record.mode & S_IFMT != S_IFREG or not record.contents:
                continue
            count = -(-record.size // PIECE_BYTES)
            self._pieces -= count
            if record.size < 0 or self._pieces < 0:
                raise SnapshotError(f"no snapshot was made: the files are too large, one has {record.size} bytes")
            parts += [b""] * count
            if record.data is None:
                large.append((record, parts))
            elif len(record.data) != record.size or count > 1:
                raise nonsense("contents of another size")
            elif count:
                self.put(record, parts, 0, record.data)
        return large

    def wanted(self, record: Record, parts: list[Digest]) -> Iterator[int]:
        """The pieces of a large file that have contents."""
        if len(record.pieces) % 2:
            raise nonsense("pieces that are no ranges")
        end = 0
        for first, count in zip(record.pieces[::2], record.pieces[1::2], strict=True):
            if not end <= first < first + count:
                raise nonsense("pieces out of order")
            end = first + count
            yield from range(first, min(end, len(parts)))

    def put(self, record: Record, parts: list[Digest], piece: int, data: bytes) -> None:
        """Keep a piece; one of zeros is none."""
        size = min(PIECE_BYTES, record.size - piece * PIECE_BYTES)
        self._room -= len(data) if record.data is not None else max(len(data), _PIECE_COST)
        if len(data) > size or self._room < 0:
            raise nonsense("more contents than there can be")
        if data.count(0) == len(data):
            return
        self._padding -= size - len(data)
        if self._padding < 0:
            raise SnapshotError("no snapshot was made: the sparse files have contents in too many places")
        self._waiting.append((parts, piece, PIECE + data.ljust(size, b"\0")))
        self._size += size
        if self._size >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what there is already."""
        self._objects.write(self.rest())

    def rest(self) -> list[bytes]:
        """Take the pieces that were not written yet; their files know them from now on."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        for parts, piece, data in waiting:
            parts[piece] = digest_of(data)
        return [data for _, _, data in waiting]


def copy_trees(source: Objects, target: Objects, digests: list[Digest]) -> None:
    """Write the objects of trees again, to another store, or because nothing else keeps them where they are."""
    roots = dict.fromkeys(digests)
    waiting, seen = list(roots), set(roots)
    last: list[bytes] = []
    while waiting:
        some, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
        found = source.read(some)
        for data in found:
            new = links_of(data) - seen
            seen |= new
            waiting += new
        pairs = list(zip(some, found, strict=True))
        last += [data for digest, data in pairs if digest in roots]
        target.write(data for digest, data in pairs if digest not in roots)
    target.write(last)  # a store that has a root has everything below it


class Point(Struct, frozen=True):
    """A snapshot that was made."""

    objects: Objects
    digest: Digest
    record: SnapshotRecord

    @property
    def ref(self) -> str:
        return ref_of(self.digest)

    def is_same(self, later: SnapshotRecord) -> bool:
        """Whether nothing has changed in another snapshot of the same sandbox."""
        mine = self.record
        fields = ("trees", "containers", "variables", "lost", "tools", "checkpoint")
        return all(getattr(mine, field) == getattr(later, field) for field in fields)

    def start(self) -> State:
        """The state of a sandbox that goes on from it."""
        return State(Origin(self.objects, self.digest, self.record))


def take(
    state: State,
    settings: Settings,
    offers: Offers,
    store: Store,
    label: str = "",
    variables: Mapping[Language, bytes] | None = None,
    lost: list[str] | None = None,
    *,
    keep: bool = True,
) -> Steps[Point]:
    """Make a snapshot. SnapshotError, and then there is none. Unless it is to be kept, only its objects are written."""
    objects = Objects(store)
    try:
        captured = yield from state.capture(objects, offers, settings.limits)
        trees, begun, new, growth, _, config, containers = captured
        needed = {tree.path for tree in begun.trees if not tree.kept}
        needed |= {tree.path for tree in trees if tree.kind == "overlay"}
        told = [printable(text.decode("utf-8", "replace")) for text in begun.lost] + (lost or [])
        saved = [(language, list(pieces_of(data))) for language, data in sorted((variables or {}).items())]
        record = SnapshotRecord(
            created=int(settings.clock.time() * 1e9),
            label=label,
            parent=state.parent,
            trees=trees,
            env=sorted((fsencode(name), fsencode(value)) for name, value in settings.env.items()),
            cwd=fsencode(settings.cwd),
            user=settings.user,
            hostname=settings.hostname,
            limits=sorted(asdict(settings.limits).items()),
            variables=[Variables(language, [digest_of(piece) for piece in pieces]) for language, pieces in saved],
            lost=told[:_LOST_MAX],
            size=max(0, growth + (0 if state.origin is None else state.origin.record.size)),
            mounts=sorted(needed),
            tools=sorted(tool.name for tool in settings.tools),
            checkpoint=settings.checkpoint,
            config=config,
            containers=containers,
        )
        if not keep and (last := state.last) is not None and last.objects.backend is store and last.is_same(record):
            return state.written(captured, last)
        new += [encode_snapshot(record), *(piece for _, pieces in saved for piece in pieces)]
        digest = yield Work(lambda: _write(objects, new, record, keep=keep))
    except StoreError as error:
        raise SnapshotError(f"no snapshot was made: {error}") from error
    return state.written(captured, Point(objects, digest, record))


def _write(objects: Objects, new: list[bytes], record: SnapshotRecord, *, keep: bool) -> Digest:
    """Write everything at once, the record too; then the refs."""
    objects.write(new)
    return save_snapshot(objects, record) if keep else digest_of(encode_snapshot(record))


# Going on from a snapshot.


def restore_trees(origin: Origin, state: State, settings: Settings, offers: Offers) -> Steps[Settings]:
    """Make a fresh sandbox's files those of a snapshot: they are read when they are needed.

    Gives the settings, with mounts that have the snapshot's changes.
    """
    given = check_mounts(origin, settings)
    trees = origin.record.trees  # the root first
    if tier_of(origin.record) != "virtual":
        trees = yield Work(lambda: _own_trees(origin))
    for tree in trees:
        path = fsdecode(tree.path)
        if tree.kind == "overlay":
            given[path] = _with_changes(given[path], path, origin, tree, state, offers)
        if path in given or (tree.path == _SHM and tree.digest == _EMPTY):
            continue
        number = offers.export(StoredTree(origin.objects, tree, offers.store_failed), True)
        state.exports[number] = tree
        recipe = [b"overlay", [b"stored", number], None]
        if tree.kind == "root":
            yield from ask(path, "root", recipe, origin.record.user.encode())
            yield from _remove_tools(set(origin.record.tools) - {tool.name for tool in settings.tools})
        else:
            yield from ask(path, "mount", tree.path, recipe, False)
    yield from _restore_containers(origin, offers)
    return structs.replace(settings, mounts=tuple(given.items()))


def _restore_containers(origin: Origin, offers: Offers) -> Steps[None]:
    """Have the snapshot's containers, none of which runs. SnapshotError."""
    containers = origin.record.containers

    def check() -> None:
        try:
            for data in origin.objects.read([each.files.digest for each in containers]):
                decode_directory(data)
        except StoreError as error:
            raise SnapshotError(f"the files of the snapshot's containers can't be read: {error}") from error

    if containers:
        yield Work(check)
    for each in containers:
        number = offers.export(StoredTree(origin.objects, each.files, offers.store_failed), True)
        state = to_builtins(each.state, builtin_types=(bytes,))
        yield from ask(each.state.name, "container", state, [b"stored", number])


def tell_dropped(origin: Origin, tier: str, observe: Callable[[str, dict[str, Any]], None] | None) -> None:
    """Tell the owner, by an event and in the log, which containers of a snapshot a sandbox of this tier has not."""
    import logging  # only now: most programs never need it

    names = [each.state.name for each in origin.record.containers]
    if observe is not None:
        observe("dropped", {"containers": names})
    logging.getLogger("belljar").warning(
        "a sandbox of the %s tier has no containers: those of its snapshot, and their files, are left out: %s",
        tier,
        ", ".join(names),
    )


def _own_trees(origin: Origin) -> list[Tree]:
    """The directories of a native sandbox's root that are not its image's, each as a tree of its own: those that are
    have programs that this tier does not run.
    """
    root, *others = origin.record.trees
    try:
        [data] = origin.objects.read([root.digest])
    except StoreError as error:
        raise SnapshotError(f"the snapshot's files can't be read: {error}") from error
    own = [each for each in decode_directory(data) if each.kind is Kind.DIRECTORY and each.parts[0] != _EMPTY]
    return [
        Tree(b"/" + each.name, "memory", each.parts[0], each.mode, each.uid, each.gid, each.mtime_ns, root.hard_links)
        for each in own
        if fsdecode(each.name) not in SYSTEM
    ] + others


def check_mounts(origin: Origin, settings: Settings) -> dict[str, Mount]:
    """The mounts that were given. SnapshotError if one is missing that the snapshot needs."""
    given: dict[str, Mount] = {normalise(path): mount for path, mount in settings.mounts}
    missing = [fsdecode(path) for path in origin.record.mounts if fsdecode(path) not in given]
    if missing:
        names = ", ".join(map(repr, missing))
        raise SnapshotError(
            f"the snapshot needs trees of yours that are not in it: give them by mounts={{...}} (--mount): {names}"
        )
    return given


def _remove_tools(names: set[str]) -> Steps[None]:
    """Remove the commands of tools that the sandbox has no more, as far as they are still those."""
    for name in sorted(names):
        path = f"/usr/local/bin/{name}"
        wanted = program_file(name)
        try:
            answer = yield from ask(path, "read", fsencode(path), 0, len(wanted) + 1)
            if check_answer(answer, tuple[bytes, bool]) == (wanted, True):
                yield from ask(path, "remove", fsencode(path), False)
        except FileError:
            continue  # the sandbox has removed it, or made something else of it


def _with_changes(mount: Mount, path: str, origin: Origin, tree: Tree, state: State, offers: Offers) -> Mount:
    """The same mount with the changes that a snapshot has of it."""

    def build(_export: object) -> list[Any]:
        def export(server: FileServer, ours: bool) -> int:
            upper = StoredTree(origin.objects, tree, offers.store_failed)
            number = offers.export(Layered(upper, complete(server)), ours)
            state.exports[number] = tree
            return number

        match mount.build(export):
            case [b"overlay", [b"remote", int(number)], None]:
                return [b"overlay", [b"remote", number], None]
        raise SnapshotError(
            f"the snapshot has changes that were made over {path!r}: mount it by Mount.overlay(...), as it was"
        )

    return structs.replace(mount, build=build, files=())


def read_variables(origin: Origin) -> dict[Language, bytes]:
    """The sealed variables of each language. SnapshotError."""
    try:
        return {each.language: content_of(origin.objects.read(each.pieces)) for each in origin.record.variables}
    except StoreError as error:
        raise SnapshotError(f"the snapshot's variables can't be read: {error}") from error
