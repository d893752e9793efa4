"""A stored tree reads what is needed and no more, by few reads, and turns every failure of the store into EIO."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence

import pytest

from belljar.abi.errno import EIO, ENXIO
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_RDONLY, O_RDWR, S_IFIFO
from belljar.abi.limits import MIB
from belljar.abi.records import SetAttr
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.remote import Export
from belljar.kernel.fs.remote_cache import Cache
from belljar.kernel.vfs.server import Node, Scan
from belljar.kernel.vfs.view import View
from belljar.store import stored_tree
from belljar.store.errors import StoreError
from belljar.store.memory_host import MemoryStore
from belljar.store.objects import PIECE, PIECE_BYTES, Digest, digest_of
from belljar.store.reader_host import Kept
from belljar.store.snapshot import Tree
from belljar.store.store import Objects
from belljar.store.stored_tree import LISTINGS, PIECES, StoredTree
from belljar.store.tree import Entry, Kind, encode_directory
from tests.contract.calls import fails, names, read
from tests.contract.servers import Dir, File, Hard, fill, memory, remote, view_of
from tests.store.writing import store_tree


class Counting(MemoryStore):
    """Counts reads; fails or hangs on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[list[Digest]] = []
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def read(self, digests: Sequence[Digest]) -> Mapping[Digest, bytes]:
        self.reads.append(list(digests))
        self.gate.wait()
        if self.error is not None:
            raise self.error
        return super().read(digests)

    def drop(self, digests: Collection[Digest]) -> None:
        for digest in digests:
            del self._objects[digest]


@pytest.fixture(autouse=True)
def _empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_tree, "LISTINGS", Kept(LISTINGS.decode, 32 * MIB, 6))
    monkeypatch.setattr(stored_tree, "PIECES", Kept(PIECES.decode, 32 * MIB, 1))


def stored(server: MemoryServer, seconds: float = 10.0) -> tuple[Counting, View, list[StoreError]]:
    store = Counting()
    told: list[StoreError] = []
    objects = Objects(store)
    tree = StoredTree(objects, store_tree(objects, server), told.append, seconds)
    return store, view_of(tree), told


def many() -> MemoryServer:
    server = memory()
    fill(server, {f"d{n}": Dir() for n in range(50)})
    fill(server, {f"d{n}/f{m:02}": File(b"%d %d" % (n, m)) for n in range(50) for m in range(20)})
    return server


def test_nothing_is_read_before_it_is_needed() -> None:
    store, view, _ = stored(many())
    assert store.reads == []
    assert read(view, "/d7/f03") == b"7 3"
    # The root, the directory, its small files.
    assert [len(each) for each in store.reads] == [1, 1, 17]


def test_small_files_of_a_directory_are_one_read() -> None:
    store, view, _ = stored(many())
    for n in range(20):
        assert read(view, f"/d3/f{n:02}") == b"3 %d" % n
    assert len(store.reads) == 3


def test_whoever_goes_through_the_tree_reads_several_directories_at_once() -> None:
    store, far, _ = stored(many())
    view = view_of(remote(far.resolve("/").mount.server, Cache(lambda: 0.0, 64 * MIB, 10_000)))
    for entry in view.readdir("/"):
        view.readdir(f"/{entry.name}")  # as `find` does
    del store.reads[:]
    for entry in view.readdir("/"):
        for n in range(20):
            assert read(view, f"/{entry.name}/f{n:02}").endswith(b" %d" % n)
    assert len(store.reads) < 20


def test_a_listing_with_links_is_one_read() -> None:
    store, view, _ = stored(many())
    server = view.resolve("/").mount.server
    scan = server.scan(server.root)
    assert scan is not None
    assert {stat.nlink for _, _, stat in scan.entries} == {2}
    assert server.stat(server.root).nlink == 52
    assert [len(each) for each in store.reads] == [1, 50]


def test_large_files_are_read_piece_by_piece() -> None:
    server = memory()
    data = b"".join(bytes([n]) * PIECE_BYTES for n in range(1, 6)) + b"end"
    fill(server, {"big": File(data), "other": File(b"x" * 100_000)})
    store, view, _ = stored(server)
    file = view.open("/big", O_RDONLY).retain()
    assert file.pread(4, 0) == data[:4]
    assert [len(each) for each in store.reads] == [1, 1]
    assert file.pread(6, 2 * PIECE_BYTES - 3) == b"\2\2\2\3\3\3"
    assert read(view, "/big") == data
    assert sum(len(each) for each in store.reads) <= 1 + 6 + 3  # one that was read ahead may be read twice
    file.release()


