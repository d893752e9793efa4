"""The asynchronous front's wire: the event loop reads and writes the worker's socket; nothing blocks it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from belljar.abi.clock import Clock
from belljar.abi.limits import Limits
from belljar.abi.wire import Plain, WireError
from belljar.api.asks import Asks
from belljar.api.await_host import SerialThread, Threads, in_thread, off_loop
from belljar.api.core import Conversation, Pending
from belljar.api.engines_host import EngineBroker, Opening
from belljar.api.errors import ENDED, EndedError, SandboxClosed, SandboxError
from belljar.api.forking import OnSplit, check_origin, fork_link
from belljar.api.offers import FileAnswer, Offers, answer_frame
from belljar.api.outgoing import UNTAKEN_MAX, Outgoing
from belljar.api.request import GRACE, NOT_TAKEN, STOPPED
from belljar.api.sockets_host import receive_without_blocking, send_some, unread_bytes
from belljar.api.stepper import finish_async
from belljar.api.workers import take_worker
from belljar.owner.handle_host import WorkerHandle

if TYPE_CHECKING:
    from belljar.api.offers import ParseCall
    from belljar.api.settings import Settings
    from belljar.api.tools import Tool

T = TypeVar("T")
_READ: Final = 1 << 20
_makers: Final = Threads()
"""Start workers, a few at a time: when many are asked for and given up, most are never started."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_makers.forget)


async def take_worker_async(settings: Settings) -> WorkerHandle:
    """A worker, without stopping the loop while it starts. See `take_worker`."""
    return await in_thread(lambda: take_worker(settings), WorkerHandle.kill, _makers.start)


