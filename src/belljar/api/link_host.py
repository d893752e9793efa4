"""The synchronous front's wire: whoever waits for an answer reads the socket for everyone.

There is no thread of ours on the way of a plain call: the caller sends, then receives until its own answer is there. If
another caller is already receiving, it delivers. A helper thread only exists while something may arrive unasked, and
stands aside while there are callers, since to be told by another thread takes longer than to receive.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from belljar.abi.limits import Limits
from belljar.abi.wire import Ask, Plain, WireError
from belljar.api.core import Conversation, Pending
from belljar.api.engines_host import EngineBroker, EngineCopies, Opening
from belljar.api.errors import SandboxClosed, SandboxError
from belljar.api.forking import FORK_SECONDS, Fork, Held, check_origin
from belljar.api.offers import Offers, answer_frame
from belljar.api.request import GRACE, STOPPED
from belljar.engines.template_host import EngineUnavailable
from belljar.lockdown.polling_host import Readiness
from belljar.lockdown.sockets_host import send_descriptors, set_send_timeout
from belljar.worker.handle_host import WorkerHandle, WorkerUnavailable

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
        self._worker = worker
        self.conversation = conversation
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting = 0
        """How many threads wait for a change."""
        self._reading = False
        self._callers = 0
        """How many have received so far."""
        self._bell: socket.socket | None = None
        """Rung to have the helper look up; only there while it listens."""
        self._read_size = _READ
        self._readable = Readiness(worker.connection)
        self._send_lock = threading.Lock()
        # One that reads nothing for so long has stopped: a sender is not to wait for it for ever.
        set_send_timeout(worker.connection, int(min(limits.wall_seconds + GRACE, 1 << 30)))
        self._reader: threading.Thread | None = None
        self._forking = threading.Lock()
        self._gone: SandboxError | None = None
        self._limits = limits
        self.offers = offers if offers is not None else Offers(threading.RLock())
        self._engines = EngineBroker(limits, None if worker.cgroup is None else worker.cgroup.add)
        conversation.on_ask = self._asked
        conversation.on_left = self.serve_in_background

    def _asked(self, ask: Ask) -> None:
        """Runs on whichever thread receives: files are answered there and then, what takes longer on its own thread."""
        if ask.target == b"engine":
            self._engine_asked(ask)
            return
        if ask.target == b"net":
            self.serve_in_background()
            self.send(*self.offers.network_answer(ask, self.conversation.observe))
            return
        frame = self.offers.file_answer(ask)
        if frame is not None:
            self.conversation.outbox.append(frame)
            return
        if (call := self.offers.value_call(ask)) is not None:
            self._start(ask.id, lambda: call.run().encode())
            return
        tool, args = self.offers.tool_call(ask)
        self._start(ask.id, lambda: list(tool.run(args)))

    def _engine_asked(self, ask: Ask) -> None:
        todo = self._engines.take(ask)
        if isinstance(todo, Opening):
            # A program that runs on after its command's end opens files, ends, and so on.
            self.serve_in_background()
            given = self._engines.give(todo)
            if given is not None:
                self.send(*given)
            else:
                threading.Thread(target=self._open_engine, args=(todo,), daemon=True).start()
        else:
            self.conversation.outbox.append(todo)

    def _open_engine(self, opening: Opening) -> None:
        frame, fds = self._engines.open(opening)
        try:
            self.send(frame, fds)
        except SandboxError:
            return  # the sandbox ended, and its engines with it

    def _start(self, number: int, work: Callable[[], Plain]) -> None:
        """Have a function of the owner's run on a thread of its own."""

        def run() -> None:
            answer = answer_frame(number, work())
            try:
                self.send(answer)
            except SandboxError:
                return  # the sandbox ended while its tool was at work

        threading.Thread(target=run, daemon=True).start()

    def fork(self, interpreters: Sequence[int] = ()) -> Link:
        """A link to a new branch of the worker, with the same offers. Raises SandboxError.

        `interpreters` are the commands that the branch goes on with: those that wait for their next run.
        """
        check_origin(self._worker.zygote)
        with self._forking:
            copies = self._copy_engines(interpreters)
            try:
                link = self._fork(interpreters, copies)
            except BaseException:
                copies.close()
                raise
        try:
            link._engines.adopt(copies)
        except EngineUnavailable as error:
            link.close()
            raise SandboxError(f"could not fork the sandbox: {error}") from error
        if copies.made:
            link.serve_in_background()
        return link

    def _copy_engines(self, interpreters: Sequence[int]) -> EngineCopies:
        """Copies of the engine processes that can be copied now; the worker holds them still until it is forked."""
        if not interpreters and not self._engines.busy:
            return EngineCopies()
        held = Held(self.conversation, interpreters)
        self.send(held.frame)
        self.expect(lambda: held.pending.done, self.patience())
        try:
            copies = self._engines.copy(held.numbers())
            try:
                held.check(copies.made, copies.failed)
            except BaseException:
                copies.close()
                raise
        except BaseException:
            self.send(self.conversation.call("release")[1])
            raise
        return copies

    def _fork(self, interpreters: Sequence[int], copies: EngineCopies) -> Link:
        from belljar.worker.branch_host import Branching  # few sandboxes are forked

        fork = Fork(self.conversation, self.offers, interpreters, copies.made)
        making = Branching(self._worker)
        try:
            self.send(fork.frame, [making.permit(), *copies.descriptors()])
            if not self.wait(fork.pending, time.monotonic() + FORK_SECONDS):
                self.close()
                raise SandboxClosed("the sandbox stopped answering while it was forked, and was ended")
            fork.check()
            worker = making.accept(FORK_SECONDS)
        except WorkerUnavailable as error:
            making.abandon()
            fork.abandon()
            raise SandboxError(f"could not fork the sandbox: {error}. Try `belljar doctor`.") from error
        except BaseException:
            making.abandon()
            fork.abandon()
            raise
        link = Link(worker, *fork.halves(self._limits))
        if self._reader is not None:
            link.serve_in_background()  # what goes on without a caller here goes on there
        return link

    @property
    def pid(self) -> int:
        return self._worker.pid

    @property
    def layers(self) -> list[str]:
        """What holds around the worker, as it said when it was ready, and as we know."""
        assert self.conversation.ready is not None
        return self.conversation.ready.layers + (self._worker.cgroup.layers if self._worker.cgroup is not None else [])

    @property
    def closed(self) -> bool:
        return self._gone is not None

    def send(self, frame: bytes, fds: Sequence[int] = ()) -> None:
        """Send a frame; descriptors that go with it are closed here."""
        try:
            if self._gone is not None:
                raise self._gone
            with self._send_lock:
                connection = self._worker.connection
                sent = send_descriptors(connection, frame, fds) if fds else 0
                if sent < len(frame):
                    connection.sendall(memoryview(frame)[sent:] if sent else frame)
        except OSError:
            self._hear_last_words()
            assert self._gone is not None
            raise self._gone from None
        finally:
            for fd in fds:
                os.close(fd)

    def patience(self) -> float:
        """The (monotonic) time by which a worker that is asked now must have answered."""
        return time.monotonic() + self._limits.wall_seconds + GRACE

    def expect(self, ready: Callable[[], bool], deadline: float) -> None:
        """Until it is so; a worker that lets the deadline pass is ended. Raises SandboxError."""
        if not self.wait_until(ready, deadline):
            self.close()
            raise SandboxError(STOPPED)

    def wait(self, pending: Pending, deadline: float | None = None) -> bool:
        """Until the answer is there; False if the (monotonic) deadline passed first."""
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
                self._reading = True
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
        # Not by the socket's own timeout, which a thread that sends at the same time would share.
        if not self._ready(timeout):
            return
        try:
            self._take()
        except WireError as error:
            self._fail(SandboxClosed(f"the sandbox's worker broke the protocol and was ended: {error}."))
            return
        except BaseException:
            # Most often ^C, which is met while waiting and does no harm there; but here what came may be lost.
            self._fail(SandboxClosed("the program was interrupted while it took an answer, and the sandbox was ended"))
            raise
        if self.conversation.outbox:
            frames, self.conversation.outbox = self.conversation.outbox, []
            self.send(b"".join(frames))

    def _ready(self, timeout: float | None) -> bool:
        """Whether there is something to take, or nothing will ever come."""
        try:
            return self._readable.within(timeout)
        except OSError:
            return True

    def _take(self) -> None:
        try:
            data = self._worker.connection.recv(self._read_size)
        except OSError:
            data = b""  # reset: it ended with something unread
        if not data:
            self._fail(self.conversation.end_of_worker())
            return
        self._read_size = _READ if len(data) < self._read_size else _READ_MORE
        self.conversation.feed(data)

    def _hear_last_words(self) -> None:
        """The worker takes nothing any more: what it said before may be why. Whoever receives hears it; else we do."""
        with self._changed:
            ours = not self._reading
            self._reading = True
        while ours and self._gone is None and self._readable.within(0):
            self._receive(0.0)
        if ours:
            self._stop_reading()
        self._fail(self.conversation.end_of_worker())

    def _stop_reading(self) -> None:
        with self._lock:
            self._reading = False
            if self._gone is not None:
                self.offers.close()
            if self._waiting:
                self._changed.notify_all()

    def _fail(self, error: SandboxError) -> None:
        with self._changed:
            if self._gone is not None:
                return  # one thread closes while another hears of the end: the first says why
            self._gone = error
        self._ring()  # the connection's number may be another's by the time that the helper waits for it
        self._worker.kill()
        self._engines.close()
        self.conversation.fail(error)
        with self._changed:
            if not self._reading:
                self.offers.close()
            self._changed.notify_all()

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
                news = Readiness(self._worker.connection, ear)
            seen = -1
            while (seen := self._stand_aside(seen, bell)) >= 0:
                news.within(None)
                with self._lock:
                    self._bell = None
                    reads = not self._reading
                    self._reading = True
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
        self._fail(SandboxClosed("the sandbox was closed"))
