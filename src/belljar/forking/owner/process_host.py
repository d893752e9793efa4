"""A fork server as a process that the owner starts, ends, and replaces when it was killed or gives no process."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from socket import SHUT_RDWR
from typing import TYPE_CHECKING, Final, Generic

from belljar.forking.owner.client_host import ForkClient, Make, P, Refused, ServerEnded
from belljar.forking.wire import encode_permit
from belljar.lockdown.server_process_host import (
    ANSWER_SECONDS,
    end_server,
    explain_limits,
    start_server,
    wait_for_server,
)

if TYPE_CHECKING:
    import socket
    import subprocess


_END_SECONDS: Final = 2.0
"""How long a server may take to kill its children, and to end once it has closed its socket."""
_PAUSE_SECONDS: Final = 0.02
"""Pause before a killed server is replaced: whatever kills them may do so at once."""


class ForkServerProcess(Generic[P]):
    """One server process. It ends with `close`, or when nothing refers to it any more."""

    def __init__(self, command: Sequence[str], make: Make[P]) -> None:
        self.process, self._control = start_server(command)
        self._end = weakref.finalize(self, _end, self._control, self.process, os.getpid(), True)
        self._client = ForkClient(self._control, make)
        self.taken = 0

    def was_killed(self) -> bool:
        """Whether a server whose control socket is closed ended by SIGKILL or SIGTERM, not by itself."""
        with suppress(TimeoutError):
            wait_for_server(self.process, _END_SECONDS)
        return self.process.returncode in (-signal.SIGKILL, -signal.SIGTERM)

    def take(self, request: bytes) -> P:
        """Return a process, a spare or a new one. Raises Refused, OSError."""
        if self.process.poll() is not None:
            raise ServerEnded("it ended")
        try:
            process = self._client.take(request)
        except ConnectionError as error:
            raise ServerEnded("it ended") from error
        self.taken += 1
        return process

    def take_spare(self, request: bytes) -> P | None:
        """Return a spare, without waiting; None if there is none. Raises Refused, OSError."""
        if self.process.poll() is not None:  # its spares end with it, if a moment later
            raise ServerEnded("it ended")
        return self._client.take_spare(request)

    def permit(self, family: int, pid: int) -> None:
        """Let a process fork, once and soon. OSError if the server is gone."""
        self._control.send(encode_permit(family, pid))

    def close(self, *, ends_children: bool) -> str:
        """End it; return the end of its stderr, which says why it ended if it did so by itself. Idempotent.

        `ends_children`: wait until it has killed whoever descends from it, as it does when its owner ends.
        """
        return "" if self._end.detach() is None else _end(self._control, self.process, os.getpid(), ends_children)


def _end(control: socket.socket, process: subprocess.Popen[bytes], owner: int, ends_children: bool) -> str:
    """End a server. In a forked child of its owner, only close the socket."""
    with control:
        if os.getpid() != owner:
            return ""
        if ends_children:
            with suppress(OSError):
                control.shutdown(SHUT_RDWR)
            with suppress(TimeoutError):
                wait_for_server(process, _END_SECONDS)
        return end_server(process)


class RestartedServer(Generic[P]):
    """A server that is started when first needed.

    One that was killed is replaced, as often as that happens; one that fails by itself is replaced once.
    """

    def __init__(self, command: Callable[[], Sequence[str]], make: Make[P]) -> None:
        self._command = command
        self._make = make
        self._lock = threading.Lock()
        self.process: ForkServerProcess[P] | None = None

    def take(self, request: bytes, seconds: float = ANSWER_SECONDS) -> tuple[P, ForkServerProcess[P]]:
        """Return a process, and the server that it came from. Raises Refused.

        No server is replaced once so many seconds have passed.
        """
        deadline = time.monotonic() + seconds
        failed = killed = 0
        while True:
            with self._lock:
                try:
                    if self.process is None:
                        self.process = ForkServerProcess(self._command(), self._make)
                    return self.process.take(request), self.process
                except (OSError, RuntimeError) as error:
                    if isinstance(error, ServerEnded) and self.process is not None and self.process.was_killed():
                        killed += 1
                    else:
                        failed += 1
                    said = f"{error}{self._stop()}{explain_limits()}"
                    if failed == 2:
                        raise Refused(said) from error
                    if killed and time.monotonic() >= deadline:
                        raise Refused(f"it was killed {killed} times within {seconds:g} s: {said}") from error
            time.sleep(_PAUSE_SECONDS)  # without the lock: another thread may close it, or have the next server

    def take_spare(self, request: bytes) -> P | None:
        """Return a spare, without waiting; None if there is none, or `take` would say why not."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return None if self.process is None else self.process.take_spare(request)
        except (OSError, Refused):
            return None
        finally:
            self._lock.release()

    def _stop(self, *, ends_children: bool = False) -> str:
        process, self.process = self.process, None
        return "" if process is None else process.close(ends_children=ends_children)

    def retire(self) -> None:
        """Start another for the next process. The old one ends when nothing refers to it any more."""
        with self._lock:
            self.process = None

    def close(self, *, ends_children: bool) -> None:
        with self._lock:
            self._stop(ends_children=ends_children)
