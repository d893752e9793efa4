"""A worker: sealed, proved, then serving its owner until the connection ends."""

from __future__ import annotations

import os
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from errno import ENOSYS
from functools import partial
from typing import TYPE_CHECKING, Final

from belljar.abi.limits import OVERHEAD
from belljar.abi.wire import HELLO, Call, Exited, HostMessage, Incident, Ready, Start, WorkerMessage, encode
from belljar.kernel.cpu_guard_host import CpuGuard
from belljar.kernel.engines import Companion
from belljar.kernel.machine_host import DescriptorPoller
from belljar.kernel.process import Process
from belljar.lockdown.polling_host import Readiness
from belljar.lockdown.sockets_host import send_descriptors
from belljar.lockdown.wall_host import LockdownFailed, fork_alone, shut_in
from belljar.worker.channel_host import Channel
from belljar.worker.descriptor_host import Descriptor
from belljar.worker.engines_host import HostEngines
from belljar.worker.network_host import network_dialer
from belljar.worker.port_host import PortConnections
from belljar.worker.serve import Server
from belljar.worker.session import Session

if TYPE_CHECKING:
    from belljar.worker.companion_host import HostCompanion

RECURSION: Final = 60_000
"""Python frames a worker may nest: the shell's depth limit times the frames of one shell call, with room."""
_TRACE_FRAMES: Final = 12
_TRACE_CHARACTERS: Final = 8000
_NAME_BYTES: Final = 255
"""Bytes of the command that are reported with an incident."""
CPU_BACKSTOP: Final = 24 * 3600
WARM_UP_COMMAND: Final = "echo hi"
_FORK: Final = Call(2, "fork", [[], []], fds=1)
_NOBODY: Final = -1
"""The id of a warm-up command, where owners count their requests from 1."""
if sys.platform == "linux":
    _BRANCH: Final = (int(socket.AF_UNIX), int(socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
    """The kind of a branch's connection, which a sealed process can't ask for."""
else:
    _BRANCH: Final = (-1, -1)


class Worker:
    """Everything of a worker but its connection: made before the fork, so that all workers share the memory."""

    def __init__(self, session: Session, poller: DescriptorPoller) -> None:
        hub = session.kernel.hub
        self._session = session
        self._poller = poller
        self._guard = CpuGuard(hub)
        self._guard.install()
        self._channel: Channel | None = None
        self._warm = False
        self._fork: Callable[[], int] = fork_alone
        self._layers: list[str] = []
        self._server = Server(session, self._send, self._branch)
        session.kernel.report_bug = self._report_incident
        session.kernel.engines = self._engines = HostEngines(self._server.hosted, hub, poller)
        session.make_companion = self._make_companion
        self._companion: HostCompanion | None = None
        session.uplink.connect = network_dialer(self._server.hosted, hub, poller)
        self._ports = PortConnections(hub, poller)
        self._server.join_port = self._ports.join

    def _make_companion(self) -> Companion:
        from belljar.worker.companion_host import HostCompanion  # few sandboxes have one

        if self._companion is None:
            self._companion = HostCompanion(self._session, self._server.hosted, self._engines, self._poller)
        return self._companion

    def _send(self, message: WorkerMessage) -> None:
        if isinstance(message, Exited) and message.id == _NOBODY:
            self._warm = True
            return
        assert self._channel is not None
        self._channel.send(message)

    def connect(self, connection: socket.socket) -> None:
        """Serve a connection, whenever the hub runs."""
        self._channel = Channel(connection, self._session.kernel.hub, self._poller)
        self._channel.open(self._server.handle)

    def disconnect(self) -> None:
        """Close the connection, in a zygote: the worker just forked serves it."""
        assert self._channel is not None
        self._channel.close()
        self._channel = None
        self._poller.leave()

    def warm_up(self, times: int) -> None:
        """Serve a pretended owner so many times: a command, a fork, and a command in the branch.

        CPython specialises bytecode that runs often and fills caches. Done in the zygote, workers share those pages
        instead of each writing to a copy of them.
        """
        if sys.platform == "win32":
            raise NotImplementedError
        for _ in range(times):
            ours, theirs = socket.socketpair()
            branch, its = socket.socketpair()
            self._guard.resume()
            self.connect(theirs)
            with ours, branch, its:
                self._answer(_command(1), ours, ours)
                self._fork = _as_origin
                self._answer(_FORK, ours, ours, its)
                self._fork = _as_branch
                self._answer(_FORK, ours, branch, its)
                self._answer(_command(1), branch, branch)
            self._fork = fork_alone
            self._session.kernel.branched = 0
            self._guard.pause()
            self.disconnect()

    def _answer(
        self, message: HostMessage, sender: socket.socket, receiver: socket.socket, *sent: socket.socket
    ) -> None:
        """Take a message, and run the hub until its answer is there."""
        send_descriptors(sender, encode(message), [each.fileno() for each in sent])
        self._session.kernel.hub.run(partial(Readiness(receiver).within, 0))
        receiver.recv(1 << 10)

    def prepare_containers(self) -> None:
        """Make the files of their base image, in the zygote: the containers of all sandboxes share them."""
        self._session.base_image()

    def run_warm_up_command(self) -> None:
        """Run a warm-up command, so that what is made or copied on first use is there."""
        self._warm = False
        self._server.handle(_command(_NOBODY))
        self._session.kernel.hub.run(lambda: self._warm)

    def run(
        self,
        memory: int,
        layers: list[str],
        *,
        fork_judge: socket.socket | None = None,
        warm_up: bool = False,
    ) -> int:
        """Seal this process and serve the owner, with this much memory. Return the exit status of the process.

        `layers` hold already. `fork_judge` leads to whoever says when it may fork. `warm_up`: run a command before
        anybody asks for one.
        """
        kernel, channel = self._session.kernel, self._channel
        assert channel is not None
        self._guard.resume()
        try:
            keep = {channel.fileno()} | self._poller.descriptors()
            held = shut_in(keep, memory + OVERHEAD, CPU_BACKSTOP, fork_judge)
        except (LockdownFailed, OSError):
            return 1
        self._layers = layers + held
        if warm_up:
            self.run_warm_up_command()  # an owner may be asking already, and is answered
        self._report()
        try:
            kernel.hub.run(lambda: channel.closed)
        except MemoryError:
            return 4
        except Exception as error:  # noqa: BLE001 - the frame that owns the worker: our bug ends it, the owner is told
            self._report_bug("worker", error, fatal=True)
            channel.flush()
            return 3
        return 0 if channel.error is None else 2

    def _report_incident(self, process: Process, error: BaseException) -> str:
        """Tell the owner of an exception that is a bug of ours. Gives its id, which is all that the guest sees."""
        return self._report_bug(process.name, error, fatal=False)

    def _report_bug(self, command: str, error: BaseException, *, fatal: bool) -> str:
        incident = f"i-{os.urandom(4).hex()}"
        trace = "".join(traceback.format_exception(error, limit=-_TRACE_FRAMES))[-_TRACE_CHARACTERS:]
        name = command.encode("utf-8", "surrogateescape")[:_NAME_BYTES]
        self._send(Incident(incident.encode(), name, trace.encode("utf-8", "backslashreplace"), fatal))
        return incident

    def _report(self) -> None:
        self._send(Ready(self._layers, os.getpid()))

    def _branch(self, descriptor: Descriptor, engines: Mapping[int, Descriptor]) -> int:
        if sys.platform != "linux":
            raise OSError(ENOSYS, "a sandbox is forked on Linux only")
        pid = self._fork()
        if pid:
            return pid
        assert self._channel is not None
        try:
            # An epoll object is shared by both: a change to it here would be one there.
            self._poller.renew()
            self._engines.switch_to_copies(engines)
            self._session.hang_up()
            self._ports.hang_up()
            if self._companion is not None:
                self._companion.lose()
            self._guard.resume()
            ours = socket.socket(*_BRANCH, 0, descriptor.take())
            ours.send(HELLO)
            self._channel.reconnect(ours)
        except BaseException:  # noqa: BLE001 - nobody waits for this branch, and what it still holds is the origin's
            os._exit(1)
        self._report()
        return 0


def _as_origin() -> int:
    return 1


def _as_branch() -> int:
    return 0


def _command(number: int) -> Start:
    return Start(number, [b"bash", b"-c", WARM_UP_COMMAND.encode()], {}, None, b"", False, False, {})