def test_holes() -> None:
    server = memory()
    view = view_of(server)
    file = view.open("/sparse", O_CREAT | O_RDWR, 0o600).retain()
    file.truncate(5 * PIECE_BYTES + 7)
    file.pwrite(b"data", PIECE_BYTES + 10)
    store, view, _ = stored(server)
    assert view.stat("/sparse").size == 5 * PIECE_BYTES + 7
    assert view.stat("/sparse").blocks == PIECE_BYTES // 512
    handle = view.resolve("/").mount.server.open(view.resolve("/sparse").node, O_RDONLY)
    assert handle.seek_data(0, hole=False) == PIECE_BYTES
    assert handle.seek_data(PIECE_BYTES + 3, hole=False) == PIECE_BYTES + 3
    assert handle.seek_data(PIECE_BYTES, hole=True) == 2 * PIECE_BYTES
    fails(ENXIO, handle.seek_data, 2 * PIECE_BYTES, hole=False)
    assert handle.read(5 * PIECE_BYTES, 100) == bytes(7)
    assert len(store.reads) == 1
    assert handle.read(PIECE_BYTES + 8, 8) == b"\0\0data\0\0"


def test_everything_a_file_has_survives() -> None:
    server = memory()
    fill(server, {"a": File(b"x", 0o4711, 12_345_678_901), "d": Dir(0o1777), "d/b": Hard("a")})
    view = view_of(server)
    view.mknod("/fifo", S_IFIFO | 0o640)
    view.symlink("to \udcff", "/l\udcfe")
    for path in ("/a", "/d", "/fifo", "/l\udcfe"):
        server.setattr(view.resolve(path, follow=False).node, SetAttr(uid=7, gid=8, mtime=-5))
    _, found, _ = stored(server)
    assert names(found, "/") == names(view, "/")
    for path in ("/a", "/d", "/d/b", "/fifo", "/l\udcfe"):
        before, after = view.stat(path, follow=False), found.stat(path, follow=False)
        assert after[:1] + after[3:7] + after[8:9] == before[:1] + before[3:7] + before[8:9], path
    assert found.stat("/a").ino == found.stat("/d/b").ino
    assert found.readlink("/l\udcfe") == "to \udcff"
    assert found.stat("/fifo").kind == S_IFIFO


def test_inode_numbers_outlive_their_nodes() -> None:
    _, view, _ = stored(many())
    before = {path: view.stat(path).ino for path in ("/d1", "/d1/f01", "/d2/f01")}
    assert len(set(before.values())) == 3
    assert before == {path: view.stat(path).ino for path in before}


def test_deleted_names_of_an_upper_layer_do_not_show() -> None:
    objects = Objects(Counting())
    objects.write([inner := encode_directory([])])
    (root,) = objects.write(
        [encode_directory([Entry(b"gone", Kind.WHITEOUT), Entry(b"m", Kind.MERGED, parts=[digest_of(inner)])])]
    )
    server = StoredTree(objects, Tree(b"/", "root", root))
    view = view_of(server)
    assert names(view, "/") == ["m"]
    assert view.stat("/m").is_dir
    with pytest.raises(SysError):
        view.stat("/gone")
    assert list(server.entries(server.root)) == ["gone", "m"]


def test_a_store_that_fails_is_eio_and_told_once() -> None:
    store, view, told = stored(many())
    assert read(view, "/d1/f01") == b"1 1"
    store.error = StoreError("the disk is gone")
    for _ in range(3):
        fails(EIO, read, view, "/d2/f01")
    assert read(view, "/d1/f02") == b"1 2"
    assert [str(error) for error in told] == ["the disk is gone"]
    store.error = RuntimeError("a bug")
    fails(EIO, view.stat, "/d3/f00")
    assert "a bug" in str(told[1])
    store.error = None
    assert read(view, "/d2/f01") == b"2 1"


def test_a_damaged_file_hurts_no_other() -> None:
    store, view, told = stored(many())
    store.drop([digest_of(PIECE + b"1 5")])
    store.write({digest_of(PIECE + b"1 6"): PIECE + b"? ?"})
    for n in range(20):
        if n in (5, 6):
            fails(EIO, read, view, f"/d1/f{n:02}")
        else:
            assert read(view, f"/d1/f{n:02}") == b"1 %d" % n
    assert len(told) == 2


