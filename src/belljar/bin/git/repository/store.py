"""Git's objects in the guest's files: loose ones written and read, packs read, in git's own on-disk format."""

from __future__ import annotations

import zlib
from io import BytesIO

from dulwich.errors import FileFormatException
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import Blob, Commit, ObjectID, RawObjectID, ShaFile, Tag, Tree
from dulwich.pack import Pack, PackData, PackInflater, UnresolvedDeltas, load_pack_index_file, write_pack_index

from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin.git.repository.errors import GitError, MissingObject
from belljar.kernel.process import Process

FILE_MODE = 0o100644
EXECUTABLE = 0o100755
LINK = 0o120000
DIRECTORY = 0o040000
SUBMODULE = 0o160000
EMPTY_TREE = b"4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Every repository has it, be it stored or not."""
_COMMIT_PARTS = ("tree", "author", "author_time", "author_timezone", "commit_time", "commit_timezone", "message")
UNPACK_LIMIT = 100
"""Fewer objects than this are not kept as a pack."""

Flat = dict[str, tuple[int, bytes]]
"""A tree with its subtrees: path to mode and object."""


class ShallowCommit(Commit):
    """A commit whose parents were left behind by `clone --depth`; its name is what it was."""

    __slots__ = ()

    parents = property(lambda self: [])


