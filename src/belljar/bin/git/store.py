"""Git's objects in the guest's files: loose ones written and read, packs read, in git's own on-disk format."""

from __future__ import annotations

import zlib
from io import BytesIO

from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tag, Tree
from dulwich.pack import Pack, PackData, load_pack_index_file

from belljar.abi.errors import SysError
from belljar.bin.git.errors import GitError
from belljar.kernel.process import Process

FILE_MODE = 0o100644
EXECUTABLE = 0o100755
LINK = 0o120000
DIRECTORY = 0o040000
SUBMODULE = 0o160000

Flat = dict[str, tuple[int, bytes]]
"""A tree with its subtrees: path to mode and object."""


class Store:
    """Objects by their names (40 hexadecimal digits, as bytes)."""

    def __init__(self, process: Process, directory: str) -> None:
        self._process = process
        self.directory = directory
        self._cache: dict[bytes, ShaFile] = {}
        self._packs: list[Pack] | None = None

    def _path(self, sha: bytes) -> str:
        text = sha.decode("ascii")
        return f"{self.directory}/{text[:2]}/{text[2:]}"

    def get(self, sha: bytes) -> ShaFile:
        """Raises KeyError."""
        known = self._cache.get(sha)
        if known is not None:
            return known
        self._process.budget.charge(4)
        found = self._loose(sha) or self._packed(sha)
        if found is None:
            raise KeyError(sha)
        if len(self._cache) > 4096:
            self._cache.clear()
        self._cache[sha] = found
        return found

    def _loose(self, sha: bytes) -> ShaFile | None:
        try:
            data = self._process.read_file(self._path(sha))
        except SysError:
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
        for pack in self._load_packs():
            try:
                number, data = pack.get_raw(ObjectID(sha))
            except KeyError:
                continue
            return ShaFile.from_raw_string(number, data, ObjectID(sha))
        return None

    def _load_packs(self) -> list[Pack]:
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
        try:
            fs.stat(path)
        except SysError:
            folder = path.rpartition("/")[0]
            try:
                fs.stat(folder)
            except SysError:
                fs.mkdir(folder)
            raw = item.as_raw_string()
            head = f"{item.type_name.decode()} {len(raw)}\0".encode()
            self._process.write_file(path, zlib.compress(head + raw, 1), 0o444)
        self._cache[sha] = item
        return sha

    def blob(self, sha: bytes) -> bytes:
        item = self.get(sha)
        if not isinstance(item, Blob):
            raise GitError(f"{sha.decode()} is not a blob")
        return bytes(item.data)

    def commit(self, sha: bytes) -> Commit:
        item = self.get(sha)
        while isinstance(item, Tag):
            item = self.get(item.object[1])
        if not isinstance(item, Commit):
            raise GitError(f"{sha.decode()} is not a commit")
        return item

    def flatten(self, tree: bytes, prefix: str = "") -> Flat:
        """Every file of a tree by its path."""
        found: Flat = {}
        stack = [(tree, prefix)]
        while stack:
            sha, base = stack.pop()
            item = self.get(sha)
            if not isinstance(item, Tree):
                raise GitError(f"{sha.decode()} is not a tree")
            for entry in item.iteritems():
                assert entry.sha is not None
                self._process.budget.charge()
                path = base + entry.path.decode("utf-8", "surrogateescape")
                if entry.mode == DIRECTORY:
                    stack.append((entry.sha, path + "/"))
                else:
                    found[path] = (entry.mode, bytes(entry.sha))
            self._process.budget.charge_size(len(found) * 100)
        return dict(sorted(found.items(), key=lambda item: item[0].encode("utf-8", "surrogateescape")))

    def unflatten(self, files: Flat) -> bytes:
        """Write the trees of a flat listing; the root's name."""
        folders: dict[str, Tree] = {"": Tree()}
        for path, (mode, sha) in files.items():
            folder, _, name = path.rpartition("/")
            _tree(folders, folder).add(name.encode("utf-8", "surrogateescape"), mode, ObjectID(sha))
        for folder in sorted(folders, key=lambda text: -text.count("/") if text else 1):
            if not folder:
                continue
            sha = self.add(folders[folder])
            above, _, name = folder.rpartition("/")
            folders[above].add(name.encode("utf-8", "surrogateescape"), DIRECTORY, ObjectID(sha))
        return self.add(folders[""])


def _tree(folders: dict[str, Tree], path: str) -> Tree:
    if path not in folders:
        folders[path] = Tree()
        _tree(folders, path.rpartition("/")[0])
    return folders[path]
