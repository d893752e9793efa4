"""Copies of an engine process with a prefix, one for each run; the next one is made ahead, in a thread."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from belljar.engines.errors import EngineUnavailable

if TYPE_CHECKING:
    from belljar.engines.owner.template_host import EngineProcess


class Runs:
    """Runs of one prefix. `kinds` are the messages to copies: to one that was asked for, and to a spare.

    `copied`: a run can be copied itself.
    """

    def __init__(self, prefix: EngineProcess, kinds: tuple[bytes, bytes], *, copied: bool = False) -> None:
        self._prefix = prefix
        self._kinds = kinds
        self._copied = copied
        self._lock = threading.RLock()
        """Held while a run is made. The garbage collector may close what it is made of in the same thread."""
        self._made: set[int] = set()
        """The pids of runs that live, and of some that do not any more. Their own copies are not among them."""
        self._spare: EngineProcess | None = None
        self._filling = False
        self._closed = False

    def take(self) -> EngineProcess:
        """Return a process in the prefix's state; wait until it is made if there is no spare. EngineUnavailable."""
        with self._lock:
            run = self._take_spare() or self._make(self._kinds[0])
        self.make_spare()
        return run

    def take_spare(self) -> EngineProcess | None:
        """Return a spare without waiting; None if there is none."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            run = self._take_spare()
        finally:
            self._lock.release()
        self.make_spare()
        return run

    def make_spare(self) -> None:
        """Begin to make a spare if there is none."""
        if self._spare is None and not self._filling and not self._closed:
            self._filling = True
            threading.Thread(target=self._fill, name="belljar-runs", daemon=True).start()

    def _fill(self) -> None:
        try:
            # Whoever asks for a run is told why there is none; closed sockets say that there are to be no more.
            with self._lock, suppress(EngineUnavailable, OSError, ValueError):
                if self._spare is None and not self._closed:
                    self._spare = self._make(self._kinds[1])
        finally:
            self._filling = False
        if self._closed:
            self.close()

    def _take_spare(self) -> EngineProcess | None:
        run, self._spare = self._spare, None
        if run is not None and not run.alive:
            run.kill()
            run = None
        return run

    def _make(self, kind: bytes) -> EngineProcess:
        run = self._prefix.copy(kind, looks_at_control=False)
        self._made = self._prefix.related().known({*self._made, run.pid})
        if not self._copied and run.control is not None:
            run.control.close()
            run.control = None
        return run

    def close(self) -> None:
        """End every run, and copies in the making. Idempotent. In a forked child of the owner, kill nothing."""
        self._closed = True
        if os.getpid() != self._prefix.owner:
            return
        if self._prefix.control is not None:
            with suppress(OSError):
                self._prefix.control.shutdown(socket.SHUT_RDWR)  # whoever waits for a run hears of the end
        with self._lock:
            spare, self._spare = self._spare, None
            if spare is not None:
                spare.kill()
            if self._prefix.family is not None:
                self._prefix.family.kill_members(self._made)
