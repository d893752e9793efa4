"""System calls of QEMU: those of a native guest, without what only somebody who took it over would make."""

from __future__ import annotations

from typing import Final

from belljar.lockdown.bpf import Machine
from belljar.native.filters import ALLOWED, build_filter

REFUSED: Final = frozenset(
    """
    connect accept accept4 bind listen socketpair ptrace process_vm_readv process_vm_writev fork vfork execveat
    chmod fchmod fchmodat chown fchown lchown fchownat setuid setgid setreuid setregid setresuid setresgid setgroups
    mknod mknodat link linkat symlink symlinkat rename renameat renameat2 mkdir mkdirat rmdir unlink unlinkat creat
    truncate setxattr lsetxattr fsetxattr shmget shmat msgget semget mq_open name_to_handle_at
    """.split()
)
"""QEMU does without all of these. It opens its libraries, and is executed, after the filter is there: what there is to
open and to execute is in its root, and is QEMU. `-sandbox` of its own takes execve away once it runs."""


def qemu_filter(machine: Machine) -> bytes:
    return build_filter(machine, ALLOWED - REFUSED, sockets=False)