class Store:
    """Objects by their names (40 hexadecimal digits, as bytes)."""

    def __init__(self, process: Process, directory: str) -> None:
        self._process = process
        self.directory = directory
        self._cache: dict[bytes, ShaFile] = {}
        self._packs: list[Pack] | None = None
        self._shallow: set[bytes] | None = None

    @property
    def shallow(self) -> set[bytes]:
        """The commits where history was cut off."""
        if self._shallow is None:
            text = self._process.try_read(self._shallow_path) or b""
            self._shallow = {line for line in text.split() if len(line) == 40}
        return self._shallow

    @property
    def _shallow_path(self) -> str:
        return self.directory.rpartition("/")[0] + "/shallow"

    def change_shallow(self, added: set[bytes], removed: set[bytes]) -> None:
        after = (self.shallow | added) - removed
        if after == self.shallow:
            return
        self._shallow = after
        self._cache.clear()
        if after:
            self._process.write_file(self._shallow_path, b"".join(sha + b"\n" for sha in sorted(after)))
        else:
            self._process.fs.unlink(self._shallow_path)

    def _path(self, sha: bytes) -> str:
        text = sha.decode("ascii")
        return f"{self.directory}/{text[:2]}/{text[2:]}"

    def get(self, sha: bytes) -> ShaFile:
        """Raises KeyError."""
        known = self._cache.get(sha)
        if known is not None:
            return known
        self._process.budget.charge(4)
        try:
            found = self._loose(sha)
            if found is None:
                found = self._packed(sha)
        except (FileFormatException, ValueError, AssertionError) as error:
            raise GitError(f"object {sha.decode('ascii', 'replace')} is corrupt: {error}") from None
        if found is None:
            if sha != EMPTY_TREE:
                raise MissingObject(sha)
            found = Tree()
        if isinstance(found, Commit):
            if None in [getattr(found, part) for part in _COMMIT_PARTS]:
                raise GitError(f"object {sha.decode()} is corrupt: a line of the commit is not there")
            if sha in self.shallow:
                found.__class__ = ShallowCommit
        if len(self._cache) > 4096:
            self._cache.clear()
        self._cache[sha] = found
        return found

    def _loose(self, sha: bytes) -> ShaFile | None:
        if (data := self._process.try_read(self._path(sha))) is None:
            return None
        machine = zlib.decompressobj()
        parts: list[bytes] = []
        size = 0
        try:
            while data and not machine.eof:
                part = machine.decompress(data, 1 << 18)
                data = machine.unconsumed_tail
                size += len(part)
                self._process.budget.charge_size(size)
                parts.append(part)
        except zlib.error:
            raise GitError(f"loose object {sha.decode()} is corrupt") from None
        head, _, body = b"".join(parts).partition(b"\0")
        kind = head.partition(b" ")[0]
        classes = {b"blob": Blob, b"tree": Tree, b"commit": Commit, b"tag": Tag}
        if kind not in classes:
            raise GitError(f"loose object {sha.decode()} is corrupt")
        return ShaFile.from_raw_string(classes[kind].type_num, body, ObjectID(sha))

    def _packed(self, sha: bytes) -> ShaFile | None:
        for pack in self.packs():
            try:
                number, data = pack.get_raw(ObjectID(sha))
            except KeyError:
                continue
            return ShaFile.from_raw_string(number, data, ObjectID(sha))
        return None

    def packs(self) -> list[Pack]:
        if self._packs is None:
            self._packs = []
            folder = f"{self.directory}/pack"
            try:
                names = [entry.name for entry in self._process.fs.readdir(folder)]
            except SysError:
                names = []
            for name in names:
                if name.endswith(".idx") and name[:-4] + ".pack" in names:
                    index = self._process.read_file(f"{folder}/{name}")
                    data = self._process.read_file(f"{folder}/{name[:-4]}.pack")
                    loaded = load_pack_index_file("", BytesIO(index), DEFAULT_OBJECT_FORMAT)
                    packed = PackData.from_file(BytesIO(data), DEFAULT_OBJECT_FORMAT, size=len(data))
                    self._packs.append(Pack.from_objects(packed, loaded))
        return self._packs

    def close(self) -> None:
        for pack in self._packs or ():
            pack.close()
        self._packs = None

    def __contains__(self, sha: bytes) -> bool:
        try:
            self.get(sha)
        except KeyError:
            return False
        return True

    def add(self, item: ShaFile) -> bytes:
        """Write an object unless it is there; its name."""
        sha = bytes(item.id)
        path = self._path(sha)
        fs = self._process.fs
        if not fs.exists(path):
            fs.makedirs(path.rpartition("/")[0])
            raw = item.as_raw_string()
            head = f"{item.type_name.decode()} {len(raw)}\0".encode()
            self._process.write_file(path, zlib.compress(head + raw, 1), 0o444)
        self._cache[sha] = item
        return sha

    def add_pack(self, data: bytes) -> None:
        """Store a received pack: a few objects become loose files, many stay a pack, with an index beside it.

        Raises what dulwich raises for a pack that is damaged.
        """
        pack = PackData.from_file(BytesIO(data), DEFAULT_OBJECT_FORMAT, size=len(data))
        try:
            pack.check()
            entries = self._entries(pack)
            if entries is None:
                for item in PackInflater.for_pack_data(pack, lambda sha: self._raw(bytes(sha))):
                    self._process.budget.charge(4)
                    self.add(item)
                return
            index = BytesIO()
            write_pack_index(index, entries, pack.get_stored_checksum(), version=2)
            name = f"{self.directory}/pack/pack-{pack.get_stored_checksum().hex()}"
            self._process.write_file(f"{name}.pack", data, 0o444)
            self._process.write_file(f"{name}.idx", index.getvalue(), 0o444)
        finally:
            pack.close()
        self.close()

    def _entries(self, pack: PackData) -> list[tuple[RawObjectID, int, int]] | None:
        """Return the index entries of a pack; None for a small one, or one with deltas against objects outside it."""
        if len(pack) < UNPACK_LIMIT:
            return None
        self._process.budget.charge(len(pack) * 4)
        try:
            return pack.sorted_entries()
        except UnresolvedDeltas:
            return None

    def _raw(self, sha: bytes) -> tuple[int, list[bytes]]:
        item = self.get(sha.hex().encode() if len(sha) == 20 else sha)
        return item.type_num, item.as_raw_chunks()

    def blob(self, sha: bytes) -> bytes:
        item = self.get(sha)
        if not isinstance(item, Blob):
            raise GitError(f"{sha.decode()} is not a blob")
        return bytes(item.data)

    def commit(self, sha: bytes) -> Commit:
        item = self.get(sha)
        while isinstance(item, Tag):
            self._process.budget.charge()
            item = self.get(item.object[1])
        if not isinstance(item, Commit):
            raise GitError(f"{sha.decode()} is not a commit")
        return item

    def tree(self, sha: bytes) -> Tree:
        item = self.get(sha)
        if not isinstance(item, Tree):
            raise GitError(f"{sha.decode()} is not a tree")
        return item

    def flatten(self, tree: bytes, prefix: str = "") -> Flat:
        """Every file of a tree by its path."""
        found: Flat = {}
        stack = [(tree, prefix)]
        while stack:
            sha, base = stack.pop()
            for entry in self.tree(sha).iteritems():
                assert entry.sha is not None
                self._process.budget.charge()
                path = base + entry.path.decode("utf-8", "surrogateescape")
                if entry.mode == DIRECTORY:
                    stack.append((entry.sha, path + "/"))
                else:
                    found[path] = (entry.mode, bytes(entry.sha))
            self._process.budget.charge_size(len(found) * 100)
        return dict(sorted(found.items(), key=lambda item: fsencode(item[0])))

    def unflatten(self, files: Flat) -> bytes:
        """Write the trees of a flat listing; the root's name."""
        folders: dict[str, Tree] = {"": Tree()}
        for path, (mode, sha) in files.items():
            folder, _, name = path.rpartition("/")
            _tree(folders, folder).add(fsencode(name), mode, ObjectID(sha))
        for folder in sorted(folders, key=lambda text: -text.count("/") if text else 1):
            if not folder:
                continue
            sha = self.add(folders[folder])
            above, _, name = folder.rpartition("/")
            folders[above].add(fsencode(name), DIRECTORY, ObjectID(sha))
        return self.add(folders[""])


def _tree(folders: dict[str, Tree], path: str) -> Tree:
    if path not in folders:
        folders[path] = Tree()
        _tree(folders, path.rpartition("/")[0])
    return folders[path]
