"""Snapshots beside `tar | zstd` and `git add && git commit` of the same tree, in the same run. `--quick` for a look.

    first        a snapshot of 10,000 files, 100 MB: at most 3 times what `tar | zstd` takes
    second       after one file has changed: at most 30 ms
    restore      until the first command has ended: at most 15 ms, from 10 to 100,000 files
    read         everything, after a restore: at most twice what it takes if the store was read at once
    image        a sandbox from an image, warm: at most 1.3 times a plain one
    size         20 snapshots of a git repository with small changes: at most 1.2 times the first

Words on the command line choose rows.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from belljar import Image, Limits, Sandbox, Store
from belljar.store.objects import Digest
from belljar.store.store import Objects
from belljar.store.tree import links_of

QUICK = "--quick" in sys.argv
WANTED = [word for word in sys.argv[1:] if not word.startswith("-")]
FILES = 1000 if QUICK else 10_000
MANY = 5000 if QUICK else 100_000
BYTES = 10_000
"""Mean length of a file."""
REPEATS = 2 if QUICK else 3
INSIDE = "/home/agent/tree"
LIMITS = Limits(files=1_000_000, file_bytes=1 << 30, memory_bytes=4 << 30)
READ = f"cd {INSIDE} && find . -type f | xargs cat | wc -c"


def make_tree(top: Path, files: int, mean: int) -> None:
    """Text like source code: it shrinks to about a third."""
    chosen = random.Random(files)
    words = [chosen.randbytes(chosen.randrange(1, 5)).hex() for _ in range(4000)]
    for number in range(files):
        directory = top / f"p{number % 7}" / f"q{number // 7 % 20}"
        directory.mkdir(parents=True, exist_ok=True)
        length = int(chosen.expovariate(1 / mean))
        (directory / f"file{number}.py").write_text(" ".join(chosen.choices(words, k=length // 6)) + "\n")


def seconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def run(*words: str, cwd: Path) -> None:
    subprocess.run(words, cwd=cwd, check=True)


def commit(tree: Path, scratch: Path) -> None:
    git = (
        "git",
        f"--git-dir={scratch}",
        f"--work-tree={tree}",
        "-c",
        "gc.auto=0",
        "-c",
        "user.name=n",
        "-c",
        "user.email=e",
    )
    run(*git, "init", "-q", cwd=tree)
    run(*git, "add", ".", cwd=tree)
    run(*git, "commit", "-qm", "all", cwd=tree)


def report(name: str, value: float, aim: float, unit: str, beside: str = "") -> None:
    print(f"{name:36}{value:9.2f} {unit:3} (aim: {aim:g}) {'' if value <= aim else 'MISSED'}  {beside}", flush=True)


def wanted(name: str) -> bool:
    return not WANTED or name in WANTED


def first_and_second(folder: Path) -> None:
    """Beside both tools; the best of several, turn by turn."""
    tree = folder / "tree"
    make_tree(tree, FILES, BYTES)
    best: dict[str, float] = {}
    for turn in range(REPEATS):
        times = {
            "tar": seconds(lambda: run("sh", "-c", "tar -c tree | zstd -qf -o tree.tar.zst", cwd=folder)),
            "git": seconds(lambda turn=turn: commit(tree, folder / f"git{turn}")),  # type: ignore[misc]
        }
        with closing(Store.sqlite(folder / f"{turn}.db")) as store, Sandbox(store=store, limits=LIMITS) as sandbox:
            sandbox.files.upload(str(tree), INSIDE)
            times["first"] = seconds(lambda: sandbox.snapshot("first"))
            for number in range(10):
                sandbox.exec(f"echo {number} > {INSIDE}/p1/q1/changed").check()
                again = seconds(lambda: sandbox.snapshot("second"))
                times["second"] = min(again, times.get("second", again))
        for name, value in times.items():
            best[name] = min(value, best.get(name, value))
    beside = f"{best['first']:.2f} s; tar | zstd {best['tar']:.2f} s, git {best['git']:.2f} s"
    report(f"first: {FILES} files, of tar | zstd", best["first"] / best["tar"], 3, "x", beside)
    report("second: one file changed", best["second"] * 1000, 30, "ms")


def restore(folder: Path) -> None:
    for files in (10, 1000, MANY):
        tree = folder / f"of{files}"
        make_tree(tree, files, 100)
        with closing(Store.sqlite(folder / f"of{files}.db")) as store:
            with Sandbox(store=store, limits=LIMITS) as sandbox:
                sandbox.files.upload(str(tree), INSIDE)
                sandbox.snapshot("tree")
            times = [first_exec(store) for _ in range(10)]
            report(f"restore: {files} files", min(times) * 1000, 15, "ms", f"median {sorted(times)[5] * 1000:.1f} ms")


def first_exec(store: Store) -> float:
    began = time.perf_counter()
    with Sandbox.restore("tree", store=store) as sandbox:
        sandbox.exec(f"ls {INSIDE}").check()
        return time.perf_counter() - began


def read(folder: Path) -> None:
    """Beside the time to read every object of the store, and then the same command over files in memory."""
    tree = folder / "read"
    make_tree(tree, FILES // 4, BYTES)
    path = folder / "read.db"
    with closing(Store.sqlite(path)) as store, Sandbox(store=store, limits=LIMITS) as sandbox:
        sandbox.files.upload(str(tree), INSIDE)
        snapshot = sandbox.snapshot("tree")
        lazy, eager = [], []
        for _ in range(REPEATS):
            lazy.append(restore_and_read(path))
            inside = seconds(lambda: sandbox.exec(READ).check())
            eager.append(seconds(lambda: read_all(store, snapshot.digest)) + inside)
    beside = f"{min(lazy):.2f} s; at once {min(eager):.2f} s"
    report("read: all, after a restore", min(lazy) / min(eager), 2, "x", beside)


def restore_and_read(path: Path) -> float:
    """In a process of its own: nothing is in its cache."""
    program = (
        "import sys, time; from belljar import Sandbox, Store; Sandbox().close(); began = time.perf_counter()\n"
        f"with Sandbox.restore('tree', store=Store.sqlite(sys.argv[1])) as s: s.exec({READ!r}).check()\n"
        "print(time.perf_counter() - began)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=True, capture_output=True, text=True)
    return float(done.stdout)


def read_all(store: Store, root: Digest) -> None:
    objects = Objects(store)
    seen = {root}
    waiting = [root]
    while waiting:
        some, waiting = waiting[-256:], waiting[:-256]
        new = {link for data in objects.read(some) for link in links_of(data)} - seen
        seen |= new
        waiting += new


def image(folder: Path) -> None:
    with closing(Store.sqlite(folder / "image.db")) as store:
        built = Image().files({"/opt/a": "a"}).run("mkdir b; echo b > b/c").build(store)
        plain, warm = [], []
        for _ in range(30):
            plain.append(seconds(lambda: create()))
            warm.append(seconds(lambda: create(image=built, store=store)))
    beside = f"{min(warm) * 1000:.1f} ms; plain {min(plain) * 1000:.1f} ms"
    report("image: a sandbox, of a plain one", min(warm) / min(plain), 1.3, "x", beside)


def create(**options: object) -> None:
    with Sandbox(**options) as sandbox:  # type: ignore[arg-type]
        sandbox.exec("true").check()


def size(folder: Path) -> None:
    tree, path = folder / "repo", folder / "size.db"
    make_tree(tree, FILES // 10, BYTES)
    sizes: list[int] = []
    with closing(Store.sqlite(path)) as store, Sandbox(store=store, limits=LIMITS) as sandbox:
        sandbox.files.upload(str(tree), INSIDE)
        sandbox.exec(f"cd {INSIDE} && git init -q && git add . && git commit -qm start").check()
        for number in range(20):
            sandbox.exec(
                f"cd {INSIDE} && echo {number} >> p1/q1/changed && git add . && git commit -qm {number}"
            ).check()
            sandbox.snapshot(f"s{number}")
            store.close()  # so that everything is in one file
            sizes.append(path.stat().st_size)
    report("size: 20 snapshots, of the first", sizes[-1] / sizes[0], 1.2, "x", f"{sizes[0] / 1e6:.1f} MB")


def main() -> None:
    for name, measure in {
        "first": first_and_second,
        "restore": restore,
        "read": read,
        "image": image,
        "size": size,
    }.items():
        if wanted(name):
            with tempfile.TemporaryDirectory() as folder:
                measure(Path(folder))


if __name__ == "__main__":
    main()
