"""Gets workers by starting a process for each: where there is no fork(2), and for a single sandbox in a hurry."""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from belljar.owner.handle_host import WorkerHandle, WorkerUnavailable
from belljar.owner.launch_host import WORKER, Launched

if TYPE_CHECKING:
    import subprocess


class SpawnedWorker(WorkerHandle):
    """A worker that is our own child."""

    __slots__ = ("_process",)

    def __init__(self, process: subprocess.Popen[bytes] | Launched, connection: socket.socket) -> None:
        super().__init__(process.pid, -1, connection)
        self._process = process

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        self._process.kill()
        if not isinstance(self._process, Launched):  # whoever launched it ends with it, and need not see it out
            self._process.wait()
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


class Spawner:
    """One process a worker. `archive`: the file of modules a worker may load from (see `archive_host`)."""

    def __init__(self, archive: str = "") -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._begun: SpawnedWorker | None = None

    def begin(self) -> None:
        """Start a worker before anyone asks for one."""
        if self._begun is None:
            self._begun = self._start()

    def adopt(self, process: Launched, connection: socket.socket) -> None:
        """Use a worker that was launched already as the next one."""
        self._begun = SpawnedWorker(process, connection)

    def take(self, memory_bytes: int) -> WorkerHandle:
        with self._lock:
            worker, self._begun = self._begun or self._start(), None
        try:
            worker.connection.sendall(memory_bytes.to_bytes(8, "little"))
        except OSError as error:
            worker.kill()
            raise WorkerUnavailable(f"a worker ended while it started: {error}") from error
        return worker

    def _start(self) -> SpawnedWorker:
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        with theirs:
            if sys.platform == "win32":
                process = self._share(theirs)
            else:
                process = self._inherit(theirs)
        return SpawnedWorker(process, ours)

    def _inherit(self, connection: socket.socket) -> subprocess.Popen[bytes]:
        import subprocess  # which a run does without

        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-I", "-c", WORKER, str(connection.fileno()), self._archive],
            env={"HOME": "/"},  # without one, a library that wants to know would ask the kernel who we are
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # Our stderr, for what goes wrong while it starts; before the first guest byte it lets go of it.
            pass_fds=[connection.fileno()],
        )

    if sys.platform == "win32":

        def _share(self, connection: socket.socket) -> subprocess.Popen[bytes]:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # there is no other kind of pair
            import subprocess

            process = subprocess.Popen(  # noqa: S603 - as above
                [sys.executable, "-I", "-c", WORKER, "-", self._archive],
                env={"SYSTEMROOT": os.environ.get("SYSTEMROOT", "")},  # Windows starts no Python without it
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                creationflags=subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP,
            )
            assert process.stdin is not None
            with process.stdin:
                process.stdin.write(connection.share(process.pid))
            return process

    def close(self) -> None:
        """End a worker that was begun and never taken; those taken live on."""
        with self._lock:
            if self._begun is not None:
                self._begun.kill()
                self._begun = None

    def forget(self) -> None:
        """Drop the worker begun, in a forked child of the owner: it is the parent's."""
        self.__init__(self._archive)  # type: ignore[misc]
