"""The trusted side's word on forks: a sealed process that forks waits in the kernel until it is answered here."""

from __future__ import annotations

import ctypes
import os
import platform
import random
import struct
from collections.abc import Callable
from errno import EINTR, ENOENT, EPERM
from fcntl import ioctl
from functools import cache
from typing import Final

from belljar.lockdown.bpf import FORK_FLAGS, MACHINES

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE: Final = 1
_NOTICE: Final = struct.Struct("<QIIiIQ6Q")
"""struct seccomp_notif: id, pid, flags; then struct seccomp_data: number, architecture, address, arguments."""
_ANSWER: Final = struct.Struct("<QqiI")
"""struct seccomp_notif_resp: id, value, error, flags."""


bare_fork = ctypes.PyDLL(None, use_errno=True).fork
"""Gives -1 where it is refused."""


def fork_alone() -> int:
    """fork(2) for a process with one thread and nothing to put in order: the branch reads and writes little memory.

    Python's own goes over every lock of its library, which copies hundreds of pages.
    """
    _draw_from_kernel()
    pid: int = bare_fork()
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return pid


@cache
def _draw_from_kernel() -> None:
    """Have Python's `random` ask the kernel each time: a generator of ours would go on the same way in every branch."""
    kernel = random.SystemRandom()
    for name in random.__all__:
        if name[0].islower():  # a function, and not a class
            setattr(random, name, getattr(kernel, name))


@cache
def _clone() -> int:
    """The number of clone(2), as fork(3) calls it."""
    return MACHINES[platform.machine()].numbers["clone"]


class ForkListener:
    """Answers for one sealed process and all that descend from it.

    `fd` is readable (POLLIN) while one of them waits, and says POLLHUP once the last of them has ended. POLLERR alone
    means nothing: Linux gives it when a signal comes while a process is just about to wait.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def answer(self, permitted: Callable[[int], bool]) -> int | None:
        """Let the process that waits fork if it may, else refuse with EPERM. Gives the pid of one that was let.

        The arguments that are judged are in registers, so they are those the kernel then acts on.
        """
        notice = bytearray(_NOTICE.size)
        try:
            ioctl(self.fd, _RECEIVE, notice)
        except OSError as error:
            if error.errno in (ENOENT, EINTR):
                return None  # it was killed while it waited
            raise
        ident, pid, _flags, number, _architecture, _address, flags, stack, *_ = _NOTICE.unpack(notice)
        is_fork = number == _clone() and flags == FORK_FLAGS and stack == 0
        let = is_fork and permitted(pid)
        answer = _ANSWER.pack(ident, 0, 0, _CONTINUE) if let else _ANSWER.pack(ident, 0, -EPERM, 0)
        try:
            ioctl(self.fd, _SEND, bytearray(answer))
        except OSError as error:
            if error.errno == ENOENT:
                return None
            raise
        return pid if let else None

    def close(self) -> None:
        os.close(self.fd)
