"""/mnt/web: web requests by files, one directory each, as Plan 9's webfs.

`clone` opened is the `ctl` file of a new request, and reading it gives its number N. Lines written to it say what to
ask (`url`, `method`, `header`, `redirects`, `timeout`, `connect-timeout`, `http`); `N/postbody` takes the body, and
opening `N/body` sends the request and gives what comes back. docs/network.md has the details.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from belljar.abi.errno import EBUSY, EINVAL, ENOTCONN
from belljar.abi.errors import SysError
from belljar.abi.flags import O_ACCMODE, O_RDONLY, POLLOUT
from belljar.kernel.fiber import WaitQueue
from belljar.kernel.fs.synthetic import Device, Entry, SyntheticServer
from belljar.net.guest.files import RDEV, ControlHandle, Directory, Numbered, StreamHandle, text
from belljar.net.guest.local_http import LocalFetch
from belljar.net.guest.netfs import parse_seconds
from belljar.net.guest.uplink import Stream, Uplink, errno_of
from belljar.net.headers import BadMessage, Headers, check_method, check_request, parse_field
from belljar.net.hosts import BadHost, Url, parse_url
from belljar.net.wire import Failed, Fetch

REQUESTS_MAX: Final = 256
HEADERS_MAX: Final = 256
HEADER_BYTES: Final = 64 << 10
REDIRECTS_MAX: Final = 50
HELD: Final = 64 << 10
"""A body up to this is sent with its length; a longer one, without a Content-Length header, in chunks."""


class Request(Numbered):
    """One request, from its first line to the last byte of its answer."""

    def __init__(self, uplink: Uplink, number: int) -> None:
        super().__init__(number)
        self._uplink = uplink
        self._url: Url | None = None
        self._method: str | None = None
        self._fields: list[tuple[bytes, bytes]] = []
        self._redirects = 0
        self._timeout = 0.0
        self._connect_timeout = 0.0
        self._http = ""
        self._held: list[bytes] = []
        self._held_size = 0
        self._posted = False
        self._stream: Stream | LocalFetch | None = None
        self._error: Failed | None = None

    # ctl

    def command(self, word: str, rest: str) -> None:
        """EINVAL for a bad line, EBUSY once the request is under way."""
        if self._stream is not None:
            raise SysError(EBUSY)
        self._error = None
        try:
            self._set(word, rest.rstrip("\r"))
        except (BadHost, BadMessage) as error:
            self._fail(Failed(0, "protocol", str(error)), EINVAL)

    def _set(self, word: str, rest: str) -> None:
        match word:
            case "url":
                self._url = parse_url(rest.strip())
            case "method":
                self._method = check_method(rest.strip())
            case "header":
                self._fields.append(parse_field(rest.encode("latin-1")))
                if len(self._fields) > HEADERS_MAX or sum(len(n) + len(v) for n, v in self._fields) > HEADER_BYTES:
                    raise BadMessage(f"more than {HEADERS_MAX} headers, or {HEADER_BYTES} bytes of them")
            case "redirects":
                if not (rest.isascii() and rest.isdigit() and len(rest) < 4 and int(rest) <= REDIRECTS_MAX):
                    raise BadMessage(f"redirects: 0 to {REDIRECTS_MAX}")
                self._redirects = int(rest)
            case "timeout":
                self._timeout = parse_seconds(rest)
            case "connect-timeout":
                self._connect_timeout = parse_seconds(rest)
            case "http":
                if rest not in ("1.0", "1.1", "2"):
                    raise BadMessage("http: 1.1 or 2")
                self._http = rest
            case _:
                raise BadMessage(
                    f"{word[:40]!r}: lines begin with url, method, header, redirects, timeout, connect-timeout or http"
                )

    def _fail(self, failure: Failed, errno: int) -> NoReturn:
        self._error = failure
        raise SysError(errno)

    @property
    def error(self) -> Failed | None:
        return self._error or (self._stream.failure if self._stream is not None else None)

    # The body.

    def begin_post(self) -> None:
        if self._stream is not None and not self.upgraded:
            raise SysError(EBUSY)
        self._posted = True

    def post(self, data: bytes, *, nonblocking: bool) -> int:
        if self._stream is None:
            if self._held_size + len(data) <= HELD:
                self._held.append(bytes(data))
                self._held_size += len(data)
                return len(data)
            self._send(ended=False)
        assert self._stream is not None
        return self._stream.write(data, nonblocking=nonblocking)

    def end_post(self) -> None:
        if self._stream is not None and not self.upgraded:
            self._stream.end()

    def _send(self, *, ended: bool) -> None:
        """Ask the broker. What was held goes first; `ended` says it is all there is."""
        if self._url is None:
            self._fail(Failed(0, "protocol", "no url was written to ctl"), EINVAL)
        url, method = self._url, self._method or ("POST" if self._posted else "GET")
        headers = Headers(self._fields)
        try:
            announced = check_request(headers, url.authority)
        except BadMessage as error:
            self._fail(Failed(0, "protocol", str(error)), EINVAL)
        if ended and announced is not None and announced != self._held_size:
            self._fail(Failed(0, "protocol", f"Content-Length is {announced}, the body {self._held_size}"), EINVAL)
        body = self._posted
        if body and ended and announced is None:
            headers.set("content-length", str(self._held_size))
            headers.remove("transfer-encoding")

        def fetch(number: int) -> Fetch:
            return Fetch(
                number, method, str(url), headers.raw(), body,
                self._redirects, self._timeout, self._connect_timeout, self._http,
            )  # fmt: skip

        local = self._uplink.local
        stream: Stream | LocalFetch
        if url.scheme == "http" and (network := local.serves(url.host, url.port)) is not None:
            stream = LocalFetch(network.connect(url.port), fetch(0), url.authority, url.target)
        else:
            stream = self._uplink.open(fetch, None if local.find(url.host) is None else url.port)
        self._stream = stream
        held, self._held = b"".join(self._held), []
        while held:
            held = held[stream.write(held) :]
        if ended and body and "upgrade" not in headers:
            stream.end()

    def open_body(self) -> Stream | LocalFetch:
        """Send the request if that has not happened, and wait for the head of the response."""
        if self._stream is None:
            self._send(ended=True)
        stream = self._stream
        assert stream is not None
        stream.wait_open()
        if stream.failure is not None and stream.opened is None:
            raise SysError(errno_of(stream.failure))
        return stream

    @property
    def upgraded(self) -> bool:
        """The connection has become something else: bytes go both ways from now on."""
        opened = self._stream.opened if self._stream is not None else None
        return opened is not None and opened.info.get("upgraded") == "1"

    @property
    def waiters(self) -> WaitQueue | None:
        return self._stream.waiters if self._stream is not None else None

    # What can be read about it.

    def response(self) -> bytes:
        return self._stream.opened.head if self._stream is not None and self._stream.opened is not None else b""

    def info(self) -> bytes:
        opened = self._stream.opened if self._stream is not None else None
        return "".join(f"{key} {value}\n" for key, value in opened.info.items()).encode() if opened else b""

    def error_line(self) -> bytes:
        return f"{self.error.kind}: {self.error.text}\n".encode() if self.error is not None else b""

    def close(self) -> None:
        if self._stream is not None:
            self._stream.drop()


class BodyHandle(StreamHandle):
    """The response's body, as it comes."""

    __slots__ = ("_stream",)

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        try:
            self._stream = request.open_body()
        except BaseException:
            request.release()
            raise

    def read(self, offset: int, size: int) -> bytes:
        return self._stream.read(size, nonblocking=self.nonblocking)

    def poll(self) -> int:
        return self._stream.poll() & ~POLLOUT

    @property
    def waiters(self) -> WaitQueue | None:
        return self._stream.waiters