class AsyncLink:
    """One worker on the running loop."""

    def __init__(
        self,
        worker: WorkerHandle,
        conversation: Conversation,
        limits: Limits,
        clock: Clock,
        offers: Offers | None = None,
    ) -> None:
        receive_without_blocking(worker.connection)
        self.worker = worker
        self.clock = clock
        self._loop = asyncio.get_running_loop()
        self.conversation = conversation
        self._limits = limits
        self.threads = Threads()
        self.offers = offers if offers is not None else Offers(threading.RLock(), clock=clock)
        self.engines = EngineBroker(limits, None if worker.cgroup is None else worker.cgroup.add)
        conversation.on_ask = Asks(self, conversation, self.offers, self.engines).take
        if conversation.relay is not None:
            conversation.relay.use(self.send)
        if worker.greeting:
            conversation.feed(worker.greeting)
        self._outgoing = Outgoing()
        self._files = SerialThread()
        self._working = False
        """Whether a file server is at work: what else the worker says waits until it has answered."""
        conversation.congested = self._congested
        self._more = False
        """Whether there may be frames that were received and not taken yet."""
        self._watched = False
        """Whether the loop tells when there is something to receive."""
        self._sending = False
        """Whether the loop tells when there is room to send."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone: EndedError | None = None
        self._changed = asyncio.Event()
        self._forking = asyncio.Lock()
        self.last_fork: Pending | None = None
        self._receiving: asyncio.Task[None] | None = None
        """Where the loop does not tell when the connection is ready: that of Windows only receives and sends."""
        try:
            self._watch()
        except NotImplementedError:
            self._receiving = self._loop.create_task(self._receive_all())

    # What the worker asks for.

    def takes_descriptors(self) -> bool:
        return self._outgoing.untaken(unread_bytes(self.worker.connection)) < UNTAKEN_MAX

    def work_on_files(self, work: Callable[[], FileAnswer], done: Callable[[FileAnswer], None]) -> None:
        self._working = True

        def answered(answer: FileAnswer) -> None:
            self._working = False
            if self._gone is None:
                done(answer)
                self._writable()

        def run() -> None:
            answer = work()
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(answered, answer)

        self._files.start(run)

    def _congested(self) -> bool:
        return self._working or self._outgoing.congested

    def open_engine(self, opening: Opening) -> None:
        self._spawn(self._open_engine(opening))

    async def _open_engine(self, opening: Opening) -> None:
        frame, fds = await in_thread(lambda: self.engines.open(opening), lambda opened: _close(opened[1]))
        if self._gone is None:
            self.send(frame, fds)
        else:
            _close(fds)

    def call_function(self, number: int, parse: ParseCall, size: int, ended: Callable[[], None]) -> None:
        async def run() -> Plain:
            call = await off_loop(parse, size, self.threads.start)
            return (await call.run_async(self.threads.start)).encode()

        self._spawn(self._call(number, run, ended))

    def call_tool(self, number: int, tool: Tool, args: list[str], ended: Callable[[], None]) -> None:
        async def run() -> Plain:
            return list(await tool.run_async(args, self.threads.start))

        self._spawn(self._call(number, run, ended))

    async def _call(self, number: int, run: Callable[[], Awaitable[Plain]], ended: Callable[[], None]) -> None:
        try:
            value = await run()
            if self._gone is None:
                self.send(answer_frame(number, value))
                await self.wait_until(lambda: self._gone is not None or not self._outgoing)
        except ENDED:
            return  # the sandbox ended while its tool was at work
        finally:
            ended()

    def serve_in_background(self) -> None:
        """The loop always does."""

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Forking.

    async def fork(self, interpreters: Sequence[int] = (), on_split: OnSplit | None = None) -> AsyncLink:
        """A link to a new branch of the worker, with the same offers. Raises SandboxError. See `fork_link`."""
        check_origin(self.worker.zygote)
        async with self._forking:
            link: AsyncLink = await finish_async(fork_link(self, interpreters, on_split))
        return link

    def hold_back(self, frame: bytes) -> None:
        """Send a frame, and none that follows it until `release`. Raises SandboxError."""
        self._put(frame, ())
        self._outgoing.hold()
        self._write()

    def release(self, frame: bytes) -> None:
        """Send what was held back, after this frame. Nothing if it is over."""
        if self._gone is None:
            self._outgoing.release(frame)
            self._write()
            self._tell()

    def twin(self, worker: WorkerHandle, conversation: Conversation, offers: Offers | None = None) -> AsyncLink:
        return AsyncLink(worker, conversation, self._limits, self.clock, offers)

    async def wait_readable(self, fd: int, deadline: float) -> bool:
        readable = asyncio.Event()
        self._loop.add_reader(fd, readable.set)
        try:
            async with asyncio.timeout(max(0.0, deadline - self.clock.monotonic())):
                await readable.wait()
        except TimeoutError:
            return False
        finally:
            self._loop.remove_reader(fd)
        return True

    async def call_blocking(self, work: Callable[[], T], discard: Callable[[T], object]) -> T:
        return await in_thread(work, discard)

    @property
    def layers(self) -> list[str]:
        """The layers that hold around the worker, as it said when it was ready, and as we know."""
        assert self.conversation.ready is not None
        return self.conversation.ready.layers + (self.worker.cgroup.layers if self.worker.cgroup is not None else [])

    def pids(self) -> list[int]:
        """The worker, and the engine processes beside it."""
        return [*self.worker.pids(), *self.engines.pids()]

    @property
    def closed(self) -> bool:
        return self._gone is not None

    def check_loop(self) -> None:
        """SandboxError on any other loop than its own, where nothing would ever be heard of it."""
        if self._gone is None and asyncio.get_running_loop() is not self._loop:
            raise SandboxError(
                "this sandbox was started on another event loop, and lives there: keep to one loop, or make one on each"
            )

    # Sending.

    def send(self, frame: bytes, fds: Sequence[int] = ()) -> None:
        """Queue a frame, and send what there is room for; descriptors that go with it are closed here.

        Who sends much waits with `sent` before sending more.
        """
        self._put(frame, fds)
        self._write()

    async def sent(self, deadline: float | None = None) -> None:
        """Wait until all is sent that was queued so far; a worker that has not taken it by the deadline is ended."""
        mark = self._outgoing.queued
        if not await self.wait_until(
            lambda: self._outgoing.written >= mark, self.patience() if deadline is None else deadline
        ):
            self._end(NOT_TAKEN)

    async def deliver(self, frame: bytes, deadline: float) -> None:
        self.send(frame)
        await self.sent(deadline)

    def post(self, frame: bytes, fds: Sequence[int] = ()) -> None:
        """Queue an answer; it is sent once all that came is taken."""
        self._put(frame, fds, answer=True)

    def _put(self, frame: bytes, fds: Sequence[int], *, answer: bool = False) -> None:
        if self.offers.native_mounts is not None:
            self.offers.native_mounts.renew()
        if self._gone is not None:
            _close(fds)
            raise self._gone
        self._outgoing.put(frame, fds, answer=answer)

    def _write(self) -> None:
        """Send what there is room for; the loop tells when there is more."""
        if self._receiving is not None:
            if self._outgoing and not self._sending:
                self._sending = True
                self._spawn(self._send_all())
            return
        while self._outgoing:
            views, fds = self._outgoing.first()
            try:
                count = send_some(self.worker.connection, views, fds)
            except OSError:
                _close(fds)
                self._readable()  # what it said before may be why
                self.fail(self.conversation.end_of_worker())
                return
            if not count:
                self._outgoing.give_back(fds)
                break
            _close(fds)
            self._outgoing.sent(count)
        fd = self.worker.connection.fileno()
        if self._outgoing and not self._sending:
            self._loop.add_writer(fd, self._writable)
        elif self._sending and not self._outgoing:
            self._loop.remove_writer(fd)
        self._sending = bool(self._outgoing)

    def _writable(self) -> None:
        self._write()
        if self._gone is None:
            self._watch()
            self._go_on()
            self._tell()

    async def _send_all(self) -> None:
        """Where the loop does not tell: send all there is."""
        while self._outgoing:
            views, _ = self._outgoing.first()
            try:
                await self._loop.sock_sendall(self.worker.connection, views[0])
            except OSError:
                self.fail(self.conversation.end_of_worker())
                return
            if self._outgoing:
                self._outgoing.sent(len(views[0]))
                self._tell()
        self._sending = False

    # Receiving.

    def _watch(self) -> None:
        """Receive only while nothing waits to be taken, and the worker reads its answers."""
        wanted = not self._more and not self._congested()
        if wanted != self._watched and self._receiving is None:
            fd = self.worker.connection.fileno()
            if wanted:
                self._loop.add_reader(fd, self._readable)
            else:
                self._loop.remove_reader(fd)
            self._watched = wanted

    async def _receive_all(self) -> None:
        """Where the loop does not tell: receive until the end."""
        while self._gone is None:
            if self._congested():
                await self._changed.wait()
                continue
            try:
                data = b"" if self._more else await self._loop.sock_recv(self.worker.connection, _READ)
            except OSError:
                data = b""
            if self._gone is None:
                self._received(data)

    def _readable(self) -> None:
        try:
            data = self.worker.connection.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if self._gone is None:
            self._received(data)

    def _go_on(self) -> None:
        if self._gone is None and self._more and not self._congested():
            self._received(b"")

    def _received(self, data: bytes) -> None:
        if not data and not self._more:
            self.fail(self.conversation.end_of_worker())
            return
        try:
            self._more = self.conversation.feed(data)
        except WireError as error:
            self.fail(SandboxClosed(f"the sandbox's worker broke the protocol and was ended: {error}."))
            return
        frames, self.conversation.outbox = self.conversation.outbox, []
        if self._gone is None and frames:
            self.post(b"".join(frames))
        if self._gone is None and self._outgoing:
            self._write()
        if self._gone is None:
            self._watch()
            if self._more and self._receiving is None:
                self._loop.call_soon(self._go_on)  # others on this loop have their turn first
        self._tell()

    def _tell(self) -> None:
        """Have all who wait look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def patience(self, wall_seconds: float | None = None) -> float:
        """The (monotonic) time by which a worker that is asked now must have answered; by its own limit, or this."""
        return self.clock.monotonic() + (wall_seconds or self._limits.wall_seconds) + GRACE + self.worker.grace

    async def expect(self, ready: Callable[[], bool], deadline: float | None = None) -> None:
        """Wait until it is so; a worker that lets the deadline pass is ended. Raises SandboxError."""
        if not await self.wait_until(ready, self.patience() if deadline is None else deadline):
            self._end(STOPPED)

    def _end(self, why: str) -> None:
        self.fail(SandboxClosed(why))
        assert self._gone is not None
        raise self._gone

    async def wait(self, pending: Pending, deadline: float | None = None) -> bool:
        """Wait until the answer is there; False if the (monotonic) deadline passed first."""
        return await self.wait_until(lambda: pending.done, deadline)

    async def wait_until(self, ready: Callable[[], bool], deadline: float | None = None) -> bool:
        """Wait until it is so; False if the (monotonic) deadline passed first. Raises SandboxError."""
        if ready():
            return True
        try:
            async with asyncio.timeout(None if deadline is None else max(0.0, deadline - self.clock.monotonic())):
                while not ready():
                    if self._gone is not None:
                        raise self._gone
                    await self._changed.wait()
        except TimeoutError:
            return ready()
        return True

    def fail(self, error: EndedError) -> None:
        """End the worker; whoever waits for it, now or later, is told this reason. The first counts."""
        if self._gone is not None:
            return
        self._gone = error
        if self._receiving is None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self.worker.connection.fileno())
                self._loop.remove_writer(self.worker.connection.fileno())
            self.worker.kill()
        else:  # the loop must have let go of the connection before that is closed
            self._receiving.cancel()
            self._receiving.add_done_callback(lambda _: self.worker.kill())
        self.engines.close()
        _close(self._outgoing.clear())
        self.conversation.fail(error)
        if self._working or not self.offers.guard.acquire(blocking=False):
            self._files.start(self.offers.close)  # after the server that is at work
        else:
            try:
                self.offers.close()
            finally:
                self.offers.guard.release()
        self._changed.set()

    def close(self) -> None:
        self.fail(SandboxClosed("the sandbox was closed"))
        if not self._loop.is_closed():
            for task in self._tasks:
                task.cancel()

    def disown(self, error: SandboxClosed) -> None:
        """See `Owned.disown`. The loop is the parent's, and its epoll shared with that: it is not touched."""
        if self._gone is None:
            self._gone = error
            _close(self._outgoing.clear())
            self.engines.disown()
            self.worker.release()

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
