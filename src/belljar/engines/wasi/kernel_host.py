"""The environment of a WASI program's process: the kernel at the end of a socket, a clock, entropy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from random import Random
from typing import Any, Final

from belljar.engines.calls.client_host import CallError, Client
from belljar.engines.wasi.numbers import from_linux
from belljar.engines.wasi.program import Refused

_CLOCKS: Final = (time.time_ns, time.monotonic_ns, time.process_time_ns, time.thread_time_ns)


class RemoteKernel:
    """Makes calls over a connection; errors are WASI's. `interrupt` is called for every signal that comes meanwhile."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._call = client.call
        self.post = client.post
        self.interrupt: Callable[[int], None] = _ignore

    def call(self, name: str, *arguments: Any) -> list[Any]:
        try:
            return self._call(name, *arguments)
        except CallError as error:
            raise Refused(from_linux(error.errno)) from None
        finally:
            if self._client.signals:
                self.take_signals()

    def take_signals(self) -> None:
        while self._client.signals:
            self.interrupt(self._client.signals.pop(0))


def _ignore(_number: int) -> None:
    """Ignore a signal: this guest has no handlers."""


class HostWorld:
    """This process's clock and entropy. `leave` ends the program.

    `replay`, a time in ns and a seed, takes their place where the same program is to do the same in every run.
    """

    def __init__(self, leave: Callable[[int], int], replay: tuple[int, str] | None = None) -> None:
        self.exit = leave
        self.random_bytes: Callable[[int], bytes] = os.urandom if replay is None else Random(replay[1]).randbytes
        self._clocks = _CLOCKS if replay is None else (lambda: replay[0], *_CLOCKS[1:])

    def time_ns(self, clock: int) -> int:
        return self._clocks[clock]()
