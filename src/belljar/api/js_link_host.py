"""One JavaScript process and the socket to it, for both fronts."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from belljar.abi.clock import Clock
from belljar.api.await_host import Threads
from belljar.api.bridge import HostCall
from belljar.api.clock_host import HOST_CLOCK
from belljar.api.command import Listening
from belljar.api.dialogue import Run
from belljar.api.errors import SandboxClosed
from belljar.api.js_dialogue import JsDialogue
from belljar.api.owner_host import owned
from belljar.api.sockets_host import receive_without_blocking
from belljar.engines.owner.js_prefix_host import PrefixProcess
from belljar.engines.owner.template_host import EngineProcess
from belljar.lockdown.polling_host import Readiness, writable

_CHUNK = 256 << 10
GRACE = 0.5
"""Seconds past its limit that a run has to say itself that its time is over."""


class JsLink:
    """Drives runs on one process. Host functions run on `threads`, so that a run's deadline always holds."""

    def __init__(
        self,
        process: EngineProcess | PrefixProcess,
        output_bytes: int,
        threads: Threads,
        clock: Clock = HOST_CLOCK,
    ) -> None:
        self.clock = clock
        self.dialogue = JsDialogue(output_bytes)
        self.process = process
        self._connection = process.connection
        self._threads = threads
        self._sending = threading.Lock()
        self._deadline = 0.0
        self._closed: SandboxClosed | None = None
        self._using = threading.Lock()
        self._in_use = self._killed = False
        """Whether a thread, or an event loop, waits for the connection; and whether it is to be ended then."""
        receive_without_blocking(self._connection)
        owned.add(self)

    def branch(self, copy: Callable[[EngineProcess], EngineProcess], threads: Threads) -> JsLink:
        """A link to a copy of the process, which waits for its next run. Raises EngineUnavailable."""
        assert isinstance(self.process, EngineProcess)
        twin = JsLink(copy(self.process), 0, threads, self.clock)
        twin.dialogue = self.dialogue.branch()
        return twin

    @contextmanager
    def _use(self, seconds: float) -> Iterator[None]:
        """For the time of a run. SandboxClosed if it ended because somebody closed the interpreter."""
        self._deadline = self.clock.monotonic() + seconds + GRACE
        with self._using:
            self._in_use = True
        try:
            yield
        finally:
            with self._using:
                self._in_use = False
                killed = self._killed
            if killed:
                self.process.kill()
        if self._closed is not None:
            raise self._closed

    def drive(self, run: Run, frame: bytes, seconds: float) -> None:
        """Send a run and see it through. After `seconds` it is over, whatever the process does."""
        with self._use(seconds):
            self._send(frame)
            ready = Readiness(self._connection)
            while not run.done:
                left = self._deadline - self.clock.monotonic()
                if left <= 0 or not ready.within(left):
                    self.dialogue.over_time(run)
                    break
                for call in self._receive():
                    self._threads.start(partial(run.context.copy().run, self._call, run, call))
                called = self.clock.monotonic()
                while run.listening is not None and run.listening.waiting:
                    run.listening.tell()
                self._deadline += self.clock.monotonic() - called

    def _receive(self) -> list[HostCall]:
        try:
            data = self._connection.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        return list(self.dialogue.feed(data))

    def _send(self, frame: bytes) -> None:
        """Until the run's deadline. A process that is gone is noticed by the reader."""
        with self._sending, suppress(OSError):
            unsent = memoryview(frame)
            while unsent:
                try:
                    unsent = unsent[self._connection.send(unsent) :]
                except BlockingIOError:
                    left = self._deadline - self.clock.monotonic()
                    if left <= 0 or not writable(self._connection, left):
                        return  # half a frame: the process can be sent nothing more, and its run is over time

    def _call(self, run: Run, call: HostCall) -> None:
        frame = self.dialogue.answer(run, call.run())
        if frame is not None:
            self._send(frame)
        elif run.done:
            self.kill()

    async def drive_async(self, run: Run, frame: bytes, seconds: float) -> None:
        """The same on an event loop."""
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[None]] = set()
        sending = asyncio.Lock()

        async def send(frame: bytes) -> None:
            async with sending:
                with suppress(OSError):
                    await loop.sock_sendall(self._connection, frame)

        async def call_host(call: HostCall) -> None:
            answer = self.dialogue.answer(run, await call.run_async(self._threads.start))
            if answer is not None:
                await send(answer)
            elif run.done:
                self.kill()

        async def tell(listening: Listening, scope: asyncio.Timeout) -> None:
            called, deadline = loop.time(), scope.when()
            assert deadline is not None
            scope.reschedule(None)  # the functions' own time is not the run's
            while listening.waiting:
                told = listening.tell()
                if isinstance(told, Awaitable):
                    await told
            scope.reschedule(deadline + loop.time() - called)

        async def converse(scope: asyncio.Timeout) -> None:
            await send(frame)
            while not run.done:
                try:
                    data = await loop.sock_recv(self._connection, _CHUNK)
                except OSError:
                    data = b""
                for call in self.dialogue.feed(data):
                    task = loop.create_task(call_host(call))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                if run.listening is not None:
                    await tell(run.listening, scope)

        with self._use(seconds):
            try:
                async with asyncio.timeout(seconds + GRACE) as scope:
                    await converse(scope)
            except TimeoutError:
                self.dialogue.over_time(run)
            finally:
                for task in tasks:
                    task.cancel()

    def close(self, error: SandboxClosed) -> None:
        """End the process; a run that is under way raises `error`."""
        self._closed = error
        self.kill()

    def disown(self, error: SandboxClosed) -> None:
        self._closed = error
        self.process.kill()  # which only lets go, in another process than its owner's

    def kill(self) -> None:
        """End the process. Idempotent."""
        with self._using:
            self._killed = True
            in_use = self._in_use
        if in_use:  # nobody may wait for a connection that is closed: its number could be another's
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        else:
            self.process.kill()
