"""A control group for one sandbox: the kernel's own bound on all its processes together, memory, processors and number.

Made only when it is required: it needs a group that this process may divide (root, or one that was delegated), and it
is the one layer that leaves something behind when its owner is killed, empty directories that the next one removes.
Version 2 has one tree for everything, version 1 one for each controller; memory must be had, the others may.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from errno import EBUSY
from functools import cache
from itertools import count
from typing import Final

from belljar.owner.handle_host import CgroupUnavailable

ROOT: Final = "/sys/fs/cgroup"
OURS: Final = "/proc/self/cgroup"
PREFIX: Final = "belljar"
CONTROLLERS: Final = {"memory": "cgroup", "cpu": "cgroup_cpu", "pids": "cgroup_pids"}
"""The layer that each controller provides."""
PROCESSES_MAX: Final = 64
"""Processes and threads of one sandbox: its worker and its engines."""
CORES: Final = 2
"""Processors that one sandbox may keep busy: its worker, and one engine's worth."""
_PERIOD: Final = 100_000
"""Microseconds within which that is counted."""

_RETRY_SECONDS: Final = 0.002

_numbers = count()
_lock = threading.Lock()
_leftover: Final[set[str]] = set()
"""Groups whose processes were killed and are not gone yet."""


@dataclass(frozen=True, slots=True)
class Place:
    """A directory to make groups in, and what can be bounded there."""

    directory: str
    version: int
    controllers: frozenset[str]


class Cgroup:
    """One sandbox's group, in each tree. What is forked by a member is a member; `remove` ends with its last."""

    def __init__(self, memory_bytes: int, *, processes: int = PROCESSES_MAX, ends_all: bool = True) -> None:
        """`ends_all`: when the memory is used up, all its processes end, not one of them."""
        places = find_places()
        if not places:
            raise CgroupUnavailable("no control group with a memory controller is writable here")
        remove_leftovers()
        self.memory_bytes = memory_bytes
        self._processes, self._ends_all = processes, ends_all
        self.layers: list[str] = []
        self.directories: list[str] = []
        name = f"{PREFIX}-{os.getpid()}-{next(_numbers)}"
        for place in places:
            directory = f"{place.directory}/{name}"
            try:
                os.mkdir(directory)
                self.directories.append(directory)
                for controller in CONTROLLERS:
                    if controller in place.controllers:
                        self._bound(directory, place.version, controller)
            except OSError as error:
                if "memory" in place.controllers:
                    self.remove()
                    raise CgroupUnavailable(f"can't make the control group {directory}: {error}") from error

    def _bound(self, directory: str, version: int, controller: str) -> None:
        match controller, version:
            case "memory", 2:
                _write(directory, "memory.max", self.memory_bytes)
                _try(directory, "memory.swap.max", 0)
                _try(directory, "memory.oom.group", int(self._ends_all))
            case "memory", _:
                _write(directory, "memory.limit_in_bytes", self.memory_bytes)
                _try(directory, "memory.memsw.limit_in_bytes", self.memory_bytes)
            case "cpu", 2:
                _write(directory, "cpu.max", f"{CORES * _PERIOD} {_PERIOD}")
            case "cpu", _:
                _write(directory, "cpu.cfs_period_us", _PERIOD)
                _write(directory, "cpu.cfs_quota_us", CORES * _PERIOD)
            case _:
                _write(directory, "pids.max", self._processes)
        self.layers.append(CONTROLLERS[controller])

    @property
    def directory(self) -> str:
        """That of its memory."""
        return self.directories[0]

    def killed(self) -> int:
        """How many of its processes were ended because its memory was used up; 0 where the kernel does not tell."""
        for name in ("memory.events", "memory.oom_control"):
            words = _words(f"{self.directory}/{name}")
            if "oom_kill" in words:
                return int(words[words.index("oom_kill") + 1])
        return 0

    def add(self, pid: int) -> None:
        """Move a process in. OSError."""
        for directory in self.directories:
            _write(directory, "cgroup.procs", pid)

    def remove(self, seconds: float = 0.0) -> None:
        """Kill the group's processes and remove it, later if some have not ended within this time. Idempotent."""
        for directory in self.directories:
            _try(directory, "cgroup.kill", 1)
        with _lock:
            _leftover.update(self.directories)
        remove_leftovers()
        ends = time.monotonic() + seconds
        while not _leftover.isdisjoint(self.directories) and time.monotonic() < ends:
            time.sleep(_RETRY_SECONDS)
            remove_leftovers()


def _write(directory: str, name: str, value: int | str) -> None:
    with open(f"{directory}/{name}", "w") as file:
        file.write(str(value))


def _try(directory: str, name: str, value: int) -> None:
    """Write a setting that not every kernel has."""
    with suppress(OSError):
        _write(directory, name, value)


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
def find_places() -> tuple[Place, ...]:
    """Find the directories to make groups in, memory's first; empty if memory can't be limited here."""
    found: dict[str, Place] = {}
    for place in _candidates(ROOT, OURS):
        fresh = place.controllers - found.keys()
        if fresh and os.access(place.directory, os.W_OK) and os.access(f"{place.directory}/cgroup.procs", os.W_OK):
            found |= dict.fromkeys(fresh, Place(place.directory, place.version, frozenset(fresh)))
    if "memory" not in found:
        return ()
    places = tuple(dict.fromkeys(found[name] for name in CONTROLLERS if name in found))
    for place in places:
        _remove_strangers(place.directory)
    atexit.register(remove_leftovers)
    return places


def _candidates(root: str, ours: str) -> list[Place]:
    """Our own groups, as /proc names them. In version 2 a group with processes has no children with controllers: so
    beside it."""
    found: list[Place] = []
    try:
        with open(ours) as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    for _number, controllers, path in lines:
        if controllers == "":
            for mount in (root, f"{root}/unified"):
                own = f"{mount}{path}".rstrip("/")
                for directory in (own, os.path.dirname(own)):
                    given = CONTROLLERS.keys() & _words(f"{directory}/cgroup.subtree_control")
                    if directory.startswith(mount) and given:
                        found.append(Place(directory, 2, frozenset(given)))
            continue
        names = controllers.split(",")
        for name in CONTROLLERS.keys() & names:
            tree = next((tree for tree in (f"{root}/{controllers}", f"{root}/{name}") if os.path.isdir(tree)), None)
            if tree is not None:
                own = f"{tree}{path}".rstrip("/")
                found += [Place(where, 1, frozenset({name})) for where in (own, tree) if os.path.isdir(where)]
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
