"""A template of sealed processes that say who they are, give copies of themselves, and try to fork unasked."""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
from contextlib import suppress

from belljar.abi.wire import HELLO
from belljar.forking.server.copied_host import OwnerGone, fork_copy
from belljar.forking.server.server_host import become_child
from belljar.lockdown.forks_host import fork_alone
from belljar.lockdown.seal_host import enter_namespaces, prepare_judged, prove, seal


def fork_unasked(connection: socket.socket) -> None:
    try:
        if fork_alone() == 0:
            os._exit(0)
        connection.sendall(b"forked")
    except OSError as error:
        connection.sendall(b"refused %d" % (error.errno or 0))


def live(connection: socket.socket, control: socket.socket) -> None:
    while True:
        waiting = select.poll()
        waiting.register(connection, select.POLLIN)
        waiting.register(control, select.POLLIN)
        ready = [fd for fd, _ in waiting.poll()]
        if connection.fileno() in ready:
            match connection.recv(1 << 16):
                case b"":
                    return
                case b"unasked":
                    threading.Thread(target=fork_unasked, args=(connection,)).start()
                case b"deaf":
                    threading.Event().wait()
                case data:
                    connection.sendall(b"%d %s" % (os.getpid(), data))
        else:
            ends = fork_copy(control)
            if ends is not None:
                connection.close()
                control.close()
                connection, control = ends.connection, ends.control
                control.send(HELLO)


def main() -> None:
    prepare_judged(threads=True)
    enter_namespaces()
    child = become_child(socket.socket(fileno=int(sys.argv[-1])))
    if child is None or child.control is None:
        return
    child.connection.setblocking(True)
    seal({child.connection.fileno(), child.control.fileno()}, 1 << 30, 60, child.control, threads=True)
    prove(forks=True)
    with suppress(OwnerGone):
        live(child.connection, child.control)
    os._exit(0)


if __name__ == "__main__":
    main()
