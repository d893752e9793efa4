"""A web request to a server inside the sandbox: HTTP/1.1 over a local connection, for /mnt/web."""

from __future__ import annotations

import re
from typing import Final

from belljar.abi.errors import SysError
from belljar.abi.flags import POLLERR, POLLIN, POLLOUT
from belljar.kernel.fiber import Timer, WaitQueue
from belljar.net.guest.local import LocalStream
from belljar.net.guest.uplink import errno_of
from belljar.net.wire import Failed, Fetch, Opened

HEAD_MAX: Final = 256 << 10
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})(?: |\r?$)")
_LENGTH: Final = re.compile(r"\d{1,18}")
_CHUNK: Final = re.compile(rb"[0-9A-Fa-f]{1,12}")
_NO_BODY: Final = (204, 304)
_READ: Final = 64 << 10


class LocalFetch:
    """The request and its response. It has those calls of an uplink's `Stream` that a web request needs."""

    def __init__(self, connection: LocalStream, request: Fetch, authority: str, target: str) -> None:
        self._connection = connection
        self._method = request.method
        self._chunked_out = False
        self._buffer = b""
        self._left: int | None = None
        """Bytes of the body, or of the chunk, that are still to come; None: until the end of the connection."""
        self._chunked = False
        self.opened: Opened | None = None
        self.failure: Failed | None = None
        self.ended = False
        self._timer: Timer | None = None
        if request.timeout > 0:
            self._timer = connection.hub.call_later(request.timeout, self._out_of_time)
        self._send_head(request, authority, target)

    @property
    def waiters(self) -> WaitQueue:
        return self._connection.waiters

    def _send_head(self, request: Fetch, authority: str, target: str) -> None:
        names = {name.lower() for name, _ in request.headers}
        fields = [b"%b: %b" % field for field in request.headers]
        if b"host" not in names:
            fields.insert(0, b"Host: " + authority.encode())
        if b"connection" not in names and b"upgrade" not in names:
            fields.append(b"Connection: close")
        if request.body and not names & {b"content-length", b"upgrade"}:
            self._chunked_out = True
            if b"transfer-encoding" not in names:
                fields.append(b"Transfer-Encoding: chunked")
        line = f"{request.method} {target} HTTP/1.1".encode()
        self._put(b"\r\n".join([line, *fields, b"", b""]))

    def _put(self, data: bytes) -> None:
        while data:
            data = data[self._connection.write(data) :]

    def write(self, data: bytes, *, nonblocking: bool = False, whole: bool = False) -> int:
        if self.opened is not None or not self._chunked_out:
            return self._connection.write(data, nonblocking=nonblocking)
        self._put(b"%x\r\n%b\r\n" % (len(data), data))
        return len(data)

    def end(self) -> None:
        """End the request's body."""
        if self._chunked_out:
            self._chunked_out = False
            self._put(b"0\r\n\r\n")

    def wait_open(self) -> None:
        """Wait for the head of the response; one that makes no sense is a failure."""
        while self.opened is None and self.failure is None:
            head = self._read_head()
            if head is None:
                self._fail("protocol", "the server closed the connection without an answer")
                return
            found = _STATUS.match(head)
            if found is None:
                self._fail("protocol", "the server's answer is not HTTP/1")
                return
            status = int(found[1])
            if 100 <= status < 200 and status != 101:
                continue
            self._begin_body(status, head)

    def _read_head(self) -> bytes | None:
        while b"\r\n\r\n" not in self._buffer and b"\n\n" not in self._buffer:
            if len(self._buffer) > HEAD_MAX:
                self._fail("too-large", f"the head of the response is longer than {HEAD_MAX} bytes")
                return b""
            data = self._connection.read(_READ)
            if not data:
                return None
            self._buffer += data
        end = min(at + len(mark) for mark in (b"\r\n\r\n", b"\n\n") if (at := self._buffer.find(mark)) >= 0)
        head, self._buffer = self._buffer[:end], self._buffer[end:]
        return head

    def _begin_body(self, status: int, head: bytes) -> None:
        fields: dict[str, str] = {}
        for line in head.decode("latin-1").splitlines()[1:]:
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        info = {**(self._connection.opened.info if self._connection.opened else {}), "http-version": "1.1"}
        if status == 101:
            info["upgraded"] = "1"
        elif self._method == "HEAD" or status in _NO_BODY:
            self._left = 0
        elif "chunked" in fields.get("transfer-encoding", "").lower():
            self._chunked, self._left = True, 0
        elif _LENGTH.fullmatch(fields.get("content-length", "")):
            self._left = int(fields["content-length"])
        self.opened = Opened(0, info, head)

    def read(self, size: int, *, nonblocking: bool = False, whole: bool = False) -> bytes:
        """The next piece of the body; b"" at its end."""
        self.check()
        if self.ended or size <= 0:
            return b""
        if self._chunked and not self._left and not self._next_chunk(nonblocking):
            self.ended = True
            return b""
        if self._left == 0:
            self.ended = True
            return b""
        data = self._take(size if self._left is None else min(size, self._left), nonblocking)
        if not data:
            self.ended = True
            if self._left is not None:
                self._fail("reset", "the server closed the connection before the end of its answer")
                self.check()
        elif self._left is not None:
            self._left -= len(data)
            if self._chunked and not self._left:
                self._take_line(nonblocking=False)
        return data

    def _take(self, size: int, nonblocking: bool) -> bytes:
        if not self._buffer:
            return self._connection.read(size, nonblocking=nonblocking)
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def _take_line(self, *, nonblocking: bool) -> bytes:
        while b"\n" not in self._buffer and len(self._buffer) < HEAD_MAX:
            data = self._connection.read(_READ, nonblocking=nonblocking)
            if not data:
                return b""
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.rstrip(b"\r")

    def _next_chunk(self, nonblocking: bool) -> bool:
        """Begin with the next chunk; False at the last one."""
        found = _CHUNK.match(self._take_line(nonblocking=nonblocking))
        if found is None:
            self._fail("protocol", "a chunk of the server's answer has no length")
            self.check()
            return False
        self._left = int(found[0], 16)
        while not self._left and self._take_line(nonblocking=False):
            """Skip the trailer's fields."""
        return self._left > 0

    def check(self) -> None:
        if self.failure is not None:
            raise SysError(errno_of(self.failure))

    def _fail(self, kind: str, text: str) -> None:
        self.failure = self.failure or Failed(0, kind, text)
        self.drop()

    def _out_of_time(self) -> None:
        if not self.ended:
            self._fail("timeout", "the server inside the sandbox did not answer in time")

    def drop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._connection.drop()

    def poll(self) -> int:
        if self.failure is not None:
            return POLLIN | POLLOUT | POLLERR
        ready = POLLIN if self._buffer or self.ended or (self._left == 0 and not self._chunked) else 0
        return ready | self._connection.poll()
