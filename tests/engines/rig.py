"""A kernel with one process that serves system calls, and a client of it on another thread, as an engine process is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDWR
from belljar.bin._kit.discovery import find, names
from belljar.engines.calls.client_host import Client
from belljar.engines.worker.calls.server import CallServer
from belljar.engines.worker.wasi_root import reserve_root
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.kernel.machine_host import EpollPoller, host_machine
from belljar.kernel.process import Process
from belljar.kernel.status import ExitStatus
from belljar.worker.session import Session


class SocketLink:
    """An engine link over a socket of this process."""

    waits = False

    def __init__(self, connection: socket.socket, hub: Hub, poller: EpollPoller) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._poller = poller
        self._changed = WaitQueue(hub)
        poller.watch(connection.fileno(), self._changed.wake_all)

    def recv(self, size: int = 1 << 16) -> bytes:
        while True:
            try:
                return self._socket.recv(size)
            except BlockingIOError:
                self._changed.wait()
            except OSError:
                return b""

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                self._poller.watch(self._socket.fileno(), self._changed.wake_all, writable=True)
                self._changed.wait()
                self._poller.watch(self._socket.fileno(), self._changed.wake_all)
            except OSError:
                raise SysError(32) from None

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._poller.unwatch(self._socket.fileno())
            self._socket.close()


def serve(
    client: Callable[[Client], Any], *, argv: list[str] | None = None, limits: tuple[float, int] | None = None
) -> tuple[Any, ExitStatus, Session]:
    """Run `client` against a fresh sandbox's kernel; what it returned, how the process ended, and the sandbox."""
    machine = host_machine()
    assert isinstance(machine.poller, EpollPoller)
    session = Session(machine, programs=find, names=names())
    ours, theirs = socket.socketpair()
    link = SocketLink(ours, session.kernel.hub, machine.poller)
    ended: list[ExitStatus] = []
    outcome: list[Any] = []

    def body(process: Process) -> int:
        reserve_root(process)
        server = CallServer(process, link)
        server.start({})
        if limits is not None:
            server.limit(*limits)
        server.serve()

    def run() -> None:
        with theirs:
            try:
                outcome.append(client(Client(theirs)))
            except BaseException as error:  # noqa: BLE001 - shown by the thread that waits
                outcome.append(error)

    def over(process: Process) -> None:
        assert process.status is not None
        ended.append(process.status)

    process = session.kernel.start(body, argv or ["prog"], env={"PATH": "/usr/bin", "A": "1"}, on_exit=over)
    null = process.fs.open("/dev/null", O_RDWR)
    for fd in (0, 1, 2):
        process.fds.put(fd, null)
    thread = threading.Thread(target=run)
    thread.start()
    session.kernel.hub.run(lambda: bool(ended))
    thread.join(30)
    machine.poller.close()
    if outcome and isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0] if outcome else None, ended[0], session
