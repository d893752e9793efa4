"""The utilities' speed beside the real GNU programs' and jq's, in the same run, their process starts included.

Usage: python benchmarks/utilities.py [--json] [-n ROUNDS] [--size large|small|both] [NAME...]

Each case runs the same argv in a session inside this process and as a real program on the same files (in /dev/shm:
memory, as ours is). The two take turns, and of all rounds the best of each counts, so that a busy machine hurts both
alike. Their outputs must be equal. Large: 100,000 lines, 1 MB of JSON, 2,000 files; the target is a geometric mean of
at most 3 times the native time. Small: under 100 lines; every case must be faster than the native program.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from belljar.worker.session import Session
from tests.adapter import new_session, put

WORK = "/tmp/w"
LOCALE = "C.UTF-8"
LARGE_MEAN = 3.0


@dataclass(frozen=True)
class Size:
    """How much there is of each kind of input."""

    name: str
    lines: int
    records: int
    files: int
    diff_lines: int


SIZES = {
    "large": Size("large", lines=100_000, records=9_000, files=2_000, diff_lines=10_000),
    "small": Size("small", lines=90, records=80, files=20, diff_lines=90),
}


@dataclass(frozen=True)
class Figure:
    """One case; times in seconds."""

    size: str
    name: str
    ours: float
    native: float
    equal: bool

    @property
    def ratio(self) -> float:
        return self.ours / self.native


def exactly(output: bytes) -> object:
    return output


def in_any_order(output: bytes) -> object:
    """For walks of directories, whose order is the file system's own."""
    return sorted(output.splitlines())


def as_archive(output: bytes) -> object:
    """The names and contents of a compressed archive: owners, times and the compressor's choices may differ."""
    with tarfile.open(fileobj=io.BytesIO(output)) as archive:
        return sorted((m.name, (archive.extractfile(m) or io.BytesIO()).read()) for m in archive.getmembers())


CASES: dict[str, tuple[list[str], Callable[[bytes], object]]] = {
    "grep -c": (["grep", "-c", "qu[aeiou]", "log.txt"], exactly),
    "grep -c fixed": (["grep", "-c", "delta", "log.txt"], exactly),
    "grep -rn": (["grep", "-rn", "needle", "tree"], in_any_order),
    "sed s///g": (["sed", "s/an/AN/g", "log.txt"], exactly),
    "sed -E groups": (["sed", "-E", "s/([a-z]+) ([0-9]+)/\\2 \\1/", "log.txt"], exactly),
    "awk field sum": (["awk", "{ s += $2 } END { print s }", "log.txt"], exactly),
    "awk word count": (
        ["awk", "{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print w, n[w] }", "words.txt"],
        in_any_order,
    ),
    "sort": (["sort", "log.txt"], exactly),
    "sort -n -k2": (["sort", "-n", "-k2", "log.txt"], exactly),
    "uniq -c": (["uniq", "-c", "runs.txt"], exactly),
    "cut -d": (["cut", "-d", " ", "-f", "1,3", "log.txt"], exactly),
    "tr": (["tr", "a-z", "A-Z"], exactly),
    "wc": (["wc", "log.txt"], exactly),
    "head": (["head", "-n", "1000", "log.txt"], exactly),
    "tail": (["tail", "-n", "1000", "log.txt"], exactly),
    "jq filter": (["jq", "-c", ".[] | select(.age > 50) | {name, tags}", "data.json"], exactly),
    "tar -cz": (["tar", "-czf", "-", "tree"], as_archive),
    "diff": (["diff", "old.txt", "new.txt"], exactly),
    "find -name": (["find", "tree", "-name", "*7.txt"], in_any_order),
    "find -exec ;": (["find", "tree", "-name", "*7.txt", "-exec", "wc", "-l", "{}", ";"], in_any_order),
    "find -exec +": (["find", "tree", "-name", "*.txt", "-exec", "grep", "-l", "needle", "{}", "+"], in_any_order),
}
"""argv, and how outputs are compared; `tr` reads log.txt from its standard input."""

_WORDS = "alpha bravo charlie delta echo foxtrot quebec banana mango quilt lantern orange quota sand river".split()


