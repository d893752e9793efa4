"""The receive timeout of the connection of an engine process that can be copied."""

from __future__ import annotations

import socket
import struct
from typing import Final

_TIMEVAL: Final = struct.pack("@ll", 0, 5000)
"""struct timeval: 5 ms, more than a tick of the kernel's clock (mostly 4 ms): a shorter one may be over at once."""


def set_receive_timeout(connection: socket.socket) -> None:
    """Set SO_RCVTIMEO, so that requests for copies are looked at while an answer is late. A sealed process can't."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEVAL)
