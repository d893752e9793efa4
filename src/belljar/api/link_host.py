"""The synchronous front's wire: the thread that waits for an answer also dispatches other callers' frames.

There is no thread of ours on the way of a plain call: the caller sends, then receives until its own answer is there. If
another caller is already receiving, it delivers. A helper thread only exists while something may arrive unasked, and
stands aside while there are callers, since to be told by another thread takes longer than to receive.

The connection never blocks. A caller waits until its own frame is sent; answers to the worker's questions are queued,
and sent by whoever receives.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from belljar.abi.limits import Limits
from belljar.abi.wire import Plain, WireError
from belljar.api.asks import Asks
from belljar.api.await_host import Threads
from belljar.api.core import Conversation, Pending
from belljar.api.engines_host import ENGINES_MAX, EngineBroker, Opening
from belljar.api.errors import SandboxClosed, SandboxError
from belljar.api.forking import check_origin, fork_link
from belljar.api.offers import Offers, answer_frame
from belljar.api.outgoing import Outgoing
from belljar.api.request import GRACE, NOT_TAKEN, STOPPED
from belljar.api.sockets_host import Poller, receive_without_blocking, send_some, writable
from belljar.api.stepper import finish
from belljar.lockdown.polling_host import readable
from belljar.owner.handle_host import WorkerHandle

if TYPE_CHECKING:
    from belljar.api.bridge import HostCall
    from belljar.api.tools import Tool

T = TypeVar("T")
_READ: Final = 64 << 10
_READ_MORE: Final = 1 << 20
"""How much to take after a read that came full: a large buffer costs more to make than a short answer to read."""
_ASIDE: Final = 0.005
"""Seconds without a caller after which the helper receives again."""


class Link:
    """One worker, its conversation, and the rules for who reads."""

    def __init__(
        self, worker: WorkerHandle, conversation: Conversation, limits: Limits, offers: Offers | None = None
    ) -> None:
        self.worker = worker
        self.conversation = conversation
        self._make_locks()
        self._waiting = 0
        """How many threads wait for a change."""
        self._reading = 0
        """The thread that receives, or 0."""
        self._sending = 0
        """How many threads wait to send."""
        self._callers = 0
        """How many have received so far."""
        self._bell: socket.socket | None = None
        """Rung to have the helper look up; only there while it listens."""
        self._read_size = _READ
        receive_without_blocking(worker.connection)
        self._poller = Poller(worker.connection)
        self._outgoing = Outgoing()
        self._more = False
        """Whether there may be frames that were received and not taken yet."""
        self._reader: threading.Thread | None = None
        self._gone: SandboxError | None = None
        self._limits = limits
        self.threads = Threads()
        self._openers = Threads(ENGINES_MAX)
        self.offers = offers if offers is not None else Offers(threading.RLock())
        self.engines = EngineBroker(limits, None if worker.cgroup is None else worker.cgroup.add)
        conversation.on_ask = Asks(self, conversation, self.offers, self.engines).take
        conversation.congested = lambda: self._outgoing.congested
        conversation.on_left = self.serve_in_background

    def _make_locks(self) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._queue_lock = threading.Lock()
        self._send_lock = threading.Lock()
        self._forking = threading.Lock()

    # What the worker asks for.

    def open_engine(self, opening: Opening) -> None:
        def open_() -> None:
            frame, fds = self.engines.open(opening)
            with suppress(SandboxError):  # the sandbox ended, and its engines with it
                self.send(frame, fds)

        self._openers.start(open_)

    def call_function(self, number: int, call: HostCall, ended: Callable[[], None]) -> None:
        self._call(number, lambda: call.run().encode(), ended)

    def call_tool(self, number: int, tool: Tool, args: list[str], ended: Callable[[], None]) -> None:
        self._call(number, lambda: list(tool.run(args)), ended)

    def _call(self, number: int, work: Callable[[], Plain], ended: Callable[[], None]) -> None:
        def run() -> None:
            answer = answer_frame(number, work())
            with suppress(SandboxError):  # the sandbox ended while its tool was at work
                self.send(answer)
            ended()

        self.threads.start(run)

    # Forking.

    def fork(self, interpreters: Sequence[int] = ()) -> Link:
        """A link to a new branch of the worker, with the same offers. Raises SandboxError. See `fork_link`."""
        check_origin(self.worker.zygote)
        with self._forking:
            link: Link = finish(fork_link(self, interpreters))
        if link.engines.busy or self._reader is not None:
            link.serve_in_background()  # what goes on without a caller here goes on there
        return link

    def twin(self, worker: WorkerHandle, conversation: Conversation, offers: Offers) -> Link:
        return Link(worker, conversation, self._limits, offers)

    def wait_readable(self, fd: int, deadline: float) -> bool:
        return readable(fd, max(0.0, deadline - time.monotonic()))

    def call_blocking(self, work: Callable[[], T], _discard: Callable[[T], object]) -> T:
        return work()

    @property
    def pid(self) -> int:
        return self.worker.pid

    def pids(self) -> list[int]:
        """The worker, and the engine processes beside it."""
        return [self.worker.pid, *self.engines.pids()]

    @property
    def layers(self) -> list[str]:
        """The layers that hold around the worker, as it said when it was ready, and as we know."""
        assert self.conversation.ready is not None
        return self.conversation.ready.layers + (self.worker.cgroup.layers if self.worker.cgroup is not None else [])

    @property
    def closed(self) -> bool:
        return self._gone is not None

    # Sending.

    def send(self, frame: bytes, fds: Sequence[int] = (), deadline: float | None = None) -> None:
        """Send a frame; descriptors that go with it are closed here. Raises SandboxError.

        Waits until it is sent; a worker that has not taken it by the (monotonic) deadline is ended. In the thread that
        receives, on behalf of what was received, it does not wait.
        """
        mark = self._put(frame, fds)
        self._flush()
        if self._outgoing.written < mark and self._reading != threading.get_ident():
            self._wait_sent(mark, self.patience() if deadline is None else deadline)

    def post(self, frame: bytes, fds: Sequence[int] = ()) -> None:
        """Queue an answer, in the thread that receives; it is sent once all that came is taken."""
        self._put(frame, fds, answer=True)

    def _put(self, frame: bytes, fds: Sequence[int], *, answer: bool = False) -> int:
        with self._queue_lock:
            if self._gone is None:
                return self._outgoing.put(frame, fds, answer=answer)
        _close(fds)
        raise self._gone

    def _wait_sent(self, mark: int, deadline: float) -> None:
        with self._lock:
            self._sending += 1
        try:
            self._send_until(mark, deadline)
        finally:
            with self._lock:
                self._sending -= 1
                self._close_if_unused()

    def _send_until(self, mark: int, deadline: float) -> None:
        while self._outgoing.written < mark:
            if self._gone is not None:
                raise self._gone
            left = deadline - time.monotonic()
            if left <= 0:
                self.fail(SandboxClosed(NOT_TAKEN))
                continue
            writable(self.worker.connection, left)
            self._flush()

    def _flush(self) -> None:
        """Send what is queued as far as the worker takes it now. Raises SandboxError if it takes nothing any more."""
        while self._outgoing and self._send_lock.acquire(blocking=False):
            try:
                blocked = not self._write()
            except OSError:
                self._hear_last_words()
                assert self._gone is not None
                raise self._gone from None
            finally:
                self._send_lock.release()
            if blocked:
                return

    def _write(self) -> bool:
        """False: the connection is full."""
        while self._outgoing:
            with self._queue_lock:
                if not self._outgoing:
                    return True
                views, fds = self._outgoing.first()
            try:
                count = send_some(self.worker.connection, views, fds)
            except OSError:
                _close(fds)
                raise
            with self._queue_lock:
                if count and self._outgoing:
                    self._outgoing.sent(count)
                elif self._outgoing:
                    self._outgoing.give_back(fds)
                    return False
            _close(fds)
        return True

    # Receiving.

    def patience(self) -> float:
        """The (monotonic) time by which a worker that is asked now must have answered."""
        return time.monotonic() + self._limits.wall_seconds + GRACE

    def expect(self, ready: Callable[[], bool], deadline: float | None = None) -> None:
        """Wait until it is so; a worker that lets the deadline pass is ended. Raises SandboxError."""
        if not self.wait_until(ready, self.patience() if deadline is None else deadline):
            self.fail(SandboxClosed(STOPPED))
            assert self._gone is not None
            raise self._gone

    def wait(self, pending: Pending, deadline: float | None = None) -> bool:
        """Wait until the answer is there; False if the (monotonic) deadline passed first."""
        return self.wait_until(lambda: pending.done, deadline)

    def wait_until(self, ready: Callable[[], bool], deadline: float | None = None) -> bool:
        while not ready():
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            with self._lock:
                if ready():
                    break
                if self._gone is not None:
                    raise self._gone
                if self._reading:
                    self._waiting += 1
                    try:
                        self._changed.wait(left)
                    finally:
                        self._waiting -= 1
                    continue
                self._reading = threading.get_ident()
                self._callers += 1
            try:
                self._ring()
                self._receive(left)
            finally:
                self._stop_reading()
        return True

    def _ring(self) -> None:
        if self._bell is not None:
            with self._lock:
                bell, self._bell = self._bell, None
            if bell is not None:
                with suppress(OSError):  # it is over
                    bell.send(b"\0")

    def _receive(self, timeout: float | None) -> None:
        """Take what there is, or comes within the time; one turn of it, so that a worker can't keep us for ever."""
        if self._outgoing.congested:
            writable(self.worker.connection, timeout)
            self._flush()
            return
        if not self._more and not self._ready(timeout):
            return
        try:
            self._take()
        except WireError as error:
            self.fail(SandboxClosed(f"the sandbox's worker broke the protocol and was ended: {error}."))
            return
        except BaseException:
            # Most often ^C, which is met while waiting and does no harm there; but here what came may be lost.
            self.fail(SandboxClosed("the program was interrupted while it took an answer, and the sandbox was ended"))
            raise
        if self.conversation.outbox:
            frames, self.conversation.outbox = self.conversation.outbox, []
            self.post(b"".join(frames))
        self._flush()

    def _ready(self, timeout: float | None) -> bool:
        """Whether there is something to take, or nothing will ever come."""
        try:
            if self._outgoing:
                arrived = self._poller.wait(timeout, sending=True)
                self._flush()
                return arrived
            return self._poller.wait(timeout)
        except (OSError, ValueError):
            return True

    def _take(self) -> None:
        if self._more:
            data = b""
        else:
            try:
                data = self.worker.connection.recv(self._read_size)
            except BlockingIOError:
                return
            except OSError:
                data = b""  # reset: it ended with something unread
            if not data:
                self.fail(self.conversation.end_of_worker())
                return
            self._read_size = _READ if len(data) < self._read_size else _READ_MORE
        self._more = True
        self._more = self.conversation.feed(data)

    def _hear_last_words(self) -> None:
        """The worker takes nothing any more: what it said before may be why. Whoever receives hears it; else we do."""
        with self._changed:
            ours = not self._reading
            if ours:
                self._reading = threading.get_ident()
        while ours and self._gone is None and (self._more or self._poller.wait(0)):
            with self._queue_lock:
                _close(self._outgoing.clear())
            self._receive(0.0)
        if ours:
            self._stop_reading()
        self.fail(self.conversation.end_of_worker())

    def _stop_reading(self) -> None:
        with self._lock:
            self._reading = 0
            self._close_if_unused()
            if self._waiting:
                self._changed.notify_all()

    def fail(self, error: SandboxError) -> None:
        """End the worker; whoever waits for it, now or later, is told this reason. The first counts."""
        with self._changed, self._queue_lock:
            if self._gone is not None:
                return
            self._gone = error
            unsent = self._outgoing.clear()
        _close(unsent)
        self._ring()
        self.worker.end()
        self.engines.close()
        self.conversation.fail(error)
        with self._changed:
            self._close_if_unused()
            self._changed.notify_all()

    def _close_if_unused(self) -> None:
        """Close once it is over, and no thread polls the connection: its number could be another's by then."""
        if self._gone is not None and not self._reading and not self._sending:
            self.worker.kill()
            self.offers.close()

    def serve_in_background(self) -> None:
        """Have a thread receive whenever no caller does: something may arrive unasked from now on."""
        if self._reader is None:
            self._reader = threading.Thread(target=self._serve, name="belljar-reader", daemon=True)
            self._reader.start()

    def _serve(self) -> None:
        """The helper's life."""
        bell, ear = socket.socketpair()
        with bell, ear:
            ear.setblocking(False)
            with self._lock:
                if self._gone is not None:
                    return
                news = Poller(self.worker.connection, ear)
            seen = -1
            while (seen := self._stand_aside(seen, bell)) >= 0:
                if not self._more or self._outgoing.congested:
                    news.wait(None, sending=bool(self._outgoing), receiving=not self._outgoing.congested)
                with self._lock:
                    self._bell = None
                    reads = not self._reading
                    if reads:
                        self._reading = threading.get_ident()
                with suppress(BlockingIOError):
                    ear.recv(16)
                if not reads:
                    continue
                try:
                    self._receive(0.0)
                except SandboxError:
                    return
                finally:
                    self._stop_reading()

    def _stand_aside(self, seen: int, bell: socket.socket) -> int:
        """In the helper, which has `seen` so many callers: wait until there was none for a while. It then listens.

        Gives how many it has seen by then; -1 if all is over.
        """
        with self._changed:
            while self._gone is None and (self._reading or seen != self._callers):
                seen = self._callers
                self._changed.wait(_ASIDE)
                if self._reading and seen == self._callers:
                    # A call that takes its time: whoever ends it says so.
                    self._waiting += 1
                    self._changed.wait()
                    self._waiting -= 1
            if self._gone is not None:
                return -1
            self._bell = bell
            return seen

    def close(self) -> None:
        self.fail(SandboxClosed("the sandbox was closed"))

    def disown(self, error: SandboxClosed) -> None:
        """See `Owned.disown`. Locks may be held by threads that are not in this process."""
        if self._gone is None:
            self._gone = error
            self._make_locks()
            self._reading = 0
            _close(self._outgoing.clear())
            self.engines.disown()
            self.worker.release()


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)
