"""Resource limits of a process (getrlimit, setrlimit). Of those only file size and open files are enforced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EINVAL, EPERM
from belljar.abi.errors import SysError

if TYPE_CHECKING:
    from belljar.kernel.process import Process

Rlimit = tuple[int | None, int | None]
"""The soft and the hard limit, in Linux's units; None: unlimited."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource: its name in /proc, ulimit's letter and unit, what holds if nobody set it, and the unit shown."""

    name: str
    letter: str
    unit: int
    default: int | None
    shown: str


RESOURCES: Final = (
    Resource("cpu time", "t", 1, None, "seconds"),
    Resource("file size", "f", 1024, None, "bytes"),
    Resource("data size", "d", 1024, None, "bytes"),
    Resource("stack size", "s", 1024, 8 << 20, "bytes"),
    Resource("core file size", "c", 1024, 0, "bytes"),
    Resource("resident set", "m", 1024, None, "bytes"),
    Resource("processes", "u", 1, None, "processes"),
    Resource("open files", "n", 1, None, "files"),
    Resource("locked memory", "l", 1024, 8 << 20, "bytes"),
    Resource("address space", "v", 1024, None, "bytes"),
    Resource("file locks", "x", 1, None, "locks"),
    Resource("pending signals", "i", 1, 1024, "signals"),
    Resource("msgqueue size", "q", 1, 819200, "bytes"),
    Resource("nice priority", "e", 1, 0, ""),
    Resource("realtime priority", "r", 1, 0, ""),
    Resource("realtime timeout", "R", 1, None, "us"),
)
"""By Linux's numbers, from RLIMIT_CPU on."""
BY_LETTER: Final = {resource.letter: resource for resource in RESOURCES}


def getrlimit(process: Process, resource: Resource) -> Rlimit:
    allowed = process.budget.limits
    default = {"u": allowed.processes, "n": allowed.open_files}.get(resource.letter, resource.default)
    return process.rlimits.get(resource.letter, (default, default))


def setrlimit(process: Process, resource: Resource, soft: int | None, hard: int | None) -> None:
    """EINVAL: the soft limit is above the hard one. EPERM: the hard one would be raised."""
    _, highest = getrlimit(process, resource)
    if hard is not None and (soft is None or soft > hard):
        raise SysError(EINVAL)
    if highest is not None and (hard is None or hard > highest):
        raise SysError(EPERM)
    process.rlimits = {**process.rlimits, resource.letter: (soft, hard)}
    if resource.letter == "n" and soft is not None:
        process.fds.set_limit(soft)
