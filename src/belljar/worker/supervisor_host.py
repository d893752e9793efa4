"""Starts the zygote of this process and gets workers from it; replaces it when it is gone or old."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from belljar.abi.limits import Limits
from belljar.worker.handle_host import WorkerHandle, Workers, WorkerUnavailable

RECYCLE_AFTER: Final = 10_000
"""Workers from one zygote: all of them share its memory layout and hash seed, so it does not live forever."""
USUAL: Final = Limits().memory_bytes
"""The memory of most workers."""
ZYGOTE: Final = (sys.executable, "-I", "-m", "belljar.worker.zygote_host")
_ANSWER_SECONDS: Final = 60.0


class Supervisor:
    """One zygote, started when first needed; `command` is what starts it, the number of its control socket aside."""

    def __init__(self, command: Sequence[str] = ZYGOTE) -> None:
        self._command = command
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._taken = 0
        self._asked = False
        """Whether the answer to a request is on its way."""
        self._spare: WorkerHandle | None = None
        self.source: Workers | None = None
        """Where workers come from first, if not from a zygote of our own."""

    def take(self, memory_bytes: int) -> WorkerHandle:
        """A worker with this much memory. A zygote that does not answer is replaced once."""
        with self._lock:
            if self.source is not None:
                try:
                    return self.source.take(memory_bytes)
                except WorkerUnavailable:
                    self.source = None
            if self._taken >= RECYCLE_AFTER:
                self._stop()
            for last_try in (False, True):
                try:
                    if self._control is None:
                        self._start()
                    return self._request(memory_bytes)
                except (OSError, WorkerUnavailable) as error:
                    said = self._stop()
                    if last_try:
                        raise WorkerUnavailable(f"the zygote gives no worker: {error}{said}") from error
        raise AssertionError("unreachable")

    def _request(self, memory_bytes: int) -> WorkerHandle:
        """A worker; a usual one was asked for last time already, so that making a sandbox waits for nobody."""
        if self._asked:
            self._asked = False
            self._spare = self._receive()
        worker: WorkerHandle | None = None
        if memory_bytes == USUAL:
            worker, self._spare = self._spare, None
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

    def _ask(self, memory_bytes: int) -> None:
        assert self._control is not None
        self._control.send(memory_bytes.to_bytes(8, "little"))

    def _receive(self) -> WorkerHandle:
        assert self._control is not None
        answer, fds, _flags, _address = socket.recv_fds(self._control, 256, 2)
        if not answer.startswith(b"+") or len(fds) != 2:
            for fd in fds:
                os.close(fd)
            raise WorkerUnavailable(answer[1:].decode("utf-8", "replace") or "it ended")
        self._taken += 1
        return WorkerHandle(int(answer[1:]), fds[1], socket.socket(fileno=fds[0]))

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*self._command, str(theirs.fileno())],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.settimeout(_ANSWER_SECONDS)
        self._control = ours
        self._taken = 0

    def _stop(self) -> str:
        """End the zygote; gives the last it said, which is why it ended if it did so by itself."""
        said = ""
        if self._control is not None:
            self._control.close()
            self._control = None
            self._asked = False
        if self._spare is not None:
            self._spare.kill()
            self._spare = None
        if self._process is not None:
            self._process.kill()
            lines = self._process.communicate()[1].decode("utf-8", "replace").strip().splitlines()
            said = "\n" + "\n".join(lines[-12:]) if lines else ""
            self._process = None
        return said

    def close(self) -> None:
        """End the zygote; workers that were taken live on."""
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """In a forked child of the owner: the zygote is the parent's."""
        self.__init__(self._command)  # type: ignore[misc]


shared: Final = Supervisor()
"""The zygote that every sandbox of this process comes from."""
os.register_at_fork(after_in_child=shared.forget)
