"""Warm processes that engine programs are forked from: one per kind and owner, started when first needed.

A template is brought to the point where a program could begin, once; every program is a fork of it. The owner only
talks to it over a control socket: a request in, the connection to a new process and a descriptor of that process out.
`forking/server` is the other end. A template ends with its control socket, its children end with it.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from belljar.abi.dataclass import dataclass, field
from belljar.engines.errors import EngineUnavailable
from belljar.forking.owner.client_host import Refused
from belljar.forking.owner.process_host import RestartedServer
from belljar.forking.owner.socket_host import HandleSocket
from belljar.forking.wire import encode_request
from belljar.lockdown.polling_host import readable
from belljar.lockdown.server_process_host import ANSWER_SECONDS, kill_process

if TYPE_CHECKING:
    import subprocess

    from belljar.engines.owner.runs_host import Runs
    from belljar.forking.owner.copies_host import EngineFamily


_relating = threading.Lock()
"""Held while a process's `family` is set."""


@dataclass(slots=True)
class EngineProcess:
    """A program's process: its connection, and a descriptor that means it whatever becomes of the pid."""

    pid: int
    pidfd: int
    connection: socket.socket
    control: socket.socket | None = None
    """Control socket of a process that can be copied where it waits: for an answer, or (a prefix) for its next run."""
    family: EngineFamily | None = None
    """Itself and its copies, once there is one."""
    owner: int = field(default_factory=os.getpid)
    _runs: Runs | None = None

    def collect_listener(self) -> None:
        """Receive where the kernel asks about its forks, if it has sent that by now."""
        if self.control is not None and self.pidfd >= 0:
            with suppress(OSError, ValueError):  # it has ended, or is being let go
                self.related()

    def copy(self, kind: bytes = b"", *, looks_at_control: bool = True) -> EngineProcess:
        """Another like it, made where it waits for the kernel's answer, while nothing is on its way to it.

        Blocks until it is made. `kind` is a word for it on what it is to be. Raises EngineUnavailable; one that does
        not answer at all is ended.
        """
        from belljar.forking.owner.copies_host import Copying, NoCopy  # an owner hardly ever needs it

        if self.control is None or self.pidfd < 0:
            raise EngineUnavailable("this engine process can't be copied")
        family = self.related()
        with family.making:
            family.expect()
            copying = Copying(self.pid, self.pidfd, self.control, family, kind, looks_at_control=looks_at_control)
            try:
                pid, pidfd = copying.make()
            except BaseException as error:
                copying.abandon()
                family.finish(made=False)
                if isinstance(error, TimeoutError):
                    self.kill()
                if isinstance(error, OSError | NoCopy):
                    raise EngineUnavailable(f"the engine process gives no copy of itself: {error}") from error
                raise
            family.finish(made=True)
        copying.connection.setblocking(False)
        copying.control.settimeout(ANSWER_SECONDS)
        return EngineProcess(pid, pidfd, copying.connection, copying.control, family)

    def related(self) -> EngineFamily:
        """Itself and its copies; with where the kernel asks about their forks, if the process has said so by now."""
        from belljar.forking.owner.copies_host import EngineFamily

        with _relating:
            if self.family is None:
                self.family = EngineFamily(self.pid)
                if self.control is not None:
                    self.family.take_listener(self.control)
            return self.family

    def fork(self, _limits: EngineLimits, _options: Mapping[str, Any]) -> EngineProcess:
        """Return a run of its prefix; wait until it is made if there is no spare. Raises EngineUnavailable."""
        return self._prefix_runs().take()

    def take_spare(self, _limits: EngineLimits, _options: Mapping[str, Any]) -> EngineProcess | None:
        """As `fork`, without waiting: a spare, or None if there is none. Raises EngineUnavailable."""
        return self._prefix_runs().take_spare()

    def _prefix_runs(self) -> Runs:
        from belljar.engines.owner.runs_host import Runs

        if self.control is None:
            raise EngineUnavailable("this engine process can't be forked")
        with _relating:
            self._runs = self._runs or Runs(self, (b" run", b" ahead"))
            return self._runs

    @property
    def alive(self) -> bool:
        pidfd = self.pidfd  # another thread may end it meanwhile
        return pidfd >= 0 and not readable(pidfd, 0)

    def kill(self) -> None:
        """Kill it and close its descriptors. Idempotent. In a forked child of its owner, only close."""
        pidfd, self.pidfd = self.pidfd, -1  # two threads may both come to end it
        if pidfd >= 0 and os.getpid() != self.owner:
            os.close(pidfd)
        elif pidfd >= 0:
            if self._runs is not None:
                self._runs.close()
            kill_process(pidfd)
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)  # a thread that waits for it hears of the end
            if self.family is not None:
                self.family.remove(self.pid)
        self.connection.close()
        if self.control is not None:
            self.control.close()


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Resource limits of one program's process, and of the wait for it."""

    memory_bytes: int
    cpu_seconds: float
    wall_seconds: float = ANSWER_SECONDS
    """How long templates that are killed are replaced by others. The process is not told."""


