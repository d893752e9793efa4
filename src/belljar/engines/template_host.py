"""Warm processes that engine programs are forked from: one per kind and owner, started when first needed.

A template is brought to the point where a program could begin, once; every program is a fork of it. The owner only
talks to it over a control socket: a request in, the connection to a new process and a descriptor of that process out.
`fork_server_host` is the other end. A template ends with its control socket, its children end with it.
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

import msgspec

from belljar.abi.dataclass import dataclass, field
from belljar.engines.supply_host import REQUEST_MAX, Refused, Supply
from belljar.lockdown.polling_host import readable
from belljar.lockdown.server_process_host import ANSWER_SECONDS, end_server, explain_limits, kill_process, start_server

if TYPE_CHECKING:
    import subprocess

    from belljar.engines.copies_host import Kin


_relating = threading.Lock()
"""Held while it is found out who a process's kin are."""


class EngineUnavailable(RuntimeError):
    """No program of this kind can be run here; says what to install or do.

    `for_guest` is what the sandbox may know of it: nothing that has a path of the host in it.
    """

    @property
    def for_guest(self) -> str:
        said = str(self)
        return said if "/" not in said else "its engine did not start; the sandbox's owner was told why"


@dataclass(slots=True)
class EngineProcess:
    """A program's process: its connection, and a descriptor that means it whatever becomes of the pid."""

    pid: int
    pidfd: int
    connection: socket.socket
    control: socket.socket | None = None
    """Of one that can be forked itself, as its template was; or copied where it waits for an answer."""
    kin: Kin | None = None
    """Itself and its copies, once there is one."""
    owner: int = field(default_factory=os.getpid)
    _supply: Supply | None = None
    origin: Supply | None = None
    """Where it came from, until `settle`."""

    def settle(self) -> None:
        """What may wait until it is on its way to its user: to take what it sent, and to have another made."""
        if self.control is not None and self.pidfd >= 0:
            with suppress(OSError, ValueError):  # it has ended, or is being let go
                self.related()
        origin, self.origin = self.origin, None
        if origin is not None:
            origin.settle()

    def copy(self) -> EngineProcess:
        """Another like it, made where it waits for the kernel's answer, while nothing is on its way to it.

        Blocks until it is made. Raises EngineUnavailable; one that does not answer at all is ended.
        """
        from belljar.engines.copies_host import Copying, NoCopy  # an owner hardly ever needs it

        if self.control is None or self.pidfd < 0:
            raise EngineUnavailable("this engine process can't be copied")
        kin = self.related()
        with kin.making:
            kin.expect()
            copying = Copying(self.pid, self.pidfd, self.control, kin)
            try:
                pid, pidfd = copying.make()
            except BaseException as error:
                copying.abandon()
                kin.finish(made=False)
                if isinstance(error, TimeoutError):
                    self.kill()
                if isinstance(error, OSError | NoCopy):
                    raise EngineUnavailable(f"the engine process gives no copy of itself: {error}") from error
                raise
            kin.finish(made=True)
        copying.connection.setblocking(False)
        copying.control.settimeout(ANSWER_SECONDS)
        return EngineProcess(pid, pidfd, copying.connection, copying.control, kin)

    def related(self) -> Kin:
        """Itself and its copies; with where the kernel asks about their forks, if the process has said so by now."""
        from belljar.engines.copies_host import Kin

        with _relating:
            if self.kin is None:
                self.kin = Kin(self.pid)
                if self.control is not None:
                    self.kin.take_listener(self.control)
            return self.kin

    def fork(self, limits: EngineLimits, options: Mapping[str, Any]) -> EngineProcess:
        """A copy of it, made where it waits for that. Blocks until it does. Raises EngineUnavailable."""
        try:
            process = self._forks().ask(_request(limits, options))
        except (OSError, Refused) as error:
            raise EngineUnavailable(f"the engine process gives no copy of itself: {error}") from error
        process.settle()
        return process

    def at_hand(self, limits: EngineLimits, options: Mapping[str, Any]) -> EngineProcess | None:
        """As `fork`, without waiting: one that was made ahead, to be settled; None if there is none.

        Raises EngineUnavailable.
        """
        try:
            return self._forks().at_hand(_request(limits, options))
        except (OSError, Refused):
            return None  # `fork` says why

    def _forks(self) -> Supply:
        if self.control is None:
            raise EngineUnavailable("this engine process can't be forked")
        self._supply = self._supply or Supply(self.control, _made)
        return self._supply

    @property
    def alive(self) -> bool:
        return not readable(self.pidfd, 0)

    def kill(self) -> None:
        """End it at once and let go. Idempotent. In a forked child of its owner it is only let go of."""
        pidfd, self.pidfd = self.pidfd, -1  # two threads may both come to end it
        if pidfd >= 0 and os.getpid() != self.owner:
            os.close(pidfd)
        elif pidfd >= 0:
            kill_process(pidfd)
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)  # a thread that waits for it hears of the end
            if self.kin is not None:
                self.kin.remove(self.pid)
        self.connection.close()
        if self.control is not None:
            self.control.close()


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What one program's process may use of the machine."""

    memory_bytes: int
    cpu_seconds: float


