"""What comes and goes by a machine's ports: messages of FUSE devices, and bytes of connections (agent/vm.c)."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Final

from belljar.fuse.serve_host import StreamDevice
from belljar.fuse.session import Account
from belljar.native.mounts_host import OwnersMounts

PIECE: Final = 64 << 10
_LENGTH: Final = struct.Struct("<I")
_END, _ABORT = _LENGTH.pack(0), _LENGTH.pack(0xFFFFFFFF)


class PortRelay:
    """A port of a machine, for one connection after the other."""

    def __init__(self, relay: socket.socket) -> None:
        self._relay = relay
        self._reader: threading.Thread | None = None

    def join(self) -> socket.socket:
        """The other end of a connection in the machine, which goes by this port until both sides have ended it."""
        ours, theirs = socket.socketpair()
        relay, previous = self._relay, self._reader
        relay.setblocking(True)
        sending = threading.Lock()

        def send(data: bytes) -> None:
            with sending, suppress(OSError):  # a machine that has ended takes nothing
                relay.sendall(data)

        def upward() -> None:
            with suppress(OSError):
                while data := theirs.recv(PIECE):
                    send(_LENGTH.pack(len(data) + 4) + data)
            send(_END)

        def downward() -> None:
            if previous is not None:
                previous.join()  # the machine may give the port away before the end that it told was read here
            aborted = False
            with suppress(OSError, EOFError):
                while (size := _LENGTH.unpack(_exactly(relay, 4))[0]) != 0:
                    if not 4 < size <= PIECE + 4:
                        relay.shutdown(socket.SHUT_RDWR)
                        break
                    data = _exactly(relay, size - 4)
                    try:
                        theirs.sendall(data)
                    except OSError:  # our end is closed: nobody wants what comes
                        if not aborted:
                            send(_ABORT)
                        aborted = True
            with suppress(OSError):
                theirs.shutdown(socket.SHUT_WR)
            up.join()
            theirs.close()

        up = threading.Thread(target=upward, name="belljar-port", daemon=True)
        up.start()
        self._reader = threading.Thread(target=downward, name="belljar-port", daemon=True)
        self._reader.start()
        return ours


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


class MachineMounts(OwnersMounts):
    """What is mounted in one machine; the number of a device is that of its port."""

    def __init__(self, ports: list[socket.socket], account: Account) -> None:
        super().__init__(ports[0], account)
        self._ports = ports

    def _take(self, number: int, seconds: float = 0.0) -> StreamDevice:
        if not 0 <= number < len(self._ports):
            raise OSError("the machine has no such port")
        return StreamDevice(self._ports[number])
