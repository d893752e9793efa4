"""A store on an fsspec file system whose changes fail, are cut short, or whose answers are lost."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from belljar.store.collect import check
from belljar.store.errors import StoreError
from belljar.store.store import Store
from tests.reliability.amount import amount
from tests.store.contract import save
from tests.store.powercut import Disk
from tests.store.test_powercut import NOTHING, History, check_survived

FAULTS = {
    "nothing is done": 0.0,
    "a part is written": 0.5,
    "an empty file is left": 0.001,
    "it is done, but the answer is lost": 1.0,
}


class FaultyFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """Files in memory. The n-th change fails, and with `lasts` all that follow."""

    protocol = "faulty"
    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012 - fsspec's own
    pseudo_dirs = [""]  # noqa: RUF012
    calls = 0
    fails_at = 0
    lasts = False
    part = 0.0

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        if mode == "create" and self.exists(path):
            raise FileExistsError(path)
        if self._fails():
            if self.part:
                super().pipe_file(path, value[: int(len(value) * self.part)], mode=mode)
            raise TimeoutError("the connection was lost")
        super().pipe_file(path, value, mode=mode, **options)

    def rm_file(self, path: str) -> None:
        fails = self._fails()
        if not fails or self.part == 1.0:
            super().rm_file(path)
        if fails:
            raise TimeoutError("the connection was lost")

    @classmethod
    def _fails(cls) -> bool:
        cls.calls += 1
        return bool(cls.fails_at) and (cls.calls >= cls.fails_at if cls.lasts else cls.calls == cls.fails_at)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_every_change_of_a_remote_store_can_fail(tmp_path: Path, fault: str) -> None:
    fsspec.register_implementation("faulty", FaultyFileSystem, clobber=True)
    rng = random.Random(3)
    said: set[str] = set()
    for lasts in (False, True):
        points: Any = itertools.count(1)
        if not amount(False, True):
            points = sorted(rng.sample(range(1, 60), 12))
        for fails_at in points:
            FaultyFileSystem.store.clear()
            FaultyFileSystem.part = FAULTS[fault]
            FaultyFileSystem.calls, FaultyFileSystem.fails_at, FaultyFileSystem.lasts = 0, fails_at, lasts
            disk = Disk(tmp_path)
            history = History(disk, lambda _: Store.fsspec("faulty://store"))
            try:
                history.run()
            except StoreError as error:
                said.add(str(error))
            if FaultyFileSystem.calls < fails_at:
                break
            FaultyFileSystem.fails_at = 0
            (before, _) = disk.known(0)
            before = before or NOTHING
            for store in (history.store, Store.fsspec("faulty://store")):
                now = store.list()
                assert len(set(now.items()) ^ set(before[0].items())) <= 2, "only one change was under way"
                check_survived(store, (now, before[1] & frozenset(store.digests())), (now, before[1]))
                save(store, "after", a="after")
                assert list(check(store)) == []
                store.delete("after", store.list()["after"])
    assert said == {"the store faulty://store: the connection was lost"}
