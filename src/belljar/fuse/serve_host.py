"""Serves a FUSE device: a thread reads requests, has them answered by a `Session`, and writes the replies.

A server that takes longer than the deadline does not hold up whoever asked: another thread takes over, which answers
that request with EIO, and so all that come until the server is back. A mount has four threads at most, however slow its
server is, and it can be closed and unmounted at any time.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import stat
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, Final, Protocol
from weakref import WeakSet

from belljar.abi.errno import EIO
from belljar.fuse.protocol import (
    BATCH_FORGET,
    DESTROY,
    FORGET,
    MESSAGE_MAX,
    RELEASE,
    RELEASEDIR,
    UNANSWERED,
    Malformed,
    Request,
    pack_error,
    pack_inc_epoch,
    pack_reply,
    parse_request,
)
from belljar.fuse.session import Reply, Session
from belljar.kernel.vfs.server import Node
from belljar.lockdown.polling_host import readable, writable

DEADLINE_SECONDS: Final = 30.0
"""Time after which a request that the server did not answer fails."""
GRACE_SECONDS: Final = 1.0
"""Time that a server at work has left when the mount is closed."""
NOTICES_MAX: Final = 10_000
_DEVICE: Final = os.makedev(10, 229)
_GONE: Final = frozenset({errno.ENODEV, errno.ECONNABORTED, errno.ENOTCONN, errno.EPERM, errno.EBADF})
"""Errors of a device whose file system was unmounted or never mounted, or whose connection was aborted."""
_LETTING_GO: Final = frozenset({FORGET, BATCH_FORGET, RELEASE, RELEASEDIR})
"""Requests that are done later if the server is stuck: what they let go of must not be lost."""


def check_device(fd: int) -> None:
    """ValueError if this is no open /dev/fuse."""
    found = os.fstat(fd)
    if not stat.S_ISCHR(found.st_mode) or found.st_rdev != _DEVICE:
        raise ValueError("the descriptor is not /dev/fuse")


class Device(Protocol):
    """Where a file system's requests come from, and replies and notices go."""

    def fileno(self) -> int:
        """To wait for requests."""

    def read(self, buffer: bytearray) -> int:
        """Take one request, without waiting. BlockingIOError; OSError with one of `_GONE` when it is unmounted."""

    def write(self, *parts: bytes | memoryview) -> None:
        """Send a reply or a notice. OSError: ENOENT if nobody waits for it any more."""

    def close(self) -> None:
        """End the connection."""


class KernelDevice:
    """An open /dev/fuse. ValueError for another descriptor."""

    def __init__(self, fd: int) -> None:
        check_device(fd)
        os.set_blocking(fd, False)
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def read(self, buffer: bytearray) -> int:
        return os.readv(self._fd, (buffer,))

    def write(self, *parts: bytes | memoryview) -> None:
        os.writev(self._fd, parts)

    def close(self) -> None:
        os.close(self._fd)


