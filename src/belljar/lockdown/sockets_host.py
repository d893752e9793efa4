"""Sockets between our processes: descriptors sent along with data, and a limit on how long sending may block."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Sequence
from typing import Final

_INT: Final = struct.calcsize("i")
if sys.platform != "win32":
    _SOL_SOCKET, _SCM_RIGHTS = int(socket.SOL_SOCKET), int(socket.SCM_RIGHTS)
    _HEADER: Final = socket.CMSG_LEN(0)
else:
    _SOL_SOCKET = _SCM_RIGHTS = -1
    _HEADER: Final = 0


def send_descriptors(connection: socket.socket, data: bytes | memoryview, fds: Sequence[int]) -> int:
    """Send data with descriptors attached; return how many bytes were sent."""
    if sys.platform == "win32":
        raise NotImplementedError
    return connection.sendmsg([data], [(_SOL_SOCKET, _SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))])


def receive_descriptors(connection: socket.socket, size: int, most: int) -> tuple[bytes, list[int]]:
    """Receive at most `size` bytes, and at most `most` descriptors attached to them."""
    if sys.platform == "win32":
        raise NotImplementedError
    data, messages, _flags, _address = connection.recvmsg(size, most * _INT + _HEADER)
    fds: list[int] = []
    for level, kind, content in messages:
        if level == _SOL_SOCKET and kind == _SCM_RIGHTS:
            fds += struct.unpack(f"{len(content) // _INT}i", content[: len(content) // _INT * _INT])
    return data, fds