class PostHandle(StreamHandle):
    """The request's body; closing it is its end."""

    __slots__ = ("_request",)

    def __init__(self, request: Request, flags: int) -> None:
        if flags & O_ACCMODE == O_RDONLY:
            raise SysError(EINVAL)
        request.begin_post()
        super().__init__(request)
        self._request = request

    def write(self, offset: int | None, data: bytes) -> int:
        return self._request.post(data, nonblocking=self.nonblocking)

    def read(self, offset: int, size: int) -> bytes:
        raise SysError(ENOTCONN)

    def poll(self) -> int:
        return POLLOUT

    @property
    def waiters(self) -> WaitQueue | None:
        return self._request.waiters

    def close(self) -> None:
        self._request.end_post()
        super().close()


class WebServer(SyntheticServer):
    """The tree."""

    kind = "web"

    def __init__(self, uplink: Uplink, now: Callable[[], int]) -> None:
        super().__init__(Directory(lambda number: Request(uplink, number), _files, REQUESTS_MAX).entry(), now)


def _files(request: Request) -> dict[str, Entry]:
    return {
        "ctl": Device(lambda _flags: ControlHandle(request, request.command), RDEV),
        "postbody": Device(lambda flags: PostHandle(request, flags), RDEV, 0o222),
        "body": Device(lambda _flags: BodyHandle(request), RDEV, 0o444),
        "response": text(request, request.response),
        "info": text(request, request.info),
        "error": text(request, request.error_line),
    }