def _request(limits: EngineLimits, options: Mapping[str, Any]) -> bytes:
    try:
        return encode_request(limits.memory_bytes, limits.cpu_seconds, options)
    except ValueError as error:
        raise EngineUnavailable(f"an engine's {error}") from error


def _made(pid: int, fds: list[int]) -> EngineProcess:
    if sys.platform == "win32":
        raise NotImplementedError
    connection = HandleSocket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fds[0])  # it would ask what it is otherwise
    connection.setblocking(False)
    own = HandleSocket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fds[2]) if len(fds) == 3 else None
    if own is not None:
        own.settimeout(ANSWER_SECONDS)
    return EngineProcess(pid, fds[1], connection, own)


class Template:
    """One template process. `command` gives the program to start; the number of its control socket is added to it."""

    def __init__(self, command: Callable[[], list[str]]) -> None:
        self._server = RestartedServer(command, _made)

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The process, if it was started."""
        return None if self._server.process is None else self._server.process.process

    def take_spare(self, limits: EngineLimits, options: Mapping[str, Any]) -> EngineProcess | None:
        """As `fork`, without waiting: a spare, or None if there is none. Raises EngineUnavailable."""
        process = self._server.take_spare(_request(limits, options))
        if process is not None:
            process.collect_listener()
        return process

    def fork(self, limits: EngineLimits, options: Mapping[str, Any]) -> EngineProcess:
        """A new process, its connection non-blocking. Raises EngineUnavailable.

        A template that was killed is replaced until the limits' wall seconds are over, one that fails is so once.
        """
        try:
            process, _ = self._server.take(_request(limits, options), limits.wall_seconds)
        except Refused as error:
            raise EngineUnavailable(f"the engine's template gives no process: {error}") from error
        process.collect_listener()
        return process

    def close(self) -> None:
        """End the template, and with it every process forked from it."""
        self._server.close(ends_children=True)


KINDS: Final[dict[str, Callable[[], list[str]]]] = {}
"""Returns the command of each kind's template; raises EngineUnavailable where something is missing."""

_templates: Final[dict[str, Template]] = {}
_making = threading.Lock()


def template(kind: str) -> Template:
    """The template of a kind, for all sandboxes of this process. Raises EngineUnavailable."""
    if sys.platform != "linux":
        raise EngineUnavailable(f"{kind} runs in processes that are forked and sealed, which needs Linux")
    with _making:
        if kind not in _templates:
            if kind not in KINDS:
                from belljar.engines.owner.kinds_host import commands  # they import this module

                for name, command in commands().items():
                    KINDS.setdefault(name, command)
            if kind not in KINDS:
                raise EngineUnavailable(f"there is no engine {kind!r}; there are: {', '.join(sorted(KINDS)) or 'none'}")
            if not _templates:
                atexit.register(_close_all)
            _templates[kind] = Template(KINDS[kind])
        return _templates[kind]


def _close_all() -> None:
    for found in _templates.values():
        found.close()


def _forget() -> None:
    """Drop the templates, in a forked child of the owner: they are the parent's."""
    global _making, _relating
    _making, _relating = threading.Lock(), threading.Lock()
    _templates.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)
