"""Starts the zygote of this process and gets workers from it; replaces it when it is gone or old."""

from __future__ import annotations

import os
import socket
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from belljar.abi.limits import Limits
from belljar.lockdown.server_process_host import end_server, explain_limits, start_server
from belljar.lockdown.sockets_host import receive_descriptors
from belljar.worker.handle_host import WorkerHandle, Workers, WorkerUnavailable

if TYPE_CHECKING:
    import subprocess

RECYCLE_AFTER: Final = 10_000
"""Workers from one zygote: all of them share its memory layout and hash seed, so it does not live forever."""
USUAL: Final = Limits().memory_bytes
"""The memory of most workers."""
ZYGOTE: Final = (sys.executable, "-I", "-m", "belljar.worker.zygote_host")


class ZygoteHandle:
    """One zygote process. It ends when nobody has a use for it any more."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process, self._control = start_server(command)
        self._end = weakref.finalize(self, _end, self._control, self.process, os.getpid())
        self._asked = False
        """Whether the answer to a request is on its way."""
        self.spare: WorkerHandle | None = None
        self.taken = 0

    def take(self, memory_bytes: int) -> WorkerHandle:
        """A worker; a usual one was asked for last time already, so that making a sandbox waits for nobody."""
        if self.process.poll() is not None:
            raise WorkerUnavailable("it ended")
        if self._asked:
            self._asked = False
            self.spare = self._receive()
        worker: WorkerHandle | None = None
        if memory_bytes == USUAL:
            worker, self.spare = self.spare, None
        if worker is None or not worker.alive:
            if worker is not None:
                worker.kill()
            self._ask(memory_bytes)
            worker = self._receive()
        if memory_bytes == USUAL:
            with suppress(OSError):  # then the next one finds that the zygote is gone
                self._ask(memory_bytes)
                self._asked = True
        return worker

    def permit(self, family: int, pid: int) -> None:
        """Let a worker fork, once and soon. OSError if the zygote is gone."""
        self._control.send(b"f" + family.to_bytes(4, "little") + pid.to_bytes(4, "little"))

    def _ask(self, memory_bytes: int) -> None:
        self._control.send(b"w" + memory_bytes.to_bytes(8, "little"))

    def _receive(self) -> WorkerHandle:
        if sys.platform != "linux":
            raise NotImplementedError
        answer, fds = receive_descriptors(self._control, 256, 2)
        if not answer.startswith(b"+") or len(fds) != 2:
            for fd in fds:
                os.close(fd)
            raise WorkerUnavailable(answer[1:].decode("utf-8", "replace") or "it ended")
        self.taken += 1
        return WorkerHandle(int(answer[1:]), fds[1], socket.socket(fileno=fds[0]), self)

    def close(self) -> str:
        """End it; gives the last it said, which is why it ended if it did so by itself. Idempotent."""
        self.let_go_of_spare()
        return self._end() or ""

    def let_go_of_spare(self) -> None:
        if self.spare is not None:
            self.spare.kill()
            self.spare = None


def _end(control: socket.socket, process: subprocess.Popen[bytes], owner: int) -> str:
    """The end of a zygote, and the last it said. In a forked child of its owner it is not ours to end."""
    control.close()
    if os.getpid() != owner:
        return ""
    return end_server(process)


class Supervisor:
    """The zygote that new workers come from, started when first needed; `command` starts it."""

    def __init__(self, command: Sequence[str] = ZYGOTE) -> None:
        self._command = command
        self._lock = threading.Lock()
        self.zygote: ZygoteHandle | None = None
        self.source: Workers | None = None
        """Where workers come from first, if not from a zygote of our own."""

    def take(self, memory_bytes: int) -> WorkerHandle:
        """A worker with this much memory. A zygote that does not answer is replaced once."""
        with self._lock:
            if sys.platform != "linux":
                from belljar.worker.spawn_host import Spawner  # what a worker is elsewhere: a process of its own

                return Spawner().take(memory_bytes)
            if self.source is not None:
                try:
                    return self.source.take(memory_bytes)
                except WorkerUnavailable:
                    self.source = None
            if self.zygote is not None and self.zygote.taken >= RECYCLE_AFTER:
                # Its workers may still fork: it ends with the last of them.
                self.zygote.let_go_of_spare()
                self.zygote = None
            for last_try in (False, True):
                try:
                    if self.zygote is None:
                        self.zygote = ZygoteHandle(self._command)
                    return self.zygote.take(memory_bytes)
                except (OSError, WorkerUnavailable) as error:
                    said = self._stop()
                    if last_try:
                        said += explain_limits()
                        raise WorkerUnavailable(f"the zygote gives no worker: {error}{said}") from error
        raise AssertionError("unreachable")

    def _stop(self) -> str:
        zygote, self.zygote = self.zygote, None
        return "" if zygote is None else zygote.close()

    def close(self) -> None:
        """End the zygote; workers that were taken live on."""
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """In a forked child of the owner: the zygote is the parent's."""
        self.__init__(self._command)  # type: ignore[misc]


shared: Final = Supervisor()
"""The zygote that every sandbox of this process comes from."""
if sys.platform != "win32":
    os.register_at_fork(after_in_child=shared.forget)
