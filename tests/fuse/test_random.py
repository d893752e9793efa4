"""Random operations on FUSE mounts of our servers: no difference from tmpfs. BELLJAR_WHOLE=1 takes ten minutes."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from belljar.abi.limits import MIB
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.vfs.server import FileServer
from tests.fuse.inside import Namespace, served

WHOLE = bool(os.environ.get("BELLJAR_WHOLE"))


def memory() -> MemoryServer:
    return MemoryServer(time.time_ns, Quota(1024 * MIB, 100_000))


SERVERS: dict[str, Callable[[], FileServer]] = {
    "memory": memory,
    "overlay": lambda: OverlayServer(memory(), memory(), time.time_ns),
}


@pytest.mark.battery(sample=1)
@pytest.mark.slow
@pytest.mark.parametrize("private", [True, False], ids=["private", "shared"])
@pytest.mark.parametrize("kind", SERVERS)
def test_no_difference_from_tmpfs(namespace: Namespace, tmp_path: Path, kind: str, private: bool) -> None:
    seconds = 150.0 if WHOLE else 2.0
    seed = int(time.time()) if WHOLE else 1
    fuse, tmpfs = str(tmp_path / "fuse"), str(tmp_path / "tmpfs")
    assert namespace.call("tmpfs", tmpfs) is None
    reports: list[BaseException] = []
    with served(namespace, SERVERS[kind](), fuse, private=private, report=reports.append):
        command = f"{sys.executable} -m tests.fuse.random_files {tmpfs} {fuse} {seconds} {seed}"
        namespace.run(f"cd {Path(__file__).parents[2]} && {command}", seconds + 240)
    namespace.call("unmount", tmpfs)
    assert reports == []
