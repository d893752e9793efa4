"""An HTTP/1.1 server: requests are read by h11, which is strict, and answered by functions of the test."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import h11

from tests.net.servers.listener import Listener


@dataclass(frozen=True, slots=True)
class Request:
    """What arrived."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    """Names in lower case, in order."""
    body: bytes = b""
    connection: int = 0
    """Which connection of the server it came on, counted from 1."""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    def header(self, name: str) -> str | None:
        """All values of a header, joined as HTTP allows; None if it is not there."""
        found = [value for key, value in self.headers if key == name.lower()]
        return ", ".join(found) if found else None


@dataclass(frozen=True, slots=True)
class Response:
    """What to answer. A body of bytes has a Content-Length; one in pieces is sent chunked, each as it comes."""

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    headers: Mapping[str, str] | list[tuple[str, str]] = field(default_factory=dict)
    reason: str | None = None
    raw: bytes | Iterable[bytes] | None = None
    """Instead of all that: exactly these bytes, then the connection closes."""


Route = Callable[[Request], Response]
_REASONS = {200: "OK", 201: "Created", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently"} | {
    302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect",
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 416: "Range Not Satisfiable",
    429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
}  # fmt: skip


class HttpServer(Listener):
    """Routes by path: the exact one, or the longest that ends in `/` and begins the path; else 404.

    `requests` has all that came, in order. With `keep_alive=False` each connection ends after one answer.
    """

    def __init__(
        self,
        routes: Mapping[str, Route | Response | bytes | str] | None = None,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        context: ssl.SSLContext | None = None,
        keep_alive: bool = True,
    ) -> None:
        super().__init__(address, port, context)
        self.routes: dict[str, Route | Response | bytes | str] = dict(routes or {})
        self.requests: list[Request] = []
        self.keep_alive = keep_alive
        self._counted = threading.Lock()
        self._served = 0

    @property
    def last(self) -> Request:
        return self.requests[-1]

    def answer(self, request: Request) -> Response:
        path = request.path or "/"
        found = self.routes.get(path)
        if found is None:
            above = [prefix for prefix in self.routes if prefix.endswith("/") and path.startswith(prefix)]
            found = self.routes[max(above, key=len)] if above else Response(404, b"not found\n")
        match found:
            case Response():
                return found
            case str():
                return Response(200, found.encode(), {"Content-Type": "text/plain"})
            case bytes():
                return Response(200, found, {"Content-Type": "application/octet-stream"})
            case _:
                return found(request)

    def serve(self, connection: socket.socket) -> None:
        with self._counted:
            self._served += 1
            number = self._served
        machine = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        while True:
            request = _read(machine, connection, number)
            if request is None:
                return
            self.requests.append(request)
            response = self.answer(request)
            if response.raw is not None:
                with _closing(response.raw) as pieces:
                    for piece in [pieces] if isinstance(pieces, bytes) else pieces:
                        connection.sendall(piece)
                return
            _write(machine, connection, request, response, last=not self.keep_alive)
            if machine.our_state is not h11.DONE or machine.their_state is not h11.DONE:
                return
            machine.start_next_cycle()


def _read(machine: h11.Connection, connection: socket.socket, number: int) -> Request | None:
    head: h11.Request | None = None
    body: list[bytes] = []
    while True:
        try:
            event = machine.next_event()
        except h11.RemoteProtocolError as error:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            raise ConnectionError(str(error)) from None
        match event:
            case h11.NEED_DATA:
                if machine.they_are_waiting_for_100_continue:
                    go_on = machine.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
                    connection.sendall(go_on or b"")
                data = connection.recv(1 << 18)
                if not data and head is None:
                    return None
                machine.receive_data(data)
            case h11.Request():
                head = event
            case h11.Data():
                body.append(bytes(event.data))
            case h11.EndOfMessage():
                assert head is not None
                headers = [(bytes(k).decode("latin-1"), bytes(v).decode("latin-1")) for k, v in head.headers]
                return Request(
                    head.method.decode(), bytes(head.target).decode("latin-1"), headers, b"".join(body), number
                )
            case _:
                return None


def _write(
    machine: h11.Connection, connection: socket.socket, request: Request, response: Response, *, last: bool
) -> None:
    items = response.headers.items() if isinstance(response.headers, Mapping) else response.headers
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in items]
    names = {name.lower() for name, _ in headers}
    framed = names & {b"content-length", b"transfer-encoding"} or response.status in (204, 304)
    if isinstance(response.body, bytes) and not framed:
        headers.append((b"Content-Length", str(len(response.body)).encode()))
    if last:
        headers.append((b"Connection", b"close"))
    reason = response.reason if response.reason is not None else _REASONS.get(response.status, "")
    head = machine.send(h11.Response(status_code=response.status, headers=headers, reason=reason.encode()))
    if isinstance(response.body, bytes):
        parts = [head or b""]
        if request.method != "HEAD" and response.body:
            parts.append(machine.send(h11.Data(response.body)) or b"")
        parts.append(machine.send(h11.EndOfMessage()) or b"")
        connection.sendall(b"".join(parts))
        return
    connection.sendall(head or b"")
    if request.method != "HEAD":
        with _closing(response.body) as pieces:
            for piece in pieces:
                connection.sendall(machine.send(h11.Data(piece)) or b"")
    connection.sendall(machine.send(h11.EndOfMessage()) or b"")


def _closing(pieces: Any) -> AbstractContextManager[Any]:
    """Generators are closed when the peer goes, so that an endless one ends with its connection."""
    return closing(pieces) if hasattr(pieces, "close") else nullcontext(pieces)
