"""The guest's end of the broker's streams: opened, read, written and dropped by fibers of the kernel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from belljar.abi import errno
from belljar.abi.errors import SysError
from belljar.abi.flags import POLLERR, POLLHUP, POLLIN, POLLOUT
from belljar.abi.wire import WireError
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.net.wire import (
    CHUNK,
    WINDOW,
    BrokerFrame,
    Data,
    Dial,
    Drop,
    End,
    Failed,
    Fetch,
    Grant,
    GuestFrame,
    Opened,
    Resolve,
    Resolved,
    Secure,
    Secured,
    encode,
)

if TYPE_CHECKING:
    from belljar.net.guest.local import LocalNetwork

STREAMS_MAX: Final = 256

_ERRNOS: Final = {
    "denied": errno.EACCES,
    "dns": errno.EHOSTUNREACH,
    "connect": errno.ECONNREFUSED,
    "tls": errno.EPROTO,
    "timeout": errno.ETIMEDOUT,
    "protocol": errno.EPROTO,
    "too-large": errno.EFBIG,
    "reset": errno.ECONNRESET,
}

NOT_GRANTED: Final = Failed(0, "denied", "this sandbox was granted no network")


def errno_of(failure: Failed) -> int:
    """Return the errno for a failure."""
    return _ERRNOS.get(failure.kind, errno.EIO)


class Carrier(Protocol):
    """Sends frames to the broker."""

    def send(self, frame: bytes, *, wait: bool = True) -> None:
        """Queue a frame; with `wait`, a fiber that is ahead of the broker waits here."""

    def close(self) -> None:
        """Close it and notify the uplink. Idempotent."""


class Uplink:
    """The streams of one sandbox that lead out of it; `local` has those inside.

    `connect` gets a way to the broker when it is needed; EACCES if there is none.
    """

    def __init__(self, hub: Hub, local: LocalNetwork) -> None:
        self.hub = hub
        self.local = local
        self.connect: Callable[[Uplink], Carrier] | None = None
        self._carrier: Carrier | None = None
        self._connecting = False
        self._changed = WaitQueue(hub)
        self._next = 1
        self._streams: dict[int, Stream] = {}

    def open(self, make: Callable[[int], Resolve | Dial | Fetch], inside: int | None = None) -> Stream:
        """A new stream, asked for but not open yet. EMFILE when there are too many.

        `inside`: the port of the sandbox itself that is meant, on which nothing listens. With a network granted, the
        owner may mean a port of its own machine by it.
        """
        if len(self._streams) >= STREAMS_MAX:
            raise SysError(errno.EMFILE)
        number, self._next = self._next, self._next + 1
        stream = self._streams[number] = Stream(self, number)
        try:
            carrier = self._reach()
        except SysError as error:
            del self._streams[number]
            if error.errno != errno.EACCES:
                raise
            refused = Failed(0, "connect", f"nothing listens on port {inside}")
            stream.take(NOT_GRANTED if inside is None else refused)
            return stream
        carrier.send(encode(make(number)))
        return stream

    def dial(self, uplink: Uplink) -> Carrier:
        """A way to the broker for another uplink, as this one would get it. EACCES."""
        if self.connect is None:
            raise SysError(errno.EACCES)
        return self.connect(uplink)

    def _reach(self) -> Carrier:
        while self._carrier is None:
            if self.connect is None:
                raise SysError(errno.EACCES)
            if self._connecting:
                self._changed.wait()
                continue
            self._connecting = True
            try:
                self._carrier = self.connect(self)
            finally:
                self._connecting = False
                self._changed.wake_all()
        return self._carrier

    def send(self, message: GuestFrame, *, wait: bool = True) -> None:
        if self._carrier is not None:
            self._carrier.send(encode(message), wait=wait)

    def take(self, message: BrokerFrame) -> None:
        """Handle a frame of the broker, on the hub's loop."""
        stream = self._streams.get(message.id)
        if stream is not None:  # else it was dropped while this was on its way
            stream.take(message)

    def forget(self, number: int) -> None:
        if self._streams.pop(number, None) is not None:
            self.send(Drop(number), wait=False)

    def hang_up(self) -> None:
        """End every stream, as a branch of a sandbox must: the connections are its origin's."""
        if self._carrier is not None:
            self._carrier.close()

    def lost(self) -> None:
        """Fail all streams: the connection to the broker is gone; the next stream asks for another."""
        self._carrier = None
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.take(Failed(stream.number, "reset", "the connection to the sandbox's owner ended"))


