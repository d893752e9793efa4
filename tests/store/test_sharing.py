"""Stores shared by threads, processes and collections; what a killed writer leaves is removed in time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from belljar.store.collect import check, collect
from belljar.store.errors import RefConflict, StoreError
from belljar.store.files_host import LocalFiles
from belljar.store.objects import digest_of
from belljar.store.packs_host import PackStore
from belljar.store.store import Objects, Store
from tests.store.contract import directory, piece, save
from tests.store.test_stores import DURABLE, Open, on_disk, packs, sqlite

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def at_once(*jobs: Callable[[], None]) -> None:
    """Run jobs in threads; raise what one of them raised."""
    errors: list[BaseException] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@DURABLE
def test_many_open_a_new_store_at_once(tmp_path: Path, open_store: Open) -> None:
    for round_ in range(10):
        path = tmp_path / str(round_) / "deep"
        barrier = threading.Barrier(6, timeout=120)  # one that can't open its store is not waited for

        def use(number: int, path: Path = path, barrier: threading.Barrier = barrier) -> None:
            store = open_store(path)
            barrier.wait()
            save(store, f"of {number}", a=str(number))
            store.close()

        at_once(*(lambda number=number: use(number) for number in range(6)))
        store = open_store(path)
        assert len(store.list()) == 6
        assert list(check(store)) == []
        store.close()


COUNTER = """
import sys
from pathlib import Path
from belljar.store.errors import RefConflict
from belljar.store.store import Objects
from tests.store import contract, test_stores

store = getattr(test_stores, sys.argv[1])(Path(sys.argv[2]))
objects = Objects(store)
done = 0
while done < 15:
    current = store.get("count")
    number = int(objects.read([current])[0][1:])
    try:
        store.set("count", objects.write([contract.piece(str(number + 1))])[0], current)
    except RefConflict:
        continue
    done += 1