class StreamDevice:
    """A FUSE device of another kernel, whose messages come and go by a stream. Each begins with its length, and a
    length of 0 is the end, which both sides say; then the stream may serve another device.

    That kernel is not trusted: a length that makes no sense ends the connection, and with it this stream's use.
    """

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._stream.setblocking(False)
        self._message = bytearray()
        self._lock = threading.Lock()
        self._over = self._said = False

    def fileno(self) -> int:
        return self._stream.fileno()

    def read(self, buffer: bytearray) -> int:
        while not self._over:
            have = len(self._message)
            size = 4 if have < 4 else int.from_bytes(self._message[:4], "little")
            if have >= 4 and size == 0:
                self._message.clear()
                self._over = True
                break
            if not 4 <= size <= len(buffer):
                self._stream.shutdown(socket.SHUT_RDWR)  # nothing that follows could be understood
                self._over = True
                break
            if have == size and have > 4:
                buffer[:have] = self._message
                self._message.clear()
                return have
            piece = self._stream.recv(size - have)
            if not piece:
                self._over = True
                break
            self._message += piece
        raise OSError(errno.ENODEV, "unmounted")

    def write(self, *parts: bytes | memoryview) -> None:
        data = memoryview(b"".join(parts))
        with self._lock:
            if self._said:
                raise OSError(errno.ENODEV, "unmounted")
            self._send(data)

    def _send(self, data: memoryview) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while data:
            try:
                data = data[self._stream.send(data) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise OSError(errno.ENOTCONN, "the machine takes nothing") from None
                writable(self._stream, 1.0)

    def close(self) -> None:
        """Say the end, and take what comes until the other side has said it."""
        with self._lock:
            if not self._said:
                self._said = True
                with suppress(OSError):
                    self._send(memoryview(bytes(4)))
        deadline = time.monotonic() + GRACE_SECONDS
        buffer = bytearray(MESSAGE_MAX)
        while time.monotonic() < deadline and not self._over:
            try:
                self.read(buffer)
            except BlockingIOError:
                readable(self._stream.fileno(), 0.05)
            except (OSError, ValueError):
                break


class _Job:
    """A request that the server is at work on."""

    __slots__ = ("abandoned", "began", "unique")

    def __init__(self, request: Request) -> None:
        self.unique = 0 if request.opcode in UNANSWERED else request.unique
        self.began = time.monotonic()
        self.abandoned = False


class Served:
    """A FUSE device that is being served, until `close` or until it is unmounted."""

    def __init__(
        self,
        device: Device | int,
        session: Session,
        guard: AbstractContextManager[Any] | None = None,
        seconds: float = DEADLINE_SECONDS,
        charge: Callable[[Callable[[], bool]], bool] | None = None,
    ) -> None:
        """Serve a device, or an open /dev/fuse, which is closed in the end. `guard` is held while the server is at
        work; `charge` does the work for a request, and may hold back the next one.
        """
        self._device = KernelDevice(device) if isinstance(device, int) else device
        self._session = session
        self._guard = guard if guard is not None else threading.Lock()
        self._seconds = seconds
        self._charge = charge
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        """Protects what follows. Never held while anything is waited for."""
        self._job: _Job | None = None
        self._stuck = False
        self._later: list[Request] = []
        self._closing = False
        self._notices: deque[bytes] = deque(maxlen=NOTICES_MAX)
        self._notifying = False
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._released = threading.Event()
        """All that was open at the server is closed, or the server is stuck."""
        _disowning(self)
        _start(self._answer)
        _start(self._watch)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is unmounted or closed; whether it is."""
        return self._ended.wait(seconds)

    def close(self) -> None:
        """Stop serving: the connection is aborted, and whatever is under way on the mount fails. Idempotent."""
        self.begin_closing()
        self._released.wait(2 * GRACE_SECONDS)

    def begin_closing(self) -> None:
        """As `close`, without waiting."""
        with self._lock:
            self._closing = True
            if not self._ended.is_set():
                os.eventfd_write(self._wake, 1)
        self._changed.set()

    def disown(self) -> None:
        """In a forked child: the device is its parent's."""
        if not self._ended.is_set():
            if isinstance(self._device, KernelDevice):
                self._device.close()
            os.close(self._wake)
            self._ended, self._released = threading.Event(), threading.Event()
            self._ended.set()
            self._released.set()

    # The thread that answers.

    def _answer(self) -> None:
        """Answer requests until the device is gone, or until another thread has taken over."""
        buffer = bytearray(MESSAGE_MAX)
        view = memoryview(buffer)
        poll = select.poll()
        poll.register(self._device.fileno(), select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        try:
            while count := self._read(buffer, poll):
                handle = partial(self._handle, view[:count])
                if not (handle() if self._charge is None else self._charge(handle)):
                    return
        except BaseException as error:
            self._session.report(error)
            self._end()
            raise
        self._end()

    def _read(self, buffer: bytearray, poll: select.poll) -> int:
        """Wait for a request; 0 if there will be none."""
        while not self._closing or self._notifying:
            try:
                return self._device.read(buffer)
            except OSError as error:
                if error.errno in _GONE:
                    return 0
                if error.errno == errno.EAGAIN:
                    poll.poll(50 if self._closing else None)
                elif error.errno not in (errno.EINTR, errno.ENOENT):  # ENOENT: interrupted while it was read
                    raise
        return 0

    def _handle(self, message: memoryview) -> bool:
        """Answer a request; False if this thread was given up meanwhile."""
        try:
            request = parse_request(message)
        except Malformed:
            return True
        if (self._stuck or self._closing) and self._refuse(request):
            return True
        job = self._job = _Job(request)
        with self._guard:
            reply = self._session.handle(request)
            with self._lock:
                abandoned = job.abandoned
                if not abandoned:
                    self._job = None
            if reply is not None and (abandoned or not self._write(reply)) and reply.undo is not None:
                reply.undo()
            if abandoned:
                self._catch_up()
            notices, self._session.notices = self._session.notices, []
        for notice in notices:
            self._notify(notice)
        return not abandoned

    def _write(self, reply: Reply) -> bool:
        """Whether the kernel took it. It does not if the request was interrupted, or the connection ended."""
        try:
            self._device.write(reply.header, reply.body)
        except OSError as error:
            if error.errno not in _GONE and error.errno != errno.ENOENT:
                self._session.report(error)
                with suppress(OSError):
                    self._device.write(pack_error(int.from_bytes(reply.header[8:16], "little"), EIO))
            return False
        return True

    def _refuse(self, request: Request) -> bool:
        """Answer without the server: EIO. False if that is back."""
        letting_go = request.opcode in _LETTING_GO
        with self._lock:
            if not self._stuck and not self._closing:
                return False
            if letting_go:
                self._later.append(request._replace(body=memoryview(bytes(request.body))))
        if request.opcode not in UNANSWERED:
            done = letting_go or request.opcode == DESTROY
            reply = pack_reply(request.unique, b"") if done else pack_error(request.unique, EIO)
            self._write(Reply(reply, b"", None))
        return True

    def _catch_up(self) -> None:
        """The server is back: let go of what was let go of meanwhile."""
        while True:
            with self._lock:
                later, self._later = self._later, []
                if not later:
                    self._stuck = False
                    ended = self._ended.is_set()
                    break
            for request in later:
                self._session.handle(request)
        if ended:
            self._session.close()

    def _end(self) -> None:
        """Close the device, which aborts the connection."""
        self._closing = True
        while self._notifying:  # the device is gone, or requests are refused: the kernel takes the notice soon
            time.sleep(0.001)
        with self._lock:
            if self._ended.is_set():
                return
            self._device.close()
            os.close(self._wake)
            self._ended.set()
            stuck = self._stuck
        self._changed.set()
        if not stuck:
            with self._guard:
                self._session.close()
        self._released.set()

    # The thread that watches the clock.

    def _watch(self) -> None:
        while not self._ended.is_set():
            self._changed.wait(GRACE_SECONDS / 4 if self._closing else self._seconds / 4)
            if not self._closing:
                self._changed.clear()
            else:
                time.sleep(GRACE_SECONDS / 20)
            seconds = GRACE_SECONDS if self._closing else self._seconds
            with self._lock:
                job = self._job
                if job is None or time.monotonic() - job.began < seconds:
                    continue
                job.abandoned, self._job, self._stuck = True, None, True
            if job.unique:
                self._write(Reply(pack_error(job.unique, EIO), b"", None))
            if self._closing and not self._notifying:
                self._end()
            else:
                _start(self._answer)

    # Changes that others made.

    def new_epoch(self) -> None:
        """Have the kernel ask anew for all names that it keeps for a while."""
        with self._lock:
            if self._session.has_epochs and not self._ended.is_set():
                with suppress(OSError):
                    self._device.write(pack_inc_epoch())

    def invalidate(self, node: Node) -> None:
        """Have the kernel read attributes and contents of a file anew: others changed it."""
        self._notify(self._session.inval_inode(node))

    def invalidate_entry(self, directory: Node, name: str) -> None:
        """Have the kernel look up a name anew: others created, removed or replaced it."""
        self._notify(self._session.inval_entry(directory, name))

    def _notify(self, notice: bytes | None) -> None:
        """Send a notice from a thread of its own: the kernel takes it only when requests about that file are done."""
        if notice is None:
            return
        with self._lock:
            if self._closing or self._ended.is_set():
                return
            self._notices.append(notice)
            if self._notifying:
                return
            self._notifying = True
        _start(self._send_notices)

    def _send_notices(self) -> None:
        while True:
            with self._lock:
                if not self._notices or self._closing or self._ended.is_set():
                    self._notices.clear()
                    self._notifying = False
                    return
                notice = self._notices.popleft()
            with suppress(OSError):  # ENOENT: the kernel has forgotten it already
                self._device.write(notice)


_all: Final[WeakSet[Served]] = WeakSet()


def _disowning(served: Served) -> None:
    """Close the device in forked children: as long as any process has it, the connection lasts."""
    if not _all:
        os.register_at_fork(after_in_child=_disown_all)
    _all.add(served)


def _disown_all() -> None:
    for served in list(_all):
        served.disown()
    _all.clear()


def _start(run: Callable[[], None]) -> None:
    threading.Thread(target=run, name="belljar-fuse", daemon=True).start()
