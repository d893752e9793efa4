"""Native sandboxes beside `bwrap` with the same root and beside no sandbox, in one run. `--quick` for a look.

Each row: the median of our times, those of the others in the same rounds, and the ratios. `bwrap` is Debian's package,
unpacked into the tests' cache; where it can't be had, its column is empty.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from belljar import Sandbox
from tests.debian import Unreachable, install

ROUNDS = 20 if "--quick" in sys.argv else 100
BUILDS = 2 if "--quick" in sys.argv else 5
PACKAGE = "b/bubblewrap/bubblewrap_0.8.0-2+deb12u1_amd64.deb"
DIGEST = "3cc9134a3286ad01a323dcd924ba123eb634cefaeec82d774257e06308aeaadb"
SOURCE = "".join(
    f"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint f{n}(int x) {{ char b[64]; "
    f'snprintf(b, sizeof b, "%d", x * {n}); return (int)strlen(b) + atoi(b); }}\n'
    for n in range(1, 60)
)
FILES = 4
MAKE = "for n in " + " ".join(map(str, range(FILES))) + "; do gcc -O2 -c f.c -o f$n.o || exit 1; done"

Timed = Callable[[], object]


def bwrap() -> list[str] | None:
    """The command that starts `bwrap` with /usr, /proc, /dev and a /tmp of its own, in all namespaces."""
    try:
        place = install(
            "bubblewrap-0.8.0", {PACKAGE: DIGEST}, lambda name: "bwrap" if name.endswith("bin/bwrap") else None
        )
    except Unreachable:
        return None
    program = str(place / "bwrap")
    os.chmod(program, 0o700)
    links = [each for name in ("bin", "sbin", "lib", "lib64") for each in ("--symlink", f"usr/{name}", f"/{name}")]
    return [
        program, "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", *links, "--ro-bind",
        "/etc/alternatives", "/etc/alternatives", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir",
        "/tmp",
    ]  # fmt: skip


def medians(rounds: int, *runs: Timed | None) -> list[float | None]:
    """Milliseconds of each, taken in turns, after one that does not count."""
    found: list[list[float]] = [[] for _ in runs]
    for number in range(rounds + 1):
        for run, times in zip(runs, found, strict=True):
            if run is not None:
                began = time.perf_counter()
                run()
                if number:
                    times.append((time.perf_counter() - began) * 1e3)
    return [statistics.median(times) if times else None for times in found]


def show(what: str, ours: float | None, others: dict[str, float | None]) -> None:
    assert ours is not None
    row = f"{what:34} belljar {ours:8.2f} ms"
    for name, value in others.items():
        row += f"   {name} {'-' if value is None else f'{value:8.2f} ms  {ours / value:5.2f}x'}"
    print(row)


def call(words: list[str]) -> Timed:
    return lambda: subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def create() -> None:
    with Sandbox(tier="native") as sandbox:
        sandbox.exec(["true"])


def main() -> None:
    wrapped = bwrap()
    bare = call(["true"])
    ours, theirs, none = medians(ROUNDS, create, None if wrapped is None else call([*wrapped, "true"]), bare)
    show("create, true, close", ours, {"bwrap": theirs, "no sandbox": none})
    with Sandbox(tier="native", files={"f.c": SOURCE}) as sandbox, tempfile.TemporaryDirectory() as place:
        ours, none = medians(ROUNDS, lambda: sandbox.exec(["true"]), bare)
        show("exec of true in a live sandbox", ours, {"fork and exec": none})
        ours, none = medians(ROUNDS, lambda: sandbox.exec("echo a | cat"), call(["bash", "-c", "echo a | cat"]))
        show("a pipeline in bash", ours, {"no sandbox": none})
        Path(place, "f.c").write_text(SOURCE)
        inside = None if wrapped is None else call([*wrapped, "--bind", place, "/tmp", "bash", "-c", MAKE])
        outside = call(["bash", "-c", f"cd {place} && {MAKE}"])
        ours, theirs, none = medians(BUILDS, lambda: sandbox.exec(MAKE, check=True), inside, outside)
        show(f"compiling {FILES} files with gcc -O2", ours, {"bwrap": theirs, "no sandbox": none})
    with Sandbox(native=["true"]) as sandbox:
        ours, none = medians(ROUNDS, lambda: sandbox.exec("/usr/bin/true; :"), bare)
        show("true in a virtual sandbox, native=", ours, {"fork and exec": none})


if __name__ == "__main__":
    main()
