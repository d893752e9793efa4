"""The asynchronous front's wire: the event loop reads and writes the worker's socket; nothing blocks it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Final

from belljar.abi.limits import Limits
from belljar.abi.wire import Ask, Plain, WireError
from belljar.api.bridge import HostCall
from belljar.api.core import Conversation, Pending
from belljar.api.engines_host import EngineBroker, EngineCopies, Opening
from belljar.api.errors import SandboxClosed, SandboxError
from belljar.api.forking import FORK_SECONDS, Fork, Held, check_origin
from belljar.api.offers import Offers, answer_frame
from belljar.api.request import GRACE, STOPPED
from belljar.api.tools import Tool
from belljar.engines.template_host import EngineUnavailable
from belljar.lockdown.sockets_host import send_descriptors
from belljar.worker.handle_host import WorkerHandle, WorkerUnavailable
from belljar.worker.supervisor_host import shared

_READ: Final = 1 << 20


async def take_worker(memory_bytes: int) -> WorkerHandle:
    """A worker, without stopping the loop while the zygote starts."""
    return await asyncio.to_thread(shared.take, memory_bytes)


class AsyncLink:
    """One worker on the running loop."""

    def __init__(
        self, worker: WorkerHandle, conversation: Conversation, limits: Limits, offers: Offers | None = None
    ) -> None:
        worker.connection.setblocking(False)
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self.conversation = conversation
        self._limits = limits
        self.offers = offers if offers is not None else Offers(threading.RLock())
        conversation.on_ask = self._asked
        self._engines = EngineBroker(limits, None if worker.cgroup is None else worker.cgroup.add)
        self._unsent: deque[tuple[memoryview, Sequence[int]]] = deque()
        """Frames, or what is left of them, and the descriptors that go with their first byte."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone: SandboxError | None = None
        self._changed = asyncio.Event()
        self._forking = asyncio.Lock()
        self._receiving: asyncio.Task[None] | None = None
        """Where the loop does not tell when the connection is ready: that of Windows only receives and sends."""
        try:
            self._loop.add_reader(worker.connection.fileno(), self._readable)
        except NotImplementedError:
            self._receiving = self._loop.create_task(self._receive_all())

    async def fork(self, interpreters: Sequence[int] = ()) -> AsyncLink:
        """A link to a new branch of the worker, with the same offers. Raises SandboxError. See `Link.fork`."""
        check_origin(self._worker.zygote)
        async with self._forking:
            copies = await self._copy_engines(interpreters)
            try:
                link = await self._fork(interpreters, copies)
            except BaseException:
                copies.close()
                raise
        try:
            link._engines.adopt(copies)
        except EngineUnavailable as error:
            link.close()
            raise SandboxError(f"could not fork the sandbox: {error}") from error
        return link

    async def _copy_engines(self, interpreters: Sequence[int]) -> EngineCopies:
        """Copies of the engine processes that can be copied now; the worker holds them still until it is forked."""
        if not interpreters and not self._engines.busy:
            return EngineCopies()
        held = Held(self.conversation, interpreters)
        self.send(held.frame)
        try:
            await self.expect(lambda: held.pending.done)
            making = asyncio.ensure_future(asyncio.to_thread(self._engines.copy, held.numbers()))
            try:
                copies = await asyncio.shield(making)
            except asyncio.CancelledError:
                (await making).close()
                raise
            try:
                held.check(copies.made, copies.failed)
            except BaseException:
                copies.close()
                raise
        except BaseException:
            if self._gone is None:
                self.send(self.conversation.call("release")[1])
            raise
        return copies

    async def _fork(self, interpreters: Sequence[int], copies: EngineCopies) -> AsyncLink:
        from belljar.worker.branch_host import Branching  # few sandboxes are forked

        fork = Fork(self.conversation, self.offers, interpreters, copies.made)
        making = Branching(self._worker)
        try:
            self.send(fork.frame, [making.permit(), *copies.descriptors()])
            await asyncio.wait_for(self.wait(fork.pending), FORK_SECONDS)
            fork.check()
            await asyncio.wait_for(self._readable_once(making.fileno()), FORK_SECONDS)
            worker = making.accept(0)
        except WorkerUnavailable as error:
            making.abandon()
            fork.abandon()
            raise SandboxError(f"could not fork the sandbox: {error}. Try `belljar doctor`.") from error
        except TimeoutError:
            making.abandon()
            fork.abandon()
            self.close()
            raise SandboxClosed("the sandbox stopped answering while it was forked, and was ended") from None
        except BaseException:
            making.abandon()
            fork.abandon()
            raise
        return AsyncLink(worker, *fork.halves(self._limits))

    async def _readable_once(self, fd: int) -> None:
        readable = asyncio.Event()
        self._loop.add_reader(fd, readable.set)
        try:
            await readable.wait()
        finally:
            self._loop.remove_reader(fd)

    @property
    def layers(self) -> list[str]:
        """What holds around the worker, as it said when it was ready, and as we know."""
        assert self.conversation.ready is not None
        return self.conversation.ready.layers + (self._worker.cgroup.layers if self._worker.cgroup is not None else [])

    def pids(self) -> list[int]:
        """The worker, and the engine processes beside it."""
        return [self._worker.pid, *self._engines.pids()]

    @property
    def closed(self) -> bool:
        return self._gone is not None

    def check_loop(self) -> None:
        """SandboxError on any other loop than its own, where nothing would ever be heard of it."""
        if asyncio.get_running_loop() is not self._loop:
            raise SandboxError(
                "this sandbox was started on another event loop, and lives there: keep to one loop, or make one on each"
            )

    def send(self, frame: bytes, fds: Sequence[int] = ()) -> None:
        """Send a frame, or queue it; descriptors that go with it are closed here."""
        if self._gone is not None:
            _close(fds)
            raise self._gone
        idle = not self._unsent
        self._unsent.append((memoryview(frame), fds))
        if idle:
            self._writable()
            if self._unsent and self._receiving is None:
                self._loop.add_writer(self._worker.connection.fileno(), self._writable)
            elif self._unsent:
                self._spawn(self._send_all())

    async def _send_all(self) -> None:
        """Where the loop does not tell: send what is left."""
        while self._unsent:
            try:
                await self._loop.sock_sendall(self._worker.connection, self._unsent[0][0])
            except OSError as error:
                self._fail(SandboxClosed(f"the sandbox's worker is gone ({error}). Make a new sandbox."))
                return
            if self._unsent:
                self._unsent.popleft()

    async def _receive_all(self) -> None:
        """Where the loop does not tell: receive until the end."""
        while self._gone is None:
            try:
                data = await self._loop.sock_recv(self._worker.connection, _READ)
            except OSError:
                data = b""
            if self._gone is None:
                self._received(data)

    def _try(self, data: memoryview, fds: Sequence[int]) -> int:
        connection = self._worker.connection
        try:
            return send_descriptors(connection, data, fds) if fds else connection.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            self._fail(SandboxClosed(f"the sandbox's worker is gone ({error}). Make a new sandbox."))
            return 0

    def _writable(self) -> None:
        while self._unsent:
            data, fds = self._unsent[0]
            sent = self._try(data, fds)
            if not sent:
                return
            _close(fds)
            if sent < len(data):
                self._unsent[0] = data[sent:], ()
                return
            self._unsent.popleft()
        if self._receiving is None:
            self._loop.remove_writer(self._worker.connection.fileno())

    def _readable(self) -> None:
        try:
            data = self._worker.connection.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._received(data)

    def _received(self, data: bytes) -> None:
        if not data:
            self._fail(self.conversation.end_of_worker())
            return
        try:
            self.conversation.feed(data)
        except WireError as error:
            self._fail(SandboxClosed(f"the sandbox's worker broke the protocol and was ended: {error}."))
            return
        frames, self.conversation.outbox = self.conversation.outbox, []
        for frame in frames:
            if self._gone is None:
                self.send(frame)
        self._changed.set()
        self._changed = asyncio.Event()

    def _asked(self, ask: Ask) -> None:
        if ask.target == b"engine":
            todo = self._engines.take(ask)
            if isinstance(todo, Opening):
                given = self._engines.give(todo)
                if given is not None:
                    self.send(*given)
                else:
                    self._spawn(self._open_engine(todo))
            else:
                self.conversation.outbox.append(todo)
            return
        if ask.target == b"net":
            self.send(*self.offers.network_answer(ask, self.conversation.observe))
            return
        frame = self.offers.file_answer(ask)
        if frame is not None:
            self.conversation.outbox.append(frame)
            return
        if (call := self.offers.value_call(ask)) is not None:
            self._spawn(self._run_call(ask.id, call))
            return
        tool, args = self.offers.tool_call(ask)
        self._spawn(self._run_tool(ask.id, tool, args))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open_engine(self, opening: Opening) -> None:
        frame, fds = await asyncio.to_thread(self._engines.open, opening)
        if self._gone is None:
            self.send(frame, fds)
        else:
            _close(fds)

    async def _run_call(self, number: int, call: HostCall) -> None:
        self._answer(number, (await call.run_async()).encode())

    async def _run_tool(self, number: int, tool: Tool, args: list[str]) -> None:
        self._answer(number, list(await tool.run_async(args)))

    def _answer(self, number: int, value: Plain) -> None:
        if self._gone is None:
            self.send(answer_frame(number, value))

    async def expect(self, ready: Callable[[], bool], seconds: float | None = None) -> None:
        """Until it is so; a worker that does not answer in time is ended. Raises SandboxError."""
        try:
            await asyncio.wait_for(
                self.wait_until(ready), self._limits.wall_seconds + GRACE if seconds is None else seconds
            )
        except TimeoutError:
            self.close()
            raise SandboxError(STOPPED) from None

    async def wait(self, pending: Pending) -> None:
        await self.wait_until(lambda: pending.done)

    async def wait_until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            if self._gone is not None:
                raise self._gone
            await self._changed.wait()

    def _fail(self, error: SandboxError) -> None:
        if self._gone is None:
            self._gone = error
            if self._receiving is None:
                if not self._loop.is_closed():
                    self._loop.remove_reader(self._worker.connection.fileno())
                    self._loop.remove_writer(self._worker.connection.fileno())
                self._worker.kill()
            else:  # the loop must have let go of the connection before that is closed
                self._receiving.cancel()
                self._receiving.add_done_callback(lambda _: self._worker.kill())
            self._engines.close()
            while self._unsent:
                _close(self._unsent.popleft()[1])
            self.conversation.fail(error)
            self.offers.close()
            self._changed.set()

    def close(self) -> None:
        self._fail(SandboxClosed("the sandbox was closed"))
        if not self._loop.is_closed():
            for task in self._tasks:
                task.cancel()

    def let_go(self) -> None:
        """Its owner is gone, on whatever thread that is noticed: close it, on its loop if that still runs."""
        if self._gone is None:
            if self._loop.is_closed():
                self.close()
            else:
                self._loop.call_soon_threadsafe(self.close)


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)
