"""A control group for one sandbox: the kernel's own bound on the memory of all its processes together.

Made only when it is required: it needs a group that this process may divide (root, or one that was delegated), and it
is the one layer that leaves something behind when its owner is killed, an empty directory that the next one removes.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import suppress
from errno import EBUSY
from functools import cache
from itertools import count
from typing import Final

from belljar.worker.handle_host import CgroupUnavailable

ROOT: Final = "/sys/fs/cgroup"
PREFIX: Final = "belljar"
PROCESSES_MAX: Final = 64
"""Processes of one sandbox: its worker and its engines."""

_numbers = count()
_lock = threading.Lock()
_leftover: Final[set[str]] = set()
"""Groups whose processes were killed and are not gone yet."""


class Cgroup:
    """One group. What is forked by a member is a member; `remove` ends with its last."""

    def __init__(self, memory_bytes: int) -> None:
        where = place()
        if where is None:
            raise CgroupUnavailable("no control group with a memory controller is writable here")
        parent, version = where
        remove_leftovers()
        self.memory_bytes = memory_bytes
        self.directory = f"{parent}/{PREFIX}-{os.getpid()}-{next(_numbers)}"
        try:
            os.mkdir(self.directory)
            if version == 2:
                self._write("memory.max", memory_bytes)
                self._try("memory.swap.max", 0)
                self._try("memory.oom.group", 1)
                self._try("pids.max", PROCESSES_MAX)
            else:
                self._write("memory.limit_in_bytes", memory_bytes)
                self._try("memory.memsw.limit_in_bytes", memory_bytes)
        except OSError as error:
            self.remove()
            raise CgroupUnavailable(f"can't make the control group {self.directory}: {error}") from error

    def add(self, pid: int) -> None:
        """Move a process in. OSError."""
        self._write("cgroup.procs", pid)

    def remove(self) -> None:
        """The sandbox is over: the group goes when its processes have. Idempotent."""
        self._try("cgroup.kill", 1)
        with _lock:
            _leftover.add(self.directory)
        remove_leftovers()

    def _write(self, name: str, value: int) -> None:
        with open(f"{self.directory}/{name}", "w") as file:
            file.write(str(value))

    def _try(self, name: str, value: int) -> None:
        """Set what not every kernel has."""
        with suppress(OSError):
            self._write(name, value)


def remove_leftovers() -> None:
    with _lock:
        for directory in list(_leftover):
            try:
                os.rmdir(directory)
            except OSError as error:
                if error.errno == EBUSY:
                    continue
            _leftover.discard(directory)


@cache
def place() -> tuple[str, int] | None:
    """The directory to make groups in, and the version of its hierarchy; None if there is none."""
    for directory, version in _candidates():
        if os.access(directory, os.W_OK) and os.access(f"{directory}/cgroup.procs", os.W_OK):
            _remove_strangers(directory)
            atexit.register(remove_leftovers)
            return directory, version
    return None


def _candidates() -> list[tuple[str, int]]:
    """Our own groups, as /proc names them. In version 2 a group with processes has no children with controllers: so
    beside it."""
    found: list[tuple[str, int]] = []
    try:
        with open("/proc/self/cgroup") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    for _number, controllers, path in lines:
        if controllers == "":
            for mount in (ROOT, f"{ROOT}/unified"):
                own = f"{mount}{path}".rstrip("/")
                found += [
                    (directory, 2)
                    for directory in (own, os.path.dirname(own))
                    if directory.startswith(mount) and "memory" in _words(f"{directory}/cgroup.subtree_control")
                ]
        elif "memory" in controllers.split(","):
            own = f"{ROOT}/memory{path}".rstrip("/")
            found += [(directory, 1) for directory in (own, f"{ROOT}/memory") if os.path.isdir(directory)]
    return found


def _words(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


def _remove_strangers(directory: str) -> None:
    """Remove the empty groups of owners that were killed."""
    for name in os.listdir(directory):
        prefix, _, rest = name.partition("-")
        owner = rest.partition("-")[0]
        if prefix == PREFIX and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            with suppress(OSError):
                os.rmdir(f"{directory}/{name}")
