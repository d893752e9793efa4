"""A power cut at every sync, a fault at every call: nothing acknowledged is lost, the rest is whole or absent."""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from belljar.store import files_host, sqlite_host
from belljar.store.collect import check, collect
from belljar.store.errors import StoreError
from belljar.store.objects import Digest, digest_of
from belljar.store.store import Objects, Store
from tests.reliability.amount import amount
from tests.store.contract import directory, piece, save
from tests.store.powercut import Disk, RecordingOs, materialise
from tests.store.sqlite_powercut import RecordingSqlite
from tests.store.test_stores import DURABLE, Open, packs, sqlite

State = tuple[dict[str, Digest], frozenset[Digest]]
"""Refs, and objects that must be there."""


@contextmanager
def recorded(root: Path) -> Iterator[Disk]:
    """Record what stores do below a directory."""
    disk = Disk(root)
    with pytest.MonkeyPatch.context() as patch:
        for module in (files_host, sqlite_host):
            patch.setattr(module, "os", RecordingOs(disk))
        patch.setattr(sqlite_host, "sqlite3", RecordingSqlite(disk))
        patch.setattr(
            sqlite_host,
            "_SETTINGS",
            (*sqlite_host._SETTINGS, "PRAGMA wal_autocheckpoint = 12", "PRAGMA cache_size = 5"),
        )
        yield disk


class History:
    """Things done to a store, each acknowledged when it is done."""

    def __init__(self, disk: Disk, open_store: Open) -> None:
        self._disk = disk
        self._refs: dict[str, Digest] = {}
        self._objects: set[Digest] = set()
        self._open = open_store
        self.store = open_store(disk.root / "deep" / "down")

    def run(self) -> None:
        self.save("work", first="1")
        self.save("work", second="2", big=random.Random(1).randbytes(9000).hex())
        self.write("not needed by anything")
        self.save("other", second="2")
        self.delete("work")
        self.collect(1000.0)
        self.reopen()
        self.save("work", third="3", second="2")
        self.collect(2000.0)
        self.save("other", fourth="4")
        self.reopen()
        self.save("work", fifth="5")

    def save(self, name: str, **files: str) -> None:
        root = save(self.store, name, **files)
        self._refs[name] = root
        self._objects |= {root, *(digest_of(piece(text)) for text in files.values())}
        self._done()

    def write(self, text: str) -> None:
        self._objects.update(Objects(self.store).write([piece(text)]))
        self._done()

    def delete(self, name: str) -> None:
        self.store.delete(name, self._refs.pop(name))
        self._done()

    def collect(self, now: float) -> None:
        collect(self.store, now=now, grace=100.0)
        self._objects &= set(self.store.digests())
        self._done()

    def reopen(self) -> None:
        self.store.close()
        self.store = self._open(self._disk.root / "deep" / "down")

    def _done(self) -> None:
        self._disk.acknowledge((dict(self._refs), frozenset(self._objects)))


NOTHING: State = ({}, frozenset())


def check_survived(store: Store, before: State, after: State) -> None:
    assert store.list() in (before[0], after[0])
    assert list(check(store)) == []
    Objects(store).read(sorted(before[1] & after[1]))


def check_recovered(path: Path, open_store: Open, before: State, after: State) -> None:
    """Recover twice, then go on."""
    for _ in range(2):
        store = open_store(path / "deep" / "down")
        check_survived(store, before, after)
        store.close()
    store = open_store(path / "deep" / "down")
    save(store, "new", a="new")
    store.delete("new", digest_of(directory(a="new")))
    check_survived(store, before, after)
    store.close()


@DURABLE
@pytest.mark.slow
def test_a_power_cut_at_every_sync(tmp_path: Path, open_store: Open) -> None:
    (tmp_path / "recorded").mkdir()
    with recorded(tmp_path / "recorded") as disk:
        history = History(disk, open_store)
        history.run()
        history.store.close()
    rng = random.Random(7)
    cuts = disk.cuts()
    assert len(cuts) > 50
    again = tmp_path / "again"
    for cut in cuts if amount(False, True) else rng.sample(cuts, 40):
        before, after = disk.known(cut)
        before = before or NOTHING
        for state in disk.states(cut, rng, samples=amount(2, 20)):
            materialise(state, again)
            check_recovered(again, open_store, before, after or before)
            shutil.rmtree(again)


