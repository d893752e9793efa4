"""A template whose programs say back what they hear, in capitals; some words make them do other things."""

from __future__ import annotations

import socket
import sys

from belljar.forking.server.server_host import become_child
from belljar.forking.wire import Request


def echo(connection: socket.socket, request: Request) -> int:
    connection.setblocking(True)
    while data := connection.recv(1 << 16):
        match data.split()[0]:
            case b"limits":
                connection.sendall(b"%d %g" % (request.memory_bytes, request.cpu_seconds))
            case b"spin":
                connection.sendall(b"spinning")
                while True:
                    pass
            case b"exit":
                return 0
            case b"flood":
                connection.sendall(bytes(8 << 20))
            case _:
                connection.sendall(data.upper())
    return 0


if __name__ == "__main__":
    child = become_child(socket.socket(fileno=int(sys.argv[-1])))
    if child is not None:
        sys.exit(echo(child.connection, child.request))