def inputs(size: Size) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files the cases read, the same on every run."""
    chance = random.Random(size.lines)

    def line() -> str:
        word, other = chance.choice(_WORDS), chance.choice(_WORDS)
        return f"{word}{chance.randrange(1000)} {chance.randrange(10**6)} {other} {chance.randrange(10**9):x}"

    yield "log.txt", "".join(line() + "\n" for _ in range(size.lines)).encode()
    yield "words.txt", "".join(" ".join(chance.choices(_WORDS, k=5)) + "\n" for _ in range(size.lines)).encode()
    yield (
        "runs.txt",
        "".join(f"{chance.choice(_WORDS)}\n" * chance.randrange(1, 4) for _ in range(size.lines // 2)).encode(),
    )
    people = [
        {
            "id": number,
            "name": f"{chance.choice(_WORDS)} {number}",
            "age": chance.randrange(100),
            "tags": chance.choices(_WORDS, k=3),
            "score": chance.randrange(1000) / 8,
        }
        for number in range(size.records)
    ]
    yield "data.json", ("[\n" + ",\n".join(map(json.dumps, people)) + "\n]\n").encode()
    for number in range(size.files):
        body = [line() for _ in range(20)]
        if number % 10 == 0:
            body[7] = "a needle in the hay"
        yield f"tree/d{number % 40}/f{number}.txt", "\n".join(body).encode() + b"\n"
    old = [line() for _ in range(size.diff_lines)]
    new = list(old)
    for _ in range(size.diff_lines // 50):
        place = chance.randrange(len(new))
        new[place : place + 1] = [line() for _ in range(chance.randrange(3))]
    yield "old.txt", "\n".join(old).encode() + b"\n"
    yield "new.txt", "\n".join(new).encode() + b"\n"


class Bench:
    """The same files in a session and in a real directory."""

    def __init__(self, size: Size, directory: Path) -> None:
        self._directory = directory
        self._session: Session = new_session({"LANG": LOCALE})
        self._stdin = b""
        for name, data in inputs(size):
            put(self._session, f"{WORK}/{name}", data)
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            if name == "log.txt":
                self._stdin = data

    def ours(self, argv: list[str]) -> tuple[float, bytes]:
        stdin = self._stdin if argv[0] == "tr" else b""
        start = time.perf_counter()
        result = self._session.exec(argv, stdin=stdin, cwd=WORK)
        return time.perf_counter() - start, result.stdout + result.stderr

    def native(self, argv: list[str]) -> tuple[float, bytes]:
        stdin = self._stdin if argv[0] == "tr" else b""
        env = {"LANG": LOCALE, "PATH": "/usr/local/bin:/usr/bin:/bin"}
        start = time.perf_counter()
        result = subprocess.run(argv, input=stdin, capture_output=True, check=False, cwd=self._directory, env=env)
        return time.perf_counter() - start, result.stdout + result.stderr


def measure(size: Size, names: list[str], rounds: int) -> list[Figure]:
    ours, native = dict.fromkeys(names, float("inf")), dict.fromkeys(names, float("inf"))
    equal = dict.fromkeys(names, True)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        bench = Bench(size, Path(directory))
        for turn in range(rounds):
            for name in names:
                argv, meaning = CASES[name]
                mine, output = bench.ours(argv)
                theirs, expected = bench.native(argv)
                ours[name], native[name] = min(ours[name], mine), min(native[name], theirs)
                if turn == 0:
                    equal[name] = meaning(output) == meaning(expected)
    return [Figure(size.name, name, ours[name], native[name], equal[name]) for name in names]


def mean(figures: list[Figure]) -> float:
    return exp(sum(log(figure.ratio) for figure in figures) / len(figures))


def show(size: Size, figures: list[Figure]) -> None:
    print(f"\n{size.name:<16}{'belljar ms':>12}{'native ms':>12}{'ratio':>8}{'target':>8}")
    for figure in figures:
        target = "<= 3.0" if size.name == "large" else "< 1.0"
        missed = figure.ratio > LARGE_MEAN if size.name == "large" else figure.ratio >= 1
        remark = "" if figure.equal else "  OUTPUT DIFFERS"
        remark += "  (above)" if missed else ""
        times = f"{1000 * figure.ours:>12.2f}{1000 * figure.native:>12.2f}"
        print(f"{figure.name:<16}{times}{figure.ratio:>8.2f}{target:>8}{remark}")
    worst = max(figures, key=lambda figure: figure.ratio)
    print(f"geometric mean {mean(figures):.2f}, worst {worst.ratio:.2f} ({worst.name})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("-n", type=int, help="rounds (5 large, 15 small)")
    parser.add_argument("--size", choices=[*SIZES, "both"], default="both")
    parser.add_argument("names", nargs="*", help="parts of names")
    options = parser.parse_args()
    names = [name for name in CASES if not options.names or any(part in name for part in options.names)]
    every: list[Figure] = []
    met = True
    for size in SIZES.values():
        if options.size not in (size.name, "both"):
            continue
        figures = measure(size, names, options.n or (5 if size.name == "large" else 15))
        met &= mean(figures) <= LARGE_MEAN if size.name == "large" else all(f.ratio < 1 for f in figures)
        met &= all(figure.equal for figure in figures)
        every += figures
        if not options.json:
            show(size, figures)
    if options.json:
        sizes = {figure.size for figure in every}
        means = {size: mean([figure for figure in every if figure.size == size]) for size in sizes}
        cases = [{**asdict(figure), "ratio": figure.ratio} for figure in every]
        print(json.dumps({"cases": cases, "geometric_mean": means, "met": met}, indent=2))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
