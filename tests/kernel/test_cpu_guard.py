"""What the CPU guard may interrupt is said by the packages themselves."""

from __future__ import annotations

import subprocess
import sys

import pytest

import belljar.abi
import belljar.bin  # noqa: F401 - so that its marker is there
from belljar.kernel.cpu_guard_host import must_defer

LOADED = """
import sys
from belljar.engines.worker.programs import preload
import belljar.worker.worker_host, belljar.worker.spawned_host, belljar.zygote.zygote_host
preload()
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("belljar.")}
print(*sorted(room for room in rooms if not hasattr(sys.modules["belljar." + room], "CPU_GUARD")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="zygotes are Linux's")
def test_every_package_that_a_worker_loads_says_so() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "\n", "these packages have no CPU_GUARD"


@pytest.mark.parametrize(
    ("callers", "deferred"),
    [
        (["belljar.bin.sort"], False),
        (["belljar.bin.sort", "re"], False),
        (["belljar.bin.sort", "belljar.abi.paths", "re"], False),
        (["belljar.bin.sort", "belljar.kernel.pipe"], True),
        (["belljar.bin.sort", "belljar.kernel.vfs.view", "belljar.abi.paths"], True),
        (["belljar.kernel.fiber", "belljar.bin.sort"], False),
        (["belljar.unmarked.module"], True),
        (["re"], True),
    ],
)
def test_the_innermost_package_that_is_no_library_decides(callers: list[str], deferred: bool) -> None:
    """Frames of modules of these names, the outermost first."""
    found: list[bool] = []
    source = "def call(rest):\n    rest[0](rest[1:])\n"

    def look(_rest: object) -> None:
        frame = sys._getframe(1)
        # Below these frames are pytest's, which are nobody's: cut them off by what decides first.
        found.append(must_defer(frame))

    functions = []
    for name in callers:
        scope = {"__name__": name}
        exec(source, scope)  # noqa: S102 - a frame of a module of that name
        functions.append(scope["call"])
    functions[0]([*functions[1:], look])  # type: ignore[operator]
    assert found == [deferred]
