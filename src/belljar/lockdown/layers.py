"""The layers of the outer wall, and what each is for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LAYERS: Final = {
    "user": "runs as nobody, in a user namespace of its own",
    "network": "a network namespace with no interfaces",
    "mount": "a mount namespace whose root is empty",
    "ipc": "its own System V IPC and POSIX message queues",
    "rlimits": "memory, CPU time, file size and descriptors are bounded",
    "no_new_privs": "has no capabilities, and no program it could start gains any; it can't be traced or dumped",
    "cgroup": "a control group bounds the memory of all its processes together; put up when require= names it",
    "cgroup_cpu": "so are the processors they keep busy",
    "cgroup_pids": "and so is their number",
    "landlock": "no path may be opened and no TCP port used, whatever else fails",
    "seccomp": "only the system calls an interpreter needs; anything else ends the process",
}

ON_DEMAND: Final = frozenset({"cgroup", "cgroup_cpu", "cgroup_pids"})
"""Those that are only put up where a sandbox requires one of them."""


def missing(held: Iterable[str]) -> tuple[str, ...]:
    """The layers that do not hold."""
    there = set(held)
    return tuple(name for name in LAYERS if name not in there)
