"""A worker's life: sealed, proved, then serving its owner until the connection ends."""

from __future__ import annotations

import os
import signal
import socket
import traceback
from typing import Final

from belljar.abi.wire import HELLO, Event, Ready, Start, WorkerMessage, encode, host_frames
from belljar.kernel.cpu_guard_host import CpuGuard
from belljar.kernel.machine_host import EpollPoller
from belljar.lockdown.forks_host import fork_alone
from belljar.lockdown.seal_host import LockdownFailed, prove, seal
from belljar.worker.channel_host import Channel
from belljar.worker.descriptor_host import Descriptor
from belljar.worker.engines_host import HostEngines
from belljar.worker.handle_host import OVERHEAD
from belljar.worker.network_host import network_dialer
from belljar.worker.serve import Server
from belljar.worker.session import Session

RECURSION: Final = 60_000
"""Python frames a worker may nest: the shell's depth limit times the frames of one shell call, with room."""
CPU_BACKSTOP: Final = 24 * 3600
_UNIX, _STREAM = int(socket.AF_UNIX), int(socket.SOCK_STREAM | socket.SOCK_NONBLOCK)


def live(
    session: Session,
    poller: EpollPoller,
    connection: socket.socket,
    memory: int,
    layers: list[str],
    *,
    fork_judge: socket.socket | None = None,
    rehearsed: bool = False,
) -> int:
    """Be a worker with this much memory; `layers` hold already. Returns the exit status of the process.

    `fork_judge` leads to whoever says when it may fork. `rehearsed`: run a command before anybody asks for one.
    """
    kernel = session.kernel
    guard = CpuGuard(kernel.hub)
    guard.start()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # branches that end are nobody's to wait for
    channel = Channel(connection, kernel.hub, poller)

    def branch(descriptor: Descriptor) -> int:
        pid = fork_alone()
        if pid:
            descriptor.close()
            return pid
        try:
            # An epoll object is shared by both: a change to it here would be one there.
            poller.renew()
            engines.lose_all()
            session.uplink.hang_up()
            guard.resume()
            ours = socket.socket(_UNIX, _STREAM, 0, descriptor.take())
            ours.send(HELLO)
            channel.reconnect(ours)
        except BaseException:  # noqa: BLE001 - nobody waits for this branch, and what it still holds is the origin's
            os._exit(1)
        channel.send(Ready(layers + held, os.getpid()))
        return 0

    server = Server(session, channel.send, branch)
    kernel.engines = engines = HostEngines(server.hosted, kernel.hub, poller)
    session.uplink.connect = network_dialer(server.hosted, kernel.hub, poller)
    channel.open(server.handle)
    try:
        held = seal({connection.fileno(), poller.fileno()}, memory + OVERHEAD, CPU_BACKSTOP, fork_judge)
        prove()
    except (LockdownFailed, OSError):
        return 1
    if rehearsed:
        _rehearse(session)
    channel.send(Ready(layers + held, os.getpid()))
    try:
        kernel.hub.run(lambda: channel.closed)
    except MemoryError:
        return 4
    except Exception:  # noqa: BLE001 - the frame that owns the worker: our bug ends the sandbox, the owner is told
        channel.send(Event("bug", {b"trace": traceback.format_exc(limit=-12).encode()}))
        channel.flush()
        return 3
    return 0 if channel.error is None else 2


def _rehearse(session: Session) -> None:
    """Run one command while nobody waits: the memory that any command writes to is this worker's own by then."""
    said: list[WorkerMessage] = []
    server = Server(session, said.append)
    for message in host_frames().feed(encode(Start(0, [b"bash", b"-c", b":"], {}, None, b"", False, False, {}))):
        server.handle(message)
    session.kernel.hub.run(lambda: bool(said))
