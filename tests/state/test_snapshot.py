"""`Snapshot`: what it says of itself, its files without a sandbox, and differences."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from belljar.abi.errors import SnapshotError
from belljar.abi.flags import O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.paths import fsencode
from belljar.api.errors import FileError
from belljar.api.snapshot import Change, Snapshot
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.vfs.view import View
from belljar.store.errors import StoreError
from belljar.store.memory_host import MemoryStore
from belljar.store.objects import PIECE, digest_of
from belljar.store.snapshot import SnapshotRecord, Tree, read_snapshot, save_snapshot
from belljar.store.store import Objects, Store
from belljar.store.tree import Entry, Kind, encode_directory
from tests.contract.calls import write
from tests.contract.servers import File, fill, memory, view_of
from tests.contract.tree import TREE
from tests.store.writing import store_tree


def take(store: Store, *servers: tuple[bytes, MemoryServer], **fields: Any) -> Snapshot:
    objects = Objects(store)
    trees = [store_tree(objects, server, path) for path, server in servers]
    record = SnapshotRecord(trees=trees, **{"created": 1_500_000_000, **fields})
    digest = save_snapshot(objects, record)
    return Snapshot(store, digest, read_snapshot(objects, digest))


def filled() -> MemoryServer:
    server = memory()
    fill(server, TREE)
    return server


def test_attributes() -> None:
    store = Store.memory()
    one = take(store, (b"/", filled()), label="one", size=5)
    two = take(store, (b"/", filled()), parent=one.digest, created=2_000_000_000, lost=["/x"])
    assert (one.label, two.label, one.parent, two.parent) == ("one", None, None, one.ref)
    assert (one.created, one.size, two.lost) == (1.5, 5, ("/x",))
    assert one.tree == two.tree
    assert one.ref.startswith("sha256:")
    assert one != two
    assert Snapshot.list(store) == [one, two]
    for text in ("one", one.ref, one.ref[7:20]):
        assert Snapshot.find(text, store) == one
    one.remove()
    assert Snapshot.list(store) == [two]
    with pytest.raises(SnapshotError):
        Snapshot.find("one", store)
    with pytest.raises(TypeError):
        Snapshot.find(one, store)  # type: ignore[arg-type]


def test_the_default_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLJAR_STORE", str(tmp_path / "a" / "store.db"))
    assert Snapshot.list() == []
    assert (tmp_path / "a" / "store.db").exists()
    monkeypatch.delenv("BELLJAR_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert Snapshot.list() == []
    assert (tmp_path / "data" / "belljar" / "store.db").exists()
    monkeypatch.setenv("BELLJAR_STORE", f"memory://{tmp_path.name}")
    assert Snapshot.list() == []


def test_files() -> None:
    shared = memory()
    fill(shared, {"s": File(b"shared")})
    server = filled()
    view_of(server).mkdir("/shm")
    files = take(Store.memory(), (b"/", server), (b"/shm", shared), cwd=b"/dir").files
    assert files.read("inner") == "inner\n"
    assert files.read_bytes("/up") == b"hello world\n"
    assert files.read("/shm/s") == "shared"
    assert files.exists("sub/deep")
    assert not files.exists("/hello/x")
    assert files.readlink("/to-abs") == "/dir/inner"
    assert files.stat("/run").mode == 0o755
    assert files.stat("/to-dir", follow=False).kind == "symlink"
    assert [entry.name for entry in files.list("/dir")] == ["inner", "sub", "twin-b"]
    assert files.glob("*") == ["inner", "sub", "twin-b"]
    assert files.glob("/**/[hi]*n*r") == ["/dir/inner"]
    assert files.glob("/d*/**/deep") == ["/dir/sub/deep"]
    assert files.glob("**") == ["inner", "sub", "sub/deep", "twin-b"]
    assert files.glob("/*/sub/") == ["/dir/sub/", "/to-dir/sub/"]
    assert files.glob("./s*") == ["./sub"]
    assert files.glob("/hello") == ["/hello"]
    assert files.glob("/") == ["/"]
    assert files.glob("/no*") == files.glob("/no") == []
    assert [(match.path, match.line, match.text) for match in files.grep("^(inn|dee)", "/dir")] == [
        ("/dir/inner", 1, "inner"),
        ("/dir/sub/deep", 1, "deep"),
    ]
    for path in ("/no", "/dir", "/loop"):
        with pytest.raises(FileError):
            files.read(path)
    with pytest.raises(ValueError, match="grep"):
        files.grep("(")


def test_files_download(tmp_path: Path) -> None:
    take(Store.memory(), (b"/", filled())).files.download("/dir", str(tmp_path / "got"))
    assert (tmp_path / "got" / "sub" / "deep").read_text() == "deep\n"


def test_a_store_that_fails_is_named() -> None:
    store = MemoryStore()
    server = memory()
    fill(server, {"lost": File(b"nobody has read this"), "kept": File(b"kept")})
    snapshot = take(store, (b"/", server))
    del store._objects[digest_of(PIECE + b"nobody has read this")]
    with pytest.raises(StoreError, match="has no object"):
        snapshot.files.read("/lost")
    assert snapshot.files.read("/kept") == "kept"
    with pytest.raises(FileError):
        snapshot.files.read("/other")


def kinds(changes: list[Change]) -> list[tuple[str, str]]:
    return [(change.path, change.kind) for change in changes]


def test_diff() -> None:
    store, server = Store.memory(), filled()
    one = take(store, (b"/", server))
    view = view_of(server)
    write(view, "/hello", b"changed")
    write(view, "/dir/new", b"new")
    view.unlink("/dir/inner")
    view.chmod("/run", 0o700)
    view.unlink("/to-dir")
    view.symlink("elsewhere", "/to-dir")
    view.unlink("/empty")
    view.mkdir("/empty")
    write(view, "/empty/x", b"")
    view.rmdir("/hollow")
    two = take(store, (b"/", server), (b"/shm", memory()))
    changes = one.diff(two)
    assert kinds(changes) == [
        ("/dir/inner", "deleted"),
        ("/dir/new", "added"),
        ("/empty", "modified"),
        ("/empty/x", "added"),
        ("/hello", "modified"),
        ("/hollow", "deleted"),
        ("/run", "attributes"),
        ("/to-dir", "modified"),
    ]
    hello = next(change for change in changes if change.path == "/hello")
    assert hello.before is not None
    assert hello.after is not None
    assert (hello.before.size, hello.after.size, hello.after.name) == (12, 7, "hello")
    back = {"added": "deleted", "deleted": "added"}
    assert kinds(two.diff(one)) == [(path, back.get(kind, kind)) for path, kind in kinds(changes)]
    assert one.diff(one) == []
    assert one.diff(one.ref) == []
    with pytest.raises(TypeError):
        one.diff(3)  # type: ignore[arg-type]


def test_diff_of_other_trees_and_stores() -> None:
    one = take(Store.memory(), (b"/", memory()))
    shared = memory()
    fill(shared, {"s": File(b"shared")})
    two = take(Store.memory(), (b"/", memory()), (b"/dev/shm", shared))
    assert kinds(one.diff(two)) == [("/dev/shm/s", "added")]


def test_diff_costs_what_changed() -> None:
    store = MemoryStore()
    server = memory()
    for n in range(40):
        view_of(server).mkdir(f"/d{n}")
        write(view_of(server), f"/d{n}/f", b"%d" % n)
    one = take(store, (b"/", server))
    write(view_of(server), "/d7/f", b"new")
    two = take(store, (b"/", server))
    wanted: list[bytes] = []
    read = store.read
    store.read = lambda digests: (wanted.extend(digests), read(digests))[1]  # type: ignore[method-assign,func-returns-value]
    assert kinds(one.diff(two)) == [("/d7/f", "modified")]
    assert len(wanted) == 4


def test_names_deleted_in_an_overlay() -> None:
    store = Store.memory()
    objects = Objects(store)
    root, empty, upper = objects.write(
        [encode_directory([Entry(b"w", Kind.DIRECTORY, 0o755, parts=[digest_of(encode_directory([]))])]),
         encode_directory([]), encode_directory([Entry(b"gone", Kind.WHITEOUT)])]
    )  # fmt: skip
    taken = []
    for tree in (empty, upper):
        trees = [Tree(b"/", "root", root), Tree(b"/w", "overlay", tree)]
        record = SnapshotRecord(created=1, trees=trees, mounts=[b"/w"])
        taken.append(Snapshot(store, save_snapshot(objects, record), record))
    assert taken[0].diff(taken[1]) == [Change("/w/gone", "deleted", None, None)]
    assert taken[1].files.list("/w") == []


# Random histories: the differences are those that diff(1) finds between the exports.


def disturb(view: View, rng: random.Random) -> None:
    """Change something at random."""
    directories, files = ["/"], []
    for directory in directories:  # which grows
        for entry in view.readdir(directory):
            path = directory.rstrip("/") + "/" + entry.name
            if entry.is_dir:
                directories.append(path)
            else:
                files.append(path)
    name = rng.choice(["a", "b", "c d", "e!", "\udcff", "f" * 200, ".g"])
    new = rng.choice(directories).rstrip("/") + "/" + name
    match rng.randrange(9):
        case 0 | 1 | 2:
            if view.try_stat(new, follow=False) is None:
                write(view, new, rng.randbytes(rng.choice([0, 1, 100, 70_000])))
        case 3 if files:
            file = rng.choice(files)
            if view.stat(file, follow=False).is_regular:
                write(view, file, rng.randbytes(20), O_WRONLY | O_CREAT | rng.choice([0, O_TRUNC]))
        case 4 | 5:
            if view.try_stat(new, follow=False) is None:
                view.mkdir(new)
        case 6 if files:
            view.unlink(rng.choice(files))
        case 7:
            if view.try_stat(new, follow=False) is None:
                view.symlink(rng.choice(["a", "..", "nowhere"]), new)
        case 8 if files:
            if view.try_stat(new, follow=False) is None:
                view.rename(rng.choice(files), new)


def unpack(snapshot: Snapshot, top: bytes) -> None:
    """Write the files of a snapshot as real files."""
    os.mkdir(top)
    todo = ["/"]
    for directory in todo:
        for entry in snapshot.files.list(directory):
            at = top + fsencode(entry.path)
            if entry.is_dir:
                os.mkdir(at)
                todo.append(entry.path)
            elif entry.kind == "symlink":
                os.symlink(fsencode(snapshot.files.readlink(entry.path)), at)
            else:
                Path(os.fsdecode(at)).write_bytes(snapshot.files.read_bytes(entry.path))


def everything(top: bytes) -> dict[bytes, bytes]:
    """What diff(1) compares, by path: the kind and the contents."""
    found = {}
    for directory, names, files in os.walk(top):
        for name in names + files:
            path = os.path.join(directory, name)
            if os.path.islink(path):
                found[path[len(top) :]] = b"l" + os.readlink(path)
            else:
                found[path[len(top) :]] = b"d" if os.path.isdir(path) else b"f" + Path(os.fsdecode(path)).read_bytes()
    return found


def host_diff(one: bytes, two: bytes) -> set[bytes]:
    """Paths that differ. What `diff -r` says is shorter (it does not look into what is only in one of the two), so
    only its verdict, and the names that it has, are compared.
    """
    left, right = everything(one), everything(two)
    differ = {path for path in left.keys() | right.keys() if left.get(path) != right.get(path)}
    said = subprocess.run(["diff", "-rq", "--no-dereference", one, two], capture_output=True)
    assert said.returncode == bool(differ)
    tops = {path for path in differ if os.path.dirname(path) not in differ}
    assert len(tops) == sum(line.startswith((b"Only", b"File", b"Symbolic")) for line in said.stdout.split(b"\n"))
    return differ


@pytest.mark.parametrize("seed", range(12))
def test_random_histories(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    store, other = Store.memory(), Store.sqlite(tmp_path / "other.db")
    server = memory()
    view = view_of(server)
    taken: list[Snapshot] = []
    for number in range(3):  # a common ancestor, and two that went on from it (the second by way of the first)
        for _ in range(rng.choice([0, 5, 40])):
            disturb(view, rng)
        snapshot = take(store, (b"/", server), parent=taken[0].digest if taken else b"", created=number)
        snapshot.export(tmp_path / "bundle")
        taken.append(Snapshot.import_(tmp_path / "bundle", other))
        assert taken[-1] == snapshot
        unpack(taken[-1], os.fsencode(tmp_path / f"{number}"))
    for one in range(3):
        for two in range(3):
            found = taken[one].diff(taken[two])
            changed = {fsencode(change.path) for change in found if change.kind != "attributes"}
            assert changed == host_diff(os.fsencode(tmp_path / f"{one}"), os.fsencode(tmp_path / f"{two}"))
            for change in found:
                assert (change.kind == "added") == (change.before is None)
                assert (change.kind == "deleted") == (change.after is None)
    other.close()
