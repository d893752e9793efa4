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
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from belljar.abi.clock import Clock
from belljar.abi.limits import Limits
from belljar.abi.wire import Plain, WireError
from belljar.api.asks import Asks
from belljar.api.await_host import Threads
from belljar.api.core import Conversation, Pending
from belljar.api.engines_host import ENGINES_MAX, EngineBroker, Opening
from belljar.api.errors import ENDED, EndedError, SandboxClosed
from belljar.api.forking import check_origin, fork_link
from belljar.api.offers import FileAnswer, Offers, answer_frame
from belljar.api.outgoing import UNTAKEN_MAX, Outgoing
from belljar.api.request import GRACE, NOT_TAKEN, STOPPED
from belljar.api.sockets_host import Poller, receive_without_blocking, send_some, unread_bytes
from belljar.api.stepper import finish
from belljar.lockdown.polling_host import readable, writable
from belljar.owner.handle_host import WorkerHandle

if TYPE_CHECKING:
    from belljar.api.offers import ParseCall
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
        self,
        worker: WorkerHandle,
        conversation: Conversation,
        limits: Limits,
        clock: Clock,
        offers: Offers | None = None,
    ) -> None:
        self.worker = worker
        self.clock = clock
        self.conversation = conversation
        self._make_locks()
        self._waiters: dict[threading.Lock, Callable[[], bool]] = {}
        """Threads that wait while another receives. Each sleeps on a lock of its own, so that only those wake that have
        something to do: what they wait for is so, or it is their turn to receive."""
        self._helper_waits = False
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
        self._gone: EndedError | None = None
        self.last_fork: Pending | None = None
        self._limits = limits
        self.threads = Threads()
        self._openers = Threads(ENGINES_MAX)
        self.offers = offers if offers is not None else Offers(threading.RLock(), clock=clock)
        self.engines = EngineBroker(limits, None if worker.cgroup is None else worker.cgroup.add)
        conversation.on_ask = Asks(self, conversation, self.offers, self.engines).take
        conversation.congested = lambda: self._outgoing.congested
        conversation.on_left = self.serve_in_background
        if worker.greeting:
            conversation.feed(worker.greeting)

    def _make_locks(self) -> None:
        self._lock = threading.RLock()
        self._quiet = threading.Condition(self._lock)
        """Told to the helper: nobody receives any more."""
        self._queue_lock = threading.Lock()
        self._send_lock = threading.Lock()
        self._forking = threading.Lock()
        self._released = threading.Event()
        """Set unless frames are held back."""
        self._released.set()

    # What the worker asks for.

    def takes_descriptors(self) -> bool:
        return self._outgoing.untaken(unread_bytes(self.worker.connection)) < UNTAKEN_MAX

    def work_on_files(self, work: Callable[[], FileAnswer], done: Callable[[FileAnswer], None]) -> None:
        done(work())  # on the thread of a caller of this sandbox: no other waits for it

    def open_engine(self, opening: Opening) -> None:
        def open_() -> None:
            frame, fds = self.engines.open(opening)
            with suppress(*ENDED):  # the sandbox ended, and its engines with it
                self.send(frame, fds)

        self._openers.start(open_)

    def call_function(self, number: int, parse: ParseCall, _size: int, ended: Callable[[], None]) -> None:
        self._call(number, lambda: parse().run().encode(), ended)

    def call_tool(self, number: int, tool: Tool, args: list[str], ended: Callable[[], None]) -> None:
        self._call(number, lambda: list(tool.run(args)), ended)

    def _call(self, number: int, work: Callable[[], Plain], ended: Callable[[], None]) -> None:
        def run() -> None:
            answer = answer_frame(number, work())
            with suppress(*ENDED):  # the sandbox ended while its tool was at work
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

    def hold_back(self, frame: bytes) -> None:
        """Send a frame, and none that follows it until `release`. Raises SandboxError."""
        with self._queue_lock:
            if self._gone is not None:
                raise self._gone
            self._released.clear()
            self._outgoing.put(frame)
            self._outgoing.hold()
        self._flush()

    def release(self, frame: bytes) -> None:
        """Send what was held back, after this frame. Nothing if it is over."""
        with self._queue_lock:
            if self._gone is None:
                self._outgoing.release(frame)
        self._released.set()
        if self._gone is None:
            self._flush()

    def twin(self, worker: WorkerHandle, conversation: Conversation, offers: Offers | None = None) -> Link:
        return Link(worker, conversation, self._limits, self.clock, offers)

    def wait_readable(self, fd: int, deadline: float) -> bool:
        return readable(fd, max(0.0, deadline - self.clock.monotonic()))

    def call_blocking(self, work: Callable[[], T], _discard: Callable[[T], object]) -> T:
        return work()

    @property
    def pid(self) -> int:
        return self.worker.pid

    def pids(self) -> list[int]:
        """The worker, and the engine processes beside it."""
        return [*self.worker.pids(), *self.engines.pids()]

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

    def deliver(self, frame: bytes, deadline: float) -> None:
        self.send(frame, deadline=deadline)

    def post(self, frame: bytes, fds: Sequence[int] = ()) -> None:
        """Queue an answer, in the thread that receives; it is sent once all that came is taken."""
        self._put(frame, fds, answer=True)

    def _put(self, frame: bytes, fds: Sequence[int], *, answer: bool = False) -> int:
        if self.offers.native_mounts is not None:
            self.offers.native_mounts.renew()
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
            left = deadline - self.clock.monotonic()
            if left <= 0:
                self.fail(SandboxClosed(NOT_TAKEN))
                continue
            if not self._outgoing:
                self._released.wait(left)
                continue
            writable(self.worker.connection, left)
            self._flush()

    def _flush(self) -> None:
        """Send what is queued as far as the worker takes it now. Raises SandboxError if it takes nothing any more."""
        if not self._outgoing:
            return
        try:
            with self._send_lock:
                self._write()
        except OSError:
            self._hear_last_words()
            assert self._gone is not None
            raise self._gone from None

    def _write(self) -> None:
        while self._outgoing:
            with self._queue_lock:
                if not self._outgoing:
                    return
                views, fds = self._outgoing.first()
            try:
                count = send_some(self.worker.connection, views, fds)
            except OSError:
                _close(fds)
                raise
            with self._queue_lock:
                if count and self._outgoing:
                    self._outgoing.sent(count)
                elif self._outgoing:  # the connection is full
                    self._outgoing.give_back(fds)
                    return
            _close(fds)

    # Receiving.

    def patience(self, wall_seconds: float | None = None) -> float:
        """The (monotonic) time by which a worker that is asked now must have answered; by its own limit, or this."""
        return self.clock.monotonic() + (wall_seconds or self._limits.wall_seconds) + GRACE + self.worker.grace

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
        """Wait until it is so; False if the (monotonic) deadline passed first. Raises SandboxError."""
        me = threading.get_ident()
        woken: threading.Lock | None = None
        try:
            while not ready():
                left = None if deadline is None else deadline - self.clock.monotonic()
                if left is not None and left <= 0:
                    return False
                with self._lock:
                    if ready():
                        break
                    if self._gone is not None:
                        raise self._gone
                    if not self._reading:
                        self._reading = me
                        self._callers += 1
                    elif self._reading != me:
                        woken = woken or _locked()
                        self._waiters[woken] = ready
                if self._reading == me:
                    self._ring()
                    self._receive(left)
                else:
                    assert woken is not None
                    woken.acquire(timeout=-1 if left is None else left)
            return True
        finally:
            if self._reading == me:
                self._stop_reading()
            elif woken is not None:
                self._stop_waiting(woken)

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
        if self._waiters:
            with self._lock:
                self._wake(*[woken for woken, ready in self._waiters.items() if ready()])

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
        """End a worker that takes nothing any more, once we have received what it said before, which may be why."""
        with self._queue_lock:
            _close(self._outgoing.clear())
        if self._reading != threading.get_ident():
            self.wait_until(lambda: self._gone is not None, self.clock.monotonic() + GRACE)
        self.fail(self.conversation.end_of_worker())

    def _stop_reading(self) -> None:
        with self._lock:
            self._reading = 0
            self._close_if_unused()
            self._hand_over()
            if self._helper_waits:
                self._quiet.notify()

    def _stop_waiting(self, woken: threading.Lock) -> None:
        with self._lock:
            self._waiters.pop(woken, None)
            self._hand_over()  # it may have been our turn to receive

    def _hand_over(self) -> None:
        """Wake the thread that has waited longest, to receive, if nobody does."""
        if self._waiters and not self._reading:
            self._wake(next(iter(self._waiters)))

    def _wake(self, *waiters: threading.Lock) -> None:
        for woken in waiters:
            del self._waiters[woken]
            woken.release()

    def fail(self, error: EndedError) -> None:
        """End the worker; whoever waits for it, now or later, is told this reason. The first counts."""
        with self._lock, self._queue_lock:
            if self._gone is not None:
                return
            self._gone = error
            unsent = self._outgoing.clear()
        _close(unsent)
        self._released.set()
        self._ring()
        self.worker.end()
        self.engines.close()
        self.conversation.fail(error)
        with self._lock:
            self._close_if_unused()
            self._wake(*self._waiters)
            self._quiet.notify()

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
                except ENDED:
                    return
                finally:
                    self._stop_reading()

    def _stand_aside(self, seen: int, bell: socket.socket) -> int:
        """In the helper, which has `seen` so many callers: wait until there was none for a while. It then listens.

        Gives how many it has seen by then; -1 if all is over.
        """
        with self._quiet:
            while self._gone is None and (self._reading or seen != self._callers):
                seen = self._callers
                self._quiet.wait(_ASIDE)
                if self._reading and seen == self._callers:
                    # A call that takes its time: whoever ends it says so.
                    self._helper_waits = True
                    self._quiet.wait()
                    self._helper_waits = False
            if self._gone is not None:
                return -1
            self._bell = bell
            return seen

    def close(self) -> None:
        self.fail(SandboxClosed("the sandbox was closed"))
        self.worker.wait_ended()

    def disown(self, error: SandboxClosed) -> None:
        """See `Owned.disown`. Locks may be held by threads that are not in this process."""
        if self._gone is None:
            self._gone = error
            self._make_locks()
            self._waiters.clear()
            self._reading = 0
            _close(self._outgoing.clear())
            self.engines.disown()
            self.worker.release()


def _locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)
