"""The first message of a new process: the kernel tells who sent it (SCM_CREDENTIALS)."""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING, Final

from belljar.abi.wire import HELLO

if TYPE_CHECKING:
    from belljar.lockdown.family_host import Family

_UCRED: Final = struct.Struct("=iII")
"""struct ucred: pid, uid, gid."""


class NoHello(RuntimeError):
    """The new process did not report, or it is not the one that was expected."""


def expect_hello(connection: socket.socket) -> None:
    """Set SO_PASSCRED, before the other end of the pair is sent to the process that forks."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)


def accept_hello(connection: socket.socket, family: Family) -> tuple[int, int]:
    """Receive a new process's HELLO; return its pid and a pidfd. Raises NoHello, OSError.

    The process must be a new member of `family`. Nothing that it says about itself is believed.
    """
    # Not a byte more: on a stream, what follows is for whoever reads the connection next.
    data, notes, flags, _address = connection.recvmsg(len(HELLO), socket.CMSG_SPACE(_UCRED.size))
    if data != HELLO or flags & socket.MSG_TRUNC or not notes or notes[0][1] != socket.SCM_CREDENTIALS:
        raise NoHello("it ended at once; is there memory for it?")
    pid: int = _UCRED.unpack(notes[0][2])[0]
    pidfd = os.pidfd_open(pid)
    if not family.has(pid):
        os.close(pidfd)
        raise NoHello(f"process {pid} reports as the new one, and is not")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    return pid, pidfd