@DURABLE
@pytest.mark.slow
def test_a_power_cut_while_recovering(tmp_path: Path, open_store: Open) -> None:
    (tmp_path / "recorded").mkdir()
    with recorded(tmp_path / "recorded") as disk:
        history = History(disk, open_store)
        history.run()
    rng = random.Random(8)
    first, second = tmp_path / "first", tmp_path / "second"
    for cut in rng.sample(disk.cuts(), amount(6, 60)):
        before, after = disk.known(cut)
        before = before or NOTHING
        materialise(next(disk.states(cut, rng, samples=1)), first)
        with recorded(first) as recovery:
            store = open_store(first / "deep" / "down")
            check_survived(store, before, after or before)
            store.close()
        for inner in rng.sample(recovery.cuts(), min(3, len(recovery.cuts()))):
            for state in recovery.states(inner, rng, samples=amount(1, 4)):
                materialise(state, second)
                check_recovered(second, open_store, before, after or before)
                shutil.rmtree(second)
        shutil.rmtree(first)


ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES)


@DURABLE
@pytest.mark.slow
@pytest.mark.parametrize("lasts", [False, True])
def test_every_call_can_fail(tmp_path: Path, open_store: Open, lasts: bool) -> None:
    """It is an error that says so; what was acknowledged is there at once, and after a power cut that follows.

    A sync that failed is not made good by the next one.
    """
    (tmp_path / "whole").mkdir()
    with recorded(tmp_path / "whole") as disk:
        History(disk, open_store).run()
    rng = random.Random(9)
    points = range(1, disk.calls + 1)
    again = tmp_path / "again"
    failed = 0
    for fails_at in points if amount(False, True) else rng.sample(points, 25):
        root = tmp_path / "root"
        root.mkdir()
        with recorded(root) as disk:
            disk.fails_at, disk.errno, disk.lasts = fails_at, rng.choice(ERRNOS), lasts
            disk.dooms_names = open_store is packs and not lasts  # which takes back names that are not durable
            history = History(disk, open_store)
            try:
                history.run()
            except StoreError as error:
                failed += str(error).startswith("the store ")
            disk.fails_at = 0
            before = disk.known(len(disk.record))[0] or NOTHING
            store = history.store
            now = store.list()
            assert len(set(now.items()) ^ set(before[0].items())) <= 2, "only one change was under way"
            kept = before[1] & frozenset(store.digests())
            assert list(check(store)) == []
            # The same process goes on, and is told that it was done.
            after = save(store, "after", a="after")
            cut = len(disk.record)
            store.close()
        for state in disk.states(cut, rng, samples=amount(2, 6)):
            materialise(state, again)
            check_recovered(again, open_store, *(({**refs, "after": after}, kept) for refs in (before[0], now)))
            shutil.rmtree(again)
        shutil.rmtree(root)
    assert failed > 5


def test_the_disk_that_forgets_finds_a_store_that_does_not_sync(tmp_path: Path) -> None:
    """The battery can fail: without syncs, it does."""
    for name, how in {"wal": "OFF", "journal": "OFF"}.items():
        root = tmp_path / name
        root.mkdir()
        with recorded(root) as disk, pytest.MonkeyPatch.context() as patch:
            settings = [setting for setting in sqlite_host._SETTINGS if "synchronous" not in setting]
            patch.setattr(sqlite_host, "_SETTINGS", (*settings, f"PRAGMA synchronous = {how}"))
            history = History(disk, sqlite)
            history.run()
        lost = 0
        for state in disk.states(len(disk.record), random.Random(1), samples=10):
            again = root / "again"
            materialise(state, again)
            try:
                check_recovered(again, sqlite, *[disk.known(len(disk.record))[0]] * 2)
            except (AssertionError, StoreError):
                lost += 1
            shutil.rmtree(again)
        assert lost > 5
