"""Random work in a sandbox: every snapshot holds exactly what was there, wherever and however it is restored."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from belljar import Sandbox, Snapshot, Store
from belljar.store.collect import check

SEEDS = range(6)
LOOK = r"""cd /workspace; find . /tmp /dev/shm/* -printf '%p\t%y\t%m\t%U\t%G\t%T@\t%l\n' | sort
find . ! -type d -printf '%p %n\n' | sort; find . -type f -printf '%p %s\n' | sort
find . -type f -exec sha256sum {} + | sort"""
ELSEWHERE = """
import sys
from belljar import Sandbox, Store
store = Store.sqlite(sys.argv[1])
with Sandbox.restore(sys.argv[2], store) as sandbox:
    sys.stdout.buffer.write(sandbox.exec(sys.argv[3]).stdout_bytes)
    sandbox.exec("echo x > /workspace/another; rm /workspace/another")  # its directory is told again
    print(sandbox.snapshot().record.trees[0].hard_links)
"""


class Work:
    """Commands that build and change a tree; some fail, as they may."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = ["a", "b", "c", "'d e'", "$'\\xfe\\xff'", "$'n\\nl'", "ü", "-x", "f.txt", "g"]

    def path(self) -> str:
        return "./" + "/".join(self._random.choices(self._names, k=self._random.choice([1, 1, 2, 2, 3])))

    def command(self) -> str:
        one, other, number = self.path(), self.path(), self._random.randrange(1 << 20)
        return self._random.choice(
            [
                f"mkdir -p {one}",
                f"mkdir -p {one}/{number % 5}/{number % 3}",
                f"echo {number} > {one}",
                f"echo {number} >> {one}",
                f"head -c {number % 200_000} /dev/urandom > {one}",
                f"truncate -s {number * 16} {one}",
                f"printf x | dd of={one} bs=1 seek={number * 9} conv=notrunc",
                f"ln {one} {other}",
                f"ln -s {other} {one}",
                f"mkfifo fifo{number % 3}",  # which nothing else opens
                f"mv -T {one} {other}",
                f"mv -T {one} {other}",
                f"rm -rf {one}",
                f"rmdir {one}",
                f"chmod {self._random.choice(['600', '755', '4711', '2770', '1777'])} {one}",
                f"touch -d @{number}.{number:09} {one}",
                f"cp -r {one} {other}",
                f"cp {one} /tmp/; ln {one} /dev/shm/{number % 7}",
            ]
        )

    def script(self, count: int) -> str:
        return "cd /workspace\n" + "\n".join(f"{{ {self.command()}; }} 2>/dev/null" for _ in range(count))


def trees(snapshot: Snapshot) -> object:
    return [(tree.path, tree.digest, tree.hard_links) for tree in snapshot.record.trees]


@pytest.mark.battery(sample=1)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_restored_is_what_was_there(tmp_path: Path, seed: int) -> None:
    work = Work(seed)
    path = tmp_path / "store.db"
    stores = Store.sqlite(path), Store.fsspec(str(tmp_path / "packs"))
    with Sandbox(store=stores[0]) as sandbox:
        for _ in range(3):
            sandbox.exec(work.script(40))
            wanted = sandbox.exec(LOOK).stdout_bytes
            kept = sandbox.snapshot()
        whole = sandbox.snapshot(store=stores[1])  # which has nothing yet, and so is told everything
        assert trees(whole) == trees(kept)
    for _ in range(3):
        with Sandbox.restore(kept) as one, Sandbox.restore(whole) as other:
            assert one.exec(LOOK).stdout_bytes == wanted
            assert other.exec(LOOK).stdout_bytes == wanted
            assert trees(one.snapshot()) == trees(kept)
            assert trees(other.snapshot(store=stores[0])) == trees(kept)
            for _ in range(2):
                one.exec(work.script(20))
                wanted = one.exec(LOOK).stdout_bytes
                kept = one.snapshot()
            whole = one.snapshot(store=stores[1])
            assert trees(whole) == trees(kept)
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(path), kept.ref, LOOK], capture_output=True, check=True, timeout=300
    )
    assert done.stdout == wanted + f"{kept.record.trees[0].hard_links}\n".encode()
    for store in stores:
        assert list(check(store)) == []
        store.close()


@pytest.mark.battery
@pytest.mark.slow
def test_a_hundred_thousand_files(tmp_path: Path) -> None:
    store = Store.sqlite(tmp_path / "store.db")
    with Sandbox(store=store) as sandbox:
        sandbox.exec(
            "for d in $(seq 100); do mkdir d$d; (cd d$d; touch $(seq 1000); echo $d > 7); done", timeout=300
        ).check()
        first = sandbox.snapshot()
    with Sandbox.restore(first) as sandbox:
        assert sandbox.exec("find . -type f | wc -l; cat d42/7").stdout == "100000\n42\n"
        assert sandbox.snapshot().tree == first.tree
    store.close()