"""


@DURABLE
def test_no_update_of_several_processes_is_lost(tmp_path: Path, open_store: Open) -> None:
    store = open_store(tmp_path)
    store.set("count", Objects(store).write([piece("0")])[0], None)
    command = [sys.executable, "-c", COUNTER, open_store.__name__, str(tmp_path)]
    counters = [subprocess.Popen(command, env=ENVIRONMENT) for _ in range(3)]
    assert [counter.wait() for counter in counters] == [0, 0, 0]
    last = store.get("count")
    assert last is not None
    assert Objects(store).read([last]) == [piece("45")]
    store.close()


@DURABLE
def test_collections_beside_writers_and_each_other(tmp_path: Path, open_store: Open) -> None:
    """What is condemned in one round is removed in the next, unless somebody needs it again."""

    def write(seed: int, round_: int) -> None:
        rng = random.Random(seed * 100 + round_)
        store = open_store(tmp_path)
        for _ in range(4):
            name = f"w{seed}/{rng.randrange(2)}"
            save(store, name, **{f"f{n}": f"{n} {rng.randrange(4)}" for n in range(rng.randrange(1, 6))})
            if rng.random() < 0.4:
                with suppress(RefConflict):
                    store.delete(name, store.get(name) or b"")
        store.close()

    def tidy(round_: int) -> None:
        store = open_store(tmp_path)
        for step in range(3):
            collect(store, now=round_ * 1000.0 + step, grace=500.0)
        store.close()

    for round_ in range(6):
        at_once(
            lambda: write(1, round_),  # noqa: B023 - they end before it changes
            lambda: write(2, round_),  # noqa: B023
            lambda: tidy(round_),  # noqa: B023
            lambda: tidy(round_),  # noqa: B023
        )
        store = open_store(tmp_path)
        assert list(check(store)) == []
        store.close()


def test_a_store_used_on_both_sides_of_a_fork(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from tests.store import contract, test_stores
store = test_stores.sqlite(Path(sys.argv[1]))
contract.save(store, "a", a="before")
child = os.fork()
contract.save(store, f"of {bool(child)}", a="after")
store.close()
if child:
    os._exit(os.waitpid(child, 0)[1] != 0)
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], env=ENVIRONMENT, check=True)
    store = sqlite(tmp_path)
    assert set(store.list()) == {"a", "of True", "of False"}
    assert list(check(store)) == []
    store.close()


def test_reading_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    store: Any = sqlite(tmp_path)
    root = save(store, "a", a="text")
    with store._transaction(writes=True):
        assert Objects(store).read([root]) == [directory(a="text")]
        assert store.list() == {"a": root}
    store.close()


@DURABLE
def test_files_are_their_owners_alone(tmp_path: Path, open_store: Open) -> None:
    before = os.umask(0)
    try:
        store = open_store(tmp_path / "new")
        save(store, "a", a="secret")
        assert {path.stat().st_mode & 0o77 for path in (tmp_path / "new").rglob("*")} == {0}
        store.close()
    finally:
        os.umask(before)


def test_a_collection_gives_space_back(tmp_path: Path) -> None:
    store = sqlite(tmp_path)
    root = save(store, "a", a=random.Random(1).randbytes(1 << 20).hex())
    store.delete("a", root)
    for now in (1.0, 200.0):
        swept = collect(store, now=now, grace=100.0)
    assert swept.removed == 2
    store.close()
    assert sum(path.stat().st_size for path in on_disk(tmp_path)) < 100_000


def test_what_a_killed_writer_leaves_is_removed(tmp_path: Path) -> None:
    store = packs(tmp_path)
    save(store, "a", a="text")
    save(store, "a", a="other text")
    files = tmp_path / "packs"
    (files / "unfinished" / "0123").write_bytes(b"half")
    (files / "objects" / "4567.pack").write_bytes(b"half")
    (files / "objects" / "89ab.pack").write_bytes(b"whole")
    (files / "objects" / "89ab.index").write_bytes(b"half")
    (files / "condemned").mkdir()
    (files / "condemned" / "4567").write_bytes(b"1")  # it was to be 1000.0
    (files / "condemned" / "cdef").write_bytes(b"1.0\n")  # its pack is gone
    before = {path.name for path in on_disk(files)}
    for now in (1000.0, 1050.0):
        collect(store, now=now, grace=100.0)
        assert before - {"cdef"} <= {path.name for path in on_disk(files)}, "too early"
    for now in (1200.0, 1400.0):
        collect(store, now=now, grace=100.0)
    left = sorted(str(path.relative_to(files)) for path in on_disk(files))
    assert [name for name in left if not name.startswith("objects/")] == ["format", f"refs/{b'a'.hex()}.{2:012d}"]
    assert Objects(packs(tmp_path)).read([digest_of(directory(a="other text"))])
    assert list(check(packs(tmp_path))) == []


def test_many_small_packs_become_one(tmp_path: Path) -> None:
    store = packs(tmp_path)
    roots = {f"r{number}": save(store, f"r{number}", a=str(number)) for number in range(70)}
    for now in (1.0, 200.0, 400.0):
        collect(store, now=now, grace=100.0)
    assert len(list((tmp_path / "packs" / "objects").iterdir())) == 2
    fresh = packs(tmp_path)
    assert fresh.list() == roots
    assert list(check(fresh)) == []


def test_another_version_of_packs(tmp_path: Path) -> None:
    root = tmp_path / "packs"
    root.mkdir()
    (root / "format").write_text("belljar store 2\n")
    for use in (lambda: packs(tmp_path).list(), lambda: save(packs(tmp_path), "a", a="a")):
        with pytest.raises(StoreError, match="no store that this version"):
            use()
    assert [path.name for path in root.iterdir()] == ["format"]


def test_an_index_that_is_seen_before_it_is_whole(tmp_path: Path) -> None:
    """Not every backend shows files only when they are whole."""
    store, reader = packs(tmp_path), packs(tmp_path)
    root = save(store, "a", a="text")
    (index,) = [path for path in on_disk(tmp_path) if path.suffix == ".index"][:1]
    whole = index.read_bytes()
    index.write_bytes(whole[:-1])
    list(reader.digests())
    index.write_bytes(whole)
    assert Objects(reader).read([root, digest_of(piece("text"))])


class Repeating:
    """Files whose answer is lost once: the request is sent again, and finds its own file there."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def create(self, name: str, data: bytes) -> None:
        self._files.create(name, data)
        if name.startswith("refs/"):
            self._files.create(name, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


def test_a_request_that_was_sent_twice(tmp_path: Path) -> None:
    files: Any = Repeating(LocalFiles(tmp_path))
    store = PackStore(files, "test")
    for text in ("one", "two"):
        assert save(store, "a", a=text) == store.get("a")


class Interleaved:
    """Files where somebody else does something right after the next list of names."""

    def __init__(self, files: Any) -> None:
        self._files = files
        self.then: Callable[[], object] | None = None

    def names(self, folder: str) -> list[str]:
        found: list[str] = self._files.names(folder)
        then, self.then = self.then, None
        if then is not None:
            then()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


def test_a_pack_is_removed_while_a_writer_asks_what_is_missing(tmp_path: Path) -> None:
    files: Any = Interleaved(LocalFiles(tmp_path))
    writer, collector = PackStore(files, "test"), PackStore(LocalFiles(tmp_path), "test")
    root = save(writer, "a", a="text")
    writer.delete("a", root)
    collect(collector, now=1.0, grace=100.0)
    files.then = lambda: collect(collector, now=200.0, grace=100.0)
    assert writer.missing([root]) == {root}, "it would not be written again"


class Broken(MemoryFileSystem):  # type: ignore[misc]
    """A file system whose errors are its own."""

    protocol = "broken"
    cachable = False

    def ls(self, path: str, **options: Any) -> Any:
        raise RuntimeError("no credentials")

    def cat_file(self, path: str, *args: Any, **options: Any) -> Any:
        raise RuntimeError("no credentials")


def test_every_error_of_a_backend_is_one_of_the_store() -> None:
    fsspec.register_implementation("broken", Broken, clobber=True)
    store = Store.fsspec("broken://x")
    nothing = digest_of(b"")
    for use in (
        lambda: store.get("a"),
        lambda: store.list(),
        lambda: store.read([nothing]),
        lambda: store.missing([nothing]),
        lambda: store.write({nothing: b""}),
        lambda: store.set("a", nothing, None),
        lambda: store.sweep([], 0.0, 0.0),
    ):
        with pytest.raises(StoreError, match="no credentials"):
            use()


@pytest.mark.parametrize(
    "open_store", [sqlite, packs, lambda _: Store.fsspec("memory://names"), lambda _: Store.memory()]
)
def test_names_that_no_ref_has(tmp_path: Path, open_store: Open) -> None:
    store = open_store(tmp_path)
    for name in ("", "a\nb", "\udc80", "x" * 121):
        with pytest.raises(StoreError, match="can't name a ref"):
            store.get(name)
        with pytest.raises(StoreError, match="can't name a ref"):
            store.set(name, b"", None)
        with pytest.raises(StoreError, match="can't name a ref"):
            store.delete(name, b"")
    store.close()
