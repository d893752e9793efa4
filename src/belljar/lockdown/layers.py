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

NATIVE: Final = {
    "user": "a user namespace: root in there is nobody outside",
    "ids": "commands run as an id that nobody else on the host has, and not as pid 1's; only root has ids to give",
    "pid": "its own processes: it sees and signals no others, and all of them end with pid 1",
    "mount": "its own root: the image, a writable layer in memory, /proc, /sys and /dev without what is the machine's",
    "network": "a network namespace of its own: loopback, and what network= grants",
    "ipc": LAYERS["ipc"],
    "uts": "its own host name",
    "rlimits": "processes, descriptors and locked memory are bounded; the memory of each process, where no cgroup does",
    "no_new_privs": "commands have no capabilities, and no program gives them any; pid 1 can't be traced or dumped",
    "cgroup": "a control group bounds the memory of all its processes and files together, where one may be made",
    "cgroup_cpu": LAYERS["cgroup_cpu"],
    "cgroup_pids": LAYERS["cgroup_pids"],
    "landlock": "no device nodes, no change of mounts, no signal or socket beyond the sandbox, whatever else fails",
    "seccomp": "the system calls of compilers, package managers, interpreters and databases; no others",
}
"""Layers around a native sandbox."""

MACHINE: Final = {
    "machine": "a virtual machine: programs have a kernel of their own, and reach this one only through QEMU",
    **NATIVE,
    "mount": "QEMU's own root: its files and the kernel, read-only; nothing else to open",
    "network": "a network namespace of its own: nothing, or what network= grants behind a tap",
    "seccomp": "QEMU's own filter and ours: no programs, no sockets, no files but those it has open",
}
"""Layers around a machine: those of NATIVE are around QEMU."""

TIERS: Final = {"virtual": LAYERS, "native": NATIVE, "microvm": MACHINE}

ON_DEMAND: Final = frozenset({"cgroup", "cgroup_cpu", "cgroup_pids"})
"""Those that are only put up where a sandbox requires one of them."""


def missing(held: Iterable[str], tier: str = "virtual") -> tuple[str, ...]:
    """The layers that do not hold."""
    there = set(held)
    return tuple(name for name in TIERS[tier] if name not in there)