def test_a_lost_directory_hurts_no_other() -> None:
    store, view, told = stored(many())
    server = view.resolve("/").mount.server
    store.drop([view.resolve("/d5").node.entry.parts[0]])  # type: ignore[attr-defined]
    assert names(view, "/") == sorted(f"d{n}" for n in range(50))
    scan = server.scan(server.root)
    assert scan is not None
    assert [name for name, _, stat in scan.entries if stat.nlink != 2] == ["d5"]
    fails(EIO, view.readdir, "/d5")
    fails(EIO, read, view, "/d5/f00")
    assert read(view, "/d6/f00") == b"6 0"
    assert len(told) == 1


@pytest.mark.battery
def test_a_store_that_hangs_is_eio_and_never_a_hang() -> None:
    store, view, told = stored(many(), seconds=2)
    assert read(view, "/d1/f01") == b"1 1"
    store.gate.clear()
    reads = len(store.reads)
    for _ in range(10):
        fails(EIO, read, view, "/d2/f01")
    assert len(store.reads) <= reads + 4  # then it is not asked any more
    assert read(view, "/d1/f02") == b"1 2"
    assert len(told) == 1
    store.gate.set()
    for _ in range(1000):
        try:
            assert read(view, "/d2/f01") == b"2 1"
        except SysError:
            threading.Event().wait(0.01)
        else:
            break
    assert read(view, "/d2/f02") == b"2 2"


def test_whoever_asks_for_many_files_waits_once() -> None:
    store, far, _ = stored(many(), seconds=2)
    server = far.resolve("/").mount.server
    export = Export(server)
    numbers = [export._give(server.walk(server.walk(server.root, "d3"), f"f{n:02}"))[0] for n in range(20)]
    del store.reads[:]
    store.gate.clear()
    assert export.serve({"op": "contents", "nodes": numbers}) == {"ok": [None]}
    assert len(store.reads) == 1
    store.gate.set()


def test_a_bad_neighbour_is_not_read_ahead_again() -> None:
    store, view, told = stored(many())
    bad = digest_of(PIECE + b"3 7")
    read_some = store.read

    def refuse_bad(digests: Sequence[Digest]) -> Mapping[Digest, bytes]:
        if bad in digests:
            raise StoreError("a bad disk")
        return read_some(digests)

    store.read = refuse_bad  # type: ignore[method-assign]
    for n in range(20):
        if n == 7:
            fails(EIO, read, view, "/d3/f07")
        else:
            assert read(view, f"/d3/f{n:02}") == b"3 %d" % n
    assert len(told) == 1


@pytest.mark.parametrize("size", [1, 3])
def test_a_piece_of_another_length_is_eio(size: int) -> None:
    objects = Objects(Counting())
    (piece,) = objects.write([PIECE + b"xx"])
    (root,) = objects.write([encode_directory([Entry(b"f", Kind.FILE, 0o644, size=size, parts=[piece])])])
    view = view_of(StoredTree(objects, Tree(b"/", "root", root)))
    fails(EIO, read, view, "/f")


@pytest.mark.parametrize("kind", [Kind.FILE, Kind.DIRECTORY])
def test_an_object_of_another_kind_is_eio(kind: Kind) -> None:
    objects = Objects(Counting())
    piece, directory = objects.write([PIECE + b"x", encode_directory([])])
    wrong = directory if kind is Kind.FILE else piece
    entry = Entry(b"f", kind, 0o755, size=int(kind is Kind.FILE), parts=[wrong])
    (root,) = objects.write([encode_directory([entry])])
    view = view_of(StoredTree(objects, Tree(b"/", "root", root)))
    fails(EIO, read if kind is Kind.FILE else view.readdir, *([view, "/f"] if kind is Kind.FILE else ["/f"]))


def test_the_cache_is_bounded_but_keeps_the_last() -> None:
    kept = Kept(lambda data: data, 100, 1)
    for n in range(10):
        kept.put(b"%d" % n, bytes(30))
    assert kept.bytes == 90
    assert kept.get(b"7") is not None
    kept.put(b"new", bytes(30))
    assert b"7" in kept
    assert b"8" not in kept
    kept.put(b"huge", bytes(1000))
    assert kept.get(b"huge") is not None
    assert kept.bytes == 1000


def test_a_directory_that_is_known_is_not_listed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10_000))
    server = StoredTree(objects := Objects(Counting()), store_tree(objects, many()))
    scans: list[object] = []
    scan = server.scan

    def counted(directory: Node) -> Scan | None:
        scans.append(directory)
        return scan(directory)

    monkeypatch.setattr(server, "scan", counted)
    view = view_of(remote(server, Cache(lambda: float(next(clock)), 64 * MIB, 10_000)))  # each look is a new period
    for _ in range(5):
        assert len(names(view, "/d1")) == 20
        assert view.stat("/d1").nlink == 2
    assert scans.count(server.walk(server.root, "d1")) == 1