class Stream:
    """One connection, request or lookup."""

    def __init__(self, uplink: Uplink, number: int) -> None:
        self._uplink = uplink
        self.number = number
        self.waiters = WaitQueue(uplink.hub)
        self.opened: Opened | None = None
        self.records: list[str] | None = None
        self.failure: Failed | None = None
        self._chunks: deque[memoryview] = deque()
        self._buffered = 0
        self._taken = 0
        self._room = WINDOW
        self._ended = False
        self._end_sent = False
        self.secured: Secured | None = None
        self._announcement = b""

    def take(self, message: BrokerFrame) -> None:
        match message:
            case Data(data=data):
                self._buffered += len(data)
                if self._buffered > WINDOW + CHUNK:
                    raise WireError("the broker sent more than it was granted")
                self._chunks.append(memoryview(data))
            case End():
                self._ended = True
            case Grant(count=count):
                self._room += count
            case Opened():
                self.opened = message
            case Secured():
                self.secured = message
                if self._announcement:
                    self._chunks.append(memoryview(self._announcement))
                    self._buffered += len(self._announcement)
            case Resolved(records=records):
                self.records = records
            case Failed():
                self.failure = message
        self.waiters.wake_all()

    def wait_open(self) -> None:
        """Wait until it is open, or failed."""
        while self.opened is None and self.records is None and self.failure is None:
            self.waiters.wait()

    def check(self) -> None:
        if self.failure is not None:
            raise SysError(errno_of(self.failure))

    def read(self, size: int, *, nonblocking: bool = False, whole: bool = False) -> bytes:
        """Read at most `size` bytes; b"" at the end. With `whole`, one datagram, cut to `size`."""
        while not self._chunks:
            self.check()
            if self._ended or size <= 0:
                return b""
            if nonblocking:
                raise SysError(errno.EAGAIN)
            self.waiters.wait()
        chunk = self._chunks.popleft()
        used = len(chunk)
        if used > size:
            if not whole:
                self._chunks.appendleft(chunk[size:])
                used = size
            chunk = chunk[:size]
        self._buffered -= used
        self._taken += used
        if self._taken >= WINDOW // 2 or (whole and self._taken):
            taken, self._taken = self._taken, 0
            self._uplink.send(Grant(self.number, taken), wait=False)
        return bytes(chunk)

    def write(self, data: bytes, *, nonblocking: bool = False, whole: bool = False) -> int:
        """Some of `data`, when there is room; all of it as one datagram with `whole`. EPIPE after the end."""
        if not data:
            return 0
        while True:
            self.check()
            if self._end_sent:
                raise SysError(errno.EPIPE)
            if self._room >= (len(data) if whole else 1):
                break
            if nonblocking:
                raise SysError(errno.EAGAIN)
            self.waiters.wait()
        piece = bytes(data[: min(self._room, CHUNK)])
        self._room -= len(piece)
        self._uplink.send(Data(self.number, piece), wait=not nonblocking)
        return len(piece)

    def end(self) -> None:
        """Shut down writing. Does not wait."""
        if not self._end_sent:
            self._end_sent = True
            self._uplink.send(End(self.number), wait=False)

    def secure(self, name: str, protocols: list[str], announcement: bytes = b"") -> None:
        """Speak TLS from here on, with this host. Returns when it is verified to be that. EPIPE if it has ended.

        With an announcement it returns at once, and that is read when it is.
        """
        self.check()
        if self._ended or self._end_sent:
            raise SysError(errno.EPIPE)
        self.secured = None
        self._announcement = announcement
        self._uplink.send(Secure(self.number, name, protocols))
        while not announcement and not self._secured():
            self.waiters.wait()

    def _secured(self) -> bool:
        self.check()
        if self.secured is None and self._ended:
            raise SysError(errno.EPIPE)
        return self.secured is not None

    def drop(self) -> None:
        """Close it. Does not wait."""
        self._uplink.forget(self.number)

    def poll(self) -> int:
        if self.failure is not None:
            return POLLIN | POLLOUT | POLLERR
        events = POLLIN if self._chunks or self._ended else 0
        if self.opened is not None and self._room > 0 and not self._end_sent:
            events |= POLLOUT
        return events | (POLLHUP if self._ended and self._end_sent else 0)

    @property
    def ended(self) -> bool:
        return self._ended
