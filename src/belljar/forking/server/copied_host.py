"""In an engine process that waits for an answer: forks when its owner asks for a copy (see `owner/copies_host.py`)."""

from __future__ import annotations

import os
import socket
import struct
from typing import Final, NamedTuple

from belljar.forking.wire import COPY

_FDS: Final = struct.Struct("=ii")


class OwnerGone(Exception):
    """The owner closed the control socket."""


class Ends(NamedTuple):
    """A copy's connection and control socket, and the owner's word on what it is to be."""

    connection: socket.socket
    control: socket.socket
    kind: bytes


def fork_copy(control: socket.socket) -> Ends | None:
    """Wait for the owner's request, and fork. Raises OwnerGone.

    Return the copy's sockets in the copy, None in the origin.
    """
    try:
        ends = _receive_ends(control)
    except OSError:
        ends = None
    if ends is None:
        raise OwnerGone
    try:
        pid = os.fork()
    except OSError as error:
        control.send(f"-{os.strerror(error.errno or 0)}".encode())
        pid = -1
    if pid == 0:
        return ends
    ends.connection.close()
    ends.control.close()
    return None


def _receive_ends(control: socket.socket) -> Ends | None:
    """Receive the copy's connection and control. None: the owner closed the socket, or this is no request. OSError."""
    data, notes, _flags, _address = control.recvmsg(64, socket.CMSG_SPACE(_FDS.size))
    fds = _FDS.unpack(notes[0][2]) if notes and len(notes[0][2]) == _FDS.size else ()
    if not data.startswith(COPY) or not fds:
        return None
    return Ends(
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fds[0]),
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fds[1]),
        data.removeprefix(COPY),
    )
