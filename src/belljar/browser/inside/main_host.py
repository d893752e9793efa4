"""A sandbox in a page's worker: the session and its server, with the page as the owner.

The conversation is that of `abi/wire.py`, a frame for each message of the worker's port. JavaScript calls `receive`
with what came; the hub handles it in its next turn.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import _page

from belljar.abi.wire import Incident, Ready, WireError, WorkerMessage, encode, host_frames
from belljar.browser.inside.engines import PageEngines
from belljar.browser.inside.greenlet import start as start_first
from belljar.browser.inside.greenlet import wait
from belljar.browser.inside.snapshots import Snapshots
from belljar.engines.worker.programs import find, names
from belljar.kernel.cpu_guard_host import CpuGuard
from belljar.kernel.machine import Machine
from belljar.kernel.process import Process
from belljar.net.guest.uplink import Uplink
from belljar.net.wire import broker_frames
from belljar.worker.serve import Server
from belljar.worker.session import Session

RECURSION: Final = 2500
"""Python frames: V8's own stack overflows soon after, and that would be the end of the worker."""
TURN: Final = 0.008
"""Seconds that busy fibers may keep the worker's other events waiting."""
_TRACE_FRAMES: Final = 12
WARM_UP_COMMAND: Final = "echo hi"


class PageTime:
    """Clock and poller in one."""

    monotonic = staticmethod(time.monotonic)
    time_ns = staticmethod(time.time_ns)

    def __init__(self) -> None:
        self._turned = 0.0
        self.arrived: deque[bytes] = deque()
        self.handle: Callable[[bytes], None] | None = None

    def wait(self, timeout: float | None) -> bool:
        if not self.arrived and (timeout != 0.0 or time.monotonic() - self._turned >= TURN):
            wait(timeout)
            self._turned = time.monotonic()
        while self.arrived and self.handle is not None:
            self.handle(self.arrived.popleft())
        return True


class PageEntropy:
    random_bytes = staticmethod(os.urandom)  # crypto.getRandomValues


class PageGuard(CpuGuard):
    """The processor's guard on Pyodide's interrupts: another worker asks for one every few milliseconds."""

    def install(self) -> None:
        signal.signal(signal.SIGINT, self._on_tick)
        self._last = time.monotonic()

    def _used(self) -> float:
        now = time.monotonic()
        used, self._last = now - self._last, now
        return min(used, 2 * self._tick)


class PageCarrier:
    """The way to the page's network broker."""

    def __init__(self, uplink: Uplink) -> None:
        self._uplink = uplink
        self._frames = broker_frames()

    def send(self, frame: bytes, *, wait: bool = True) -> None:
        _page.post_net(frame)

    def take(self, data: bytes) -> None:
        for message in self._frames.feed(data):
            self._uplink.take(message)

    def close(self) -> None:
        self._uplink.lost()


class Page:
    """The one sandbox of this worker."""

    def __init__(self) -> None:
        self._time = PageTime()
        self._session = Session(Machine(self._time, self._time, PageEntropy()), programs=find, names=names())
        kernel = self._session.kernel
        kernel.report_bug = self._report_incident
        self._server = Server(self._session, self._send)
        self._server.more_operations = Snapshots(self._session, self._server).table
        self.engines = PageEngines(kernel.hub)
        kernel.engines = self.engines
        self._frames = host_frames()
        self._time.handle = self._handle
        self._network = PageCarrier(self._session.uplink)
        self._session.uplink.connect = lambda _uplink: self._network
        PageGuard(kernel.hub).install()

    def run(self) -> None:
        """Serve until the worker is terminated."""
        self._warm_up()
        self._send(Ready(["wasm", "worker"], 1))
        self._session.kernel.hub.run(lambda: False)

    def _warm_up(self) -> None:
        """Run a command in a session that is thrown away, so that the shell's modules are loaded by then."""
        session = Session(Machine(self._time, self._time, PageEntropy()), programs=find, names=names())
        session.exec(["bash", "-c", WARM_UP_COMMAND])

    def receive(self, data: bytes) -> None:
        self._time.arrived.append(data)

    def receive_net(self, data: bytes) -> None:
        self._network.take(data)

    def _handle(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                self._server.handle(message)
        except WireError as error:
            self._send(Incident(b"i-wire", b"", str(error).encode(), fatal=True))

    def _send(self, message: WorkerMessage) -> None:
        _page.post(encode(message))

    def _report_incident(self, process: Process, error: BaseException) -> str:
        incident = f"i-{os.urandom(4).hex()}"
        trace = "".join(traceback.format_exception(error, limit=-_TRACE_FRAMES))
        name = process.name.encode("utf-8", "surrogateescape")
        self._send(Incident(incident.encode(), name, trace.encode("utf-8", "backslashreplace")))
        return incident


page: Page | None = None


def main() -> None:
    global page
    sys.setrecursionlimit(RECURSION)
    page = Page()
    page.run()


def start() -> None:
    start_first(main)


def receive(data: object) -> None:
    """A message from the owner, between two turns of the hub."""
    assert page is not None
    page.receive(data.to_bytes())  # type: ignore[attr-defined] # a JsProxy of a Uint8Array


def receive_net(data: object) -> None:
    """A frame of the page's network broker."""
    assert page is not None
    page.receive_net(data.to_bytes())  # type: ignore[attr-defined]


def receive_engine(number: int, data: object) -> None:
    """Bytes of an engine worker; None: it has ended."""
    assert page is not None
    with suppress(KeyError):
        page.engines.receive(number, None if data is None else data.to_bytes())  # type: ignore[attr-defined]
