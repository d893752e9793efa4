"""Every store keeps the contract, survives faults at every call, and is honest about damage."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from belljar.store.collect import check
from belljar.store.errors import ObjectDamaged, ObjectMissing, RefConflict, StoreError
from belljar.store.files_host import Files, LocalFiles
from belljar.store.objects import digest_of
from belljar.store.packs_host import PackStore
from belljar.store.store import Objects, Store
from tests.reliability.amount import amount
from tests.store.contract import check_contract, directory, piece, save

Open = Callable[[Path], Store]


def sqlite(path: Path) -> Store:
    return Store.sqlite(path / "store.db")


def packs(path: Path) -> Store:
    return Store.fsspec(str(path / "packs"))


def on_disk(path: Path) -> Iterator[Path]:
    return (each for each in path.rglob("*") if each.is_file())


DURABLE = pytest.mark.parametrize("open_store", [sqlite, packs])


@pytest.mark.parametrize(
    "open_store", [sqlite, packs, lambda _: Store.fsspec(f"memory://{uuid.uuid4()}"), lambda _: Store.memory()]
)
def test_contract(tmp_path: Path, open_store: Open) -> None:
    store = open_store(tmp_path)
    check_contract(store)
    store.close()


@DURABLE
def test_another_process_sees_what_was_written(tmp_path: Path, open_store: Open) -> None:
    store, other = open_store(tmp_path), open_store(tmp_path)
    assert other.list() == {}
    root = save(store, "a", f="text")
    assert other.list() == {"a": root}
    assert Objects(other).read([root]) == [directory(f="text")]
    with pytest.raises(RefConflict):
        other.set("a", digest_of(b""), None)
    store.close()
    other.close()


@DURABLE
def test_damage_is_found_and_never_read(tmp_path: Path, open_store: Open) -> None:
    """Each byte on disk is flipped, one at a time: reading gives what was written, or an error."""
    store = open_store(tmp_path)
    text = "some text that is long enough to be worth something" * 3
    root = save(store, "a", f=text)
    store.close()
    wrong = 0
    for path in list(on_disk(tmp_path)):
        whole = path.read_bytes()
        for position in range(0, len(whole), 1 if len(whole) < 2000 else 97):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x41]) + whole[position + 1 :])
            store = open_store(tmp_path)
            try:
                found = store.get("a")
                if found == root:
                    assert Objects(store).read([root, digest_of(piece(text))]) == [directory(f=text), piece(text)]
            except StoreError:
                wrong += 1
            store.close()
            path.write_bytes(whole)
    assert wrong > 3
    store = open_store(tmp_path)
    assert list(check(store)) == []
    store.close()


def test_check_names_what_damage_hurts(tmp_path: Path) -> None:
    store = sqlite(tmp_path)
    root = save(store, "work", good="good", bad="bad")
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("UPDATE objects SET data = ? WHERE digest = ?", (b"\0pBAD", digest_of(piece("bad"))))
    connection.close()
    with pytest.raises(ObjectDamaged):
        Objects(store).read([digest_of(piece("bad"))])
    found = [(damage.ref, damage.path, damage.what) for damage in check(store)]
    assert found == [("work", "/bad", "damaged")]
    # Whoever has the content writes it again, and all is well.
    store.write({digest_of(piece("bad")): piece("bad")})
    assert list(check(store)) == []
    assert store.get("work") == root
    store.close()


@DURABLE
@pytest.mark.slow
def test_writers_and_collections_killed_at_random_moments(tmp_path: Path, open_store: Open) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.killed", open_store.__name__, str(tmp_path), str(amount(25, 300)), "1"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


class Failing:
    """Files whose n-th change fails, before or after it was made."""

    def __init__(self, files: Files, fails_at: int, *, after: bool) -> None:
        self._files = files
        self._left = fails_at
        self._after = after

    def create(self, name: str, data: bytes) -> None:
        self._change(lambda: self._files.create(name, data))

    def remove(self, name: str) -> None:
        self._change(lambda: self._files.remove(name))

    def _change(self, change: Callable[[], None]) -> None:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise OSError(errno.ENOSPC, "No space left on device")
        change()
        if self._left == 0:
            raise OSError(errno.EIO, "Input/output error")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


@pytest.mark.parametrize("after", [False, True])
def test_every_change_can_fail(tmp_path: Path, after: bool) -> None:
    """What was acknowledged stays; what was not is there whole, or not at all."""
    failed = 0
    for fails_at in range(1, 40):
        path = tmp_path / f"{after}{fails_at}"
        files: Any = Failing(LocalFiles(path), fails_at, after=after)
        store = PackStore(files, "test")
        acknowledged = None
        number = 0
        try:
            for number in range(1, 6):
                save(store, "work", number=str(number))
                acknowledged = number
        except StoreError:
            failed += 1
        fresh = PackStore(LocalFiles(path), "test")
        assert list(check(fresh)) == []
        allowed = {None if n in (None, 0) else digest_of(directory(number=str(n))) for n in (acknowledged, number)}
        assert fresh.get("work") in allowed
        save(fresh, "work", number="after")
        assert list(check(fresh)) == []
    assert failed > 10


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    program = """
import resource, sys
from pathlib import Path
from belljar.store.errors import StoreError
from tests.store import contract, test_stores
store = getattr(test_stores, sys.argv[1])(Path(sys.argv[2]))
contract.save(store, "work", a="small")
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
import random
try:
    contract.save(store, "work", a=random.Random(1).randbytes(3 << 20).hex())
