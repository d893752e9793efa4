"""FUSE mounts of our servers beside tmpfs, in one run: large reads and writes, and `git status` of 5,000 files.

In user and mount namespaces of its own, so nothing is mounted on this machine. Aims: 400 MB/s for a sequential read
that the kernel has not cached, and 6x tmpfs for a `git status` that it has. `--quick` for a look.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from belljar.abi.limits import GIB
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.vfs.server import FileServer

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.fuse.inside import Namespace, can_mount, served

QUICK = "--quick" in sys.argv
FILES = 1000 if QUICK else 5000
MEGABYTES = 64 if QUICK else 256
REPEATS = 3 if QUICK else 7
UNITS = {
    "write": "MB/s",
    "read": "MB/s",
    "read again": "MB/s",
    "git add": "s",
    "git status, cold": "s",
    "git status": "s",
}
IDENTITY = "git -c user.name=n -c user.email=e@example.org -c gc.auto=0 -c core.untrackedCache=false"
MAKE_TREE = f"""
import os, random
chosen = random.Random(7)
for n in range({FILES}):
    d = f'p{{n % 10}}/q{{n // 10 % 10}}'
    os.makedirs(d, exist_ok=True)
    with open(f'{{d}}/file{{n}}.py', 'wb') as file:
        file.write(chosen.randbytes(chosen.randrange(4000)))
"""


def memory() -> MemoryServer:
    return MemoryServer(time.time_ns, Quota(4 * GIB, 1_000_000))


def seconds(namespace: Namespace, command: str) -> float:
    """Time of a command inside, as that namespace's shell measures it."""
    script = (
        f"import subprocess,time;t=time.perf_counter();subprocess.run({command!r},shell=True,check=True,stdout=-3);"
    )
    return float(namespace.run(f'{sys.executable} -c "{script}print(time.perf_counter()-t)"', 300))


def best(namespace: Namespace, command: str, before: str = "") -> float:
    """Median time."""
    found = []
    for _ in range(REPEATS):
        if before:
            namespace.run(before)
        found.append(seconds(namespace, command))
    return statistics.median(found)


def forget(namespace: Namespace, place: str) -> str:
    """A command that takes a file's pages out of the kernel's cache."""
    script = "import os,sys;f=os.open(sys.argv[1],0);os.posix_fadvise(f,0,0,os.POSIX_FADV_DONTNEED)"
    return f'{sys.executable} -c "{script}" {place}/large'


def main() -> int:
    if not can_mount():
        sys.stderr.write("FUSE can't be mounted in a user namespace here\n")
        return 1
    rows: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        namespace = Namespace(directory)
        stack.callback(namespace.close)
        mounts: dict[str, tuple[FileServer, bool]] = {
            "memory": (memory(), True),
            "overlay": (OverlayServer(memory(), memory(), time.time_ns), True),
            "shared": (memory(), False),
        }
        namespace.call("tmpfs", str(directory / "tmpfs"))
        stack.callback(namespace.call, "unmount", str(directory / "tmpfs"))
        for name, (server, private) in mounts.items():
            stack.enter_context(served(namespace, server, str(directory / name), private=private))
        for name in ("tmpfs", *mounts):
            rows[name] = measure(namespace, str(directory / name))
        rows["tmpfs"]["git status, cold"] = rows["tmpfs"]["git status"]  # which has nothing that could be cold
        for name, (server, private) in mounts.items():
            with served(namespace, server, str(directory / "again"), private=private):
                rows[name]["git status, cold"] = seconds(namespace, status_of(str(directory / "again")))
    for label, unit in UNITS.items():
        shown = f"{label} {unit}".ljust(22)
        for name, row in rows.items():
            ratio = f" ({row[label] / rows['tmpfs'][label]:.1f}x)" if unit == "s" else ""
            shown += f"  {name} {row[label]:.3g}{ratio}"
        sys.stdout.write(shown + "\n")
    return 0


def status_of(place: str) -> str:
    return f"cd {place}/repo && {IDENTITY} status"


def measure(namespace: Namespace, place: str) -> dict[str, float]:
    drop = forget(namespace, place)
    write = best(namespace, f"dd if=/dev/zero of={place}/large bs=1M count={MEGABYTES} status=none")
    read = best(namespace, f"dd if={place}/large of=/dev/null bs=1M status=none", drop)
    again = best(namespace, f"dd if={place}/large of=/dev/null bs=1M status=none")
    namespace.run(f'mkdir {place}/repo && cd {place}/repo && git init -q . && {sys.executable} -c "{MAKE_TREE}"', 300)
    add = seconds(namespace, f"cd {place}/repo && {IDENTITY} add . && {IDENTITY} commit -qm x")
    namespace.run(f"cd {place}/repo && sleep 1.1 && {IDENTITY} status")  # so that no file is as new as the index
    status = best(namespace, status_of(place))
    speed = MEGABYTES * 1.048576
    return {
        "write": speed / write,
        "read": speed / read,
        "read again": speed / again,
        "git add": add,
        "git status": status,
    }


if __name__ == "__main__":
    raise SystemExit(main())
