"""One JavaScript process and the socket to it, for both fronts."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import suppress

from belljar.api.await_host import run_aside
from belljar.api.bridge import HostCall
from belljar.api.dialogue import Run
from belljar.api.js_dialogue import JsDialogue
from belljar.engines.template_host import EngineProcess
from belljar.lockdown.polling_host import Readiness

_CHUNK = 256 << 10
GRACE = 0.5
"""Seconds past its limit that a run has to say itself that its time is over."""


class JsLink:
    """Drives runs on one process. Host functions are at work beside it, so that a run's deadline always holds."""

    def __init__(self, process: EngineProcess | None, connection: socket.socket, output_bytes: int) -> None:
        self.dialogue = JsDialogue(output_bytes)
        self._process = process
        self._connection = connection
        self._sending = threading.Lock()

    def branch(self) -> JsLink:
        """A link to a copy of the process, which waits for its next run. Raises EngineUnavailable."""
        assert self._process is not None
        process = self._process.copy()
        twin = JsLink(process, process.connection, 0)
        twin.dialogue = self.dialogue.branch()
        return twin

    def drive(self, run: Run, frame: bytes, seconds: float) -> None:
        """Send a run and see it through. After `seconds` it is over, whatever the process does."""
        deadline = time.monotonic() + seconds + GRACE
        self._connection.setblocking(True)
        self._send(frame)
        ready = Readiness(self._connection)
        while not run.done:
            left = deadline - time.monotonic()
            if left <= 0 or not ready.within(left):
                self.dialogue.over_time(run)
                break
            for call in self.dialogue.feed(self._receive()):
                run_aside(lambda call=call: self._call(run, call), run.context)  # type: ignore[misc]

    def _receive(self) -> bytes:
        try:
            return self._connection.recv(_CHUNK)
        except OSError:
            return b""

    def _send(self, frame: bytes) -> None:
        with self._sending, suppress(OSError):  # a process that is gone is noticed by the reader
            self._connection.sendall(frame)

    def _call(self, run: Run, call: HostCall) -> None:
        frame = self.dialogue.answer(run, call.run())
        if frame is not None:
            self._send(frame)
        elif run.done:
            self.kill()

    async def drive_async(self, run: Run, frame: bytes, seconds: float) -> None:
        """The same on an event loop."""
        loop = asyncio.get_running_loop()
        self._connection.setblocking(False)
        tasks: set[asyncio.Task[None]] = set()

        async def call_host(call: HostCall) -> None:
            answer = self.dialogue.answer(run, await call.run_async())
            if answer is not None:
                await self._send_async(loop, answer)
            elif run.done:
                self.kill()

        async def converse() -> None:
            await self._send_async(loop, frame)
            while not run.done:
                try:
                    data = await loop.sock_recv(self._connection, _CHUNK)
                except OSError:
                    data = b""
                for call in self.dialogue.feed(data):
                    task = loop.create_task(call_host(call))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)

        try:
            async with asyncio.timeout(seconds + GRACE):
                await converse()
        except TimeoutError:
            self.dialogue.over_time(run)
        finally:
            for task in tasks:
                task.cancel()

    async def _send_async(self, loop: asyncio.AbstractEventLoop, frame: bytes) -> None:
        with suppress(OSError):
            await loop.sock_sendall(self._connection, frame)

    def kill(self) -> None:
        """End the process. Idempotent."""
        if self._process is not None:
            self._process.kill()