def _request(limits: EngineLimits, options: Mapping[str, Any]) -> bytes:
    request = msgspec.msgpack.encode([limits.memory_bytes, limits.cpu_seconds, options])
    if len(request) > REQUEST_MAX:
        raise EngineUnavailable(f"an engine's options of {len(request)} bytes are over the limit of {REQUEST_MAX}")
    return request


def _made(pid: int, fds: list[int]) -> EngineProcess:
    if sys.platform == "win32":
        raise NotImplementedError
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fds[0])  # it would ask what it is otherwise
    connection.setblocking(False)
    own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fds[2]) if len(fds) == 3 else None
    if own is not None:
        own.settimeout(ANSWER_SECONDS)
    return EngineProcess(pid, fds[1], connection, own)


class Template:
    """One template process. `command` gives the program to start; the number of its control socket is added to it."""

    def __init__(self, command: Callable[[], list[str]]) -> None:
        self._command = command
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._supply: Supply | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def at_hand(self, limits: EngineLimits, options: Mapping[str, Any]) -> EngineProcess | None:
        """As `fork`, without waiting: one that was made ahead, to be settled; None if there is none.

        Raises EngineUnavailable.
        """
        request = _request(limits, options)
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return None if self._supply is None else self._supply.at_hand(request)
        except (OSError, Refused):
            return None  # `fork` says why, or replaces it
        finally:
            self._lock.release()

    def fork(self, limits: EngineLimits, options: Mapping[str, Any]) -> EngineProcess:
        """A new process, its connection non-blocking. A template that does not answer is replaced once.

        Raises EngineUnavailable.
        """
        request = _request(limits, options)
        with self._lock:
            for last_try in (False, True):
                try:
                    if self._supply is None:
                        self._process, self._control = start_server(self._command())
                        self._supply = Supply(self._control, _made)
                    process = self._supply.ask(request)
                    process.settle()
                    return process
                except (OSError, EngineUnavailable, Refused) as error:
                    said = self._stop()
                    if last_try:
                        said += explain_limits()
                        raise EngineUnavailable(f"the engine's template gives no process: {error}{said}") from error
        raise AssertionError("unreachable")

    def _stop(self) -> str:
        """End the template; gives the last it said, which is why it ended if it did so by itself."""
        said = ""
        if self._control is not None:
            self._control.close()
            self._control = None
        self._supply = None
        if self._process is not None:
            said = end_server(self._process)
            self._process = None
        return said

    def close(self) -> None:
        """End the template, and with it every process forked from it."""
        with self._lock:
            self._stop()


KINDS: Final[dict[str, Callable[[], list[str]]]] = {}
"""What starts the template of each kind; raises EngineUnavailable where something is missing."""

_templates: Final[dict[str, Template]] = {}
_making = threading.Lock()


def template(kind: str) -> Template:
    """The template of a kind, for all sandboxes of this process. Raises EngineUnavailable."""
    if sys.platform != "linux":
        raise EngineUnavailable(f"{kind} runs in processes that are forked and sealed, which needs Linux")
    with _making:
        if kind not in _templates:
            if kind not in KINDS:
                from belljar.engines.kinds_host import commands  # they import this module

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
    """In a forked child of the owner: the templates are the parent's."""
    global _making, _relating
    _making, _relating = threading.Lock(), threading.Lock()
    _templates.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)