except StoreError as error:
    print(error)
"""
    for open_store in (sqlite, packs):
        done = subprocess.run(
            [sys.executable, "-c", program, open_store.__name__, str(tmp_path)],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        assert done.stdout.startswith("the store "), done.stderr
        store = open_store(tmp_path)
        assert store.get("work") == digest_of(directory(a="small"))
        assert list(check(store)) == []
        store.close()


def test_files_that_are_no_store(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    text = tmp_path / "text.db"
    text.write_text("not a database at all, but long enough to be looked at" * 20)
    newer = tmp_path / "newer.db"
    store = Store.sqlite(newer)
    store.list()
    store.close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    for path, what in ((other, "another program"), (text, "not a database"), (newer, "version 99"), (tmp_path, "open")):
        before = path.read_bytes() if path.is_file() else b""
        with pytest.raises(StoreError, match=what):
            Store.sqlite(path).list()
        assert not path.is_file() or path.read_bytes() == before
    with pytest.raises(StoreError, match="no store at"):
        Store.fsspec("nonsense://x")


def test_a_pack_that_is_mostly_garbage_is_written_anew(tmp_path: Path) -> None:
    from belljar.store.collect import collect

    store = packs(tmp_path)
    random = os.urandom(200_000).hex()
    objects = Objects(store)
    objects.write([piece(random), piece("small")])
    (root,) = objects.write([directory(small="small")])
    store.set("kept", root, None)
    before = sum(path.stat().st_size for path in on_disk(tmp_path))
    for now in (1.0, 200.0, 400.0):
        collect(store, now=now, grace=100.0)
        assert objects.read([root, digest_of(piece("small"))])
    assert sum(path.stat().st_size for path in on_disk(tmp_path)) < before / 10
    with pytest.raises(ObjectMissing):
        Objects(packs(tmp_path)).read([digest_of(piece(random))])


def test_a_large_object_is_refused() -> None:
    with pytest.raises(StoreError, match="too large"):
        Objects(Store.memory()).write([bytes((64 << 20) + 1)])


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_removed_while_it_is_used_is_noticed(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "store.db"
    store = Store.sqlite(path)
    store.write({digest_of(piece("a")): piece("a")})
    for each in tmp_path.iterdir():
        each.rename(each.with_name("old-" + each.name))
    if replaced:
        other = Store.sqlite(path)
        other.write({digest_of(piece("c")): piece("c")})
        other.close()
    with pytest.raises(StoreError, match="replaced" if replaced else "removed"):
        store.write({digest_of(piece("b")): piece("b")})
    assert path.exists() == replaced  # no empty store was made
    store.close()
    assert store.missing([digest_of(piece("c"))]) == (set() if replaced else {digest_of(piece("c"))})
    store.close()
