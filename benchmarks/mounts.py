"""A host mount against files inside: first pass, second pass, and the ratios. `--quick` for a look.

Each row: a command over the same tree, inside the sandbox's own file system (second pass), on a host mount the first
time, and on the host mount again. Aims: 8x for the first pass, 3x for the second.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from belljar import Mount, Sandbox

FILES = 400 if "--quick" in sys.argv else 2245
BYTES = 10_000
"""Mean length of a file."""
LARGE = 64 << 20
REPEATS = 3
INSIDE = "/home/agent/tree"

PYTHON = r"""
import os
n = 0
for top, _, names in os.walk('.'):
    for name in names:
        n += len(open(os.path.join(top, name), 'rb').read())
print(n)
"""
COMMANDS = {
    "grep -rn over all": "grep -rn needle repo | wc -l",
    "find -type f": "find . -type f | wc -l",
    "find -size (stats)": "find . -size +20k | wc -l",
    "ls -lR": "ls -lR . | wc -l",
    "stat of each path": "xargs stat -c %Y <list | wc -l",
    "git status": "cd repo && git status --short | wc -l",
    "python reads all": f'python3 -c "{PYTHON}"',
    "cat of one large file": "cat large/file | wc -c",
}


def make_tree(top: Path) -> None:
    """About `FILES` text files of various lengths in directories four deep."""
    chosen = random.Random(7)
    words = ["alpha", "beta", "gamma", "delta", "return", "import", "value", "self", "needle?", "\n"]
    paths: list[Path] = []
    for number in range(FILES):
        directory = top / "repo" / f"p{number % 7}" / f"q{number // 7 % 6}" / f"r{number // 42 % 5}"
        directory.mkdir(parents=True, exist_ok=True)
        paths.append(directory / f"file{number}.py")
        length = int(chosen.expovariate(1 / BYTES))
        paths[-1].write_text(" ".join(chosen.choices(words, k=length // 6)) + "\n")
    (top / "large").mkdir()
    (top / "large" / "file").write_bytes(chosen.randbytes(1 << 20) * (LARGE >> 20))
    (top / "list").write_text("".join(f"{path.relative_to(top)}\n" for path in paths))


def seconds(sandbox: Sandbox, command: str, cwd: str) -> tuple[float, str]:
    began = time.perf_counter()
    result = sandbox.exec(command, cwd=cwd)
    if result.exit_code or result.stderr:
        raise SystemExit(f"{command}: {result.stderr}")
    return time.perf_counter() - began, result.stdout


def measure(sandbox: Sandbox, command: str, kinds: dict[str, Mount]) -> dict[str, float]:
    """Best of several: inside, on a new mount, and there again."""
    found: dict[str, float] = {}
    _, expected = seconds(sandbox, command, INSIDE)
    for _ in range(REPEATS):
        times = {"inside": seconds(sandbox, command, INSIDE)[0]}
        for kind, mount in kinds.items():
            sandbox.mount(kind, mount)
            for which in ("first", "second"):
                times[f"{kind} {which}"], got = seconds(sandbox, command, kind)
                if got != expected:
                    raise SystemExit(f"{command}: {kind} says {got!r}, not {expected!r}")
            sandbox.unmount(kind)
        for name, value in times.items():
            found[name] = min(value, found.get(name, value))
    return found


def main() -> None:
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")]
    with tempfile.TemporaryDirectory() as folder, Sandbox() as sandbox:
        top = Path(folder) / "tree"
        top.mkdir()
        make_tree(top)
        for words in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "all"],
        ):
            subprocess.run(["git", "-C", str(top / "repo"), *words], check=True)
        sandbox.files.upload(str(top), INSIDE)
        kinds = {"/host": Mount.host(str(top)), "/over": Mount.overlay(Mount.host(str(top)))}
        print(f"{FILES} files of {BYTES} bytes on average, {LARGE >> 20} MB in one more")
        print(
            f"{'':24}{'inside':>9}" + "".join(f"{kind + ' 1st':>16}{kind + ' 2nd':>16}" for kind in kinds), flush=True
        )
        for name, command in COMMANDS.items():
            if wanted and not any(word in name for word in wanted):
                continue
            times = measure(sandbox, command, kinds)
            inside = times["inside"]
            cells = [times[f"{kind} {which}"] for kind in kinds for which in ("first", "second")]
            row = "".join(f"{t * 1000:6.0f} ms {t / inside:5.1f}x" for t in cells)
            print(f"{name:24}{inside * 1000:6.0f} ms{row}", flush=True)


if __name__ == "__main__":
    main()
