"""Routes whose answers are a burden: slow, endless, cut short, redirecting for ever, larger than they look."""

from __future__ import annotations

import base64
import gzip
import time
import zlib
from collections.abc import Iterator

from tests.net.servers.http1 import Request, Response, Route


def echo(request: Request) -> Response:
    """The request as it arrived, its headers one to a line, then an empty line and its body."""
    lines = [f"{request.method} {request.target}", *(f"{name}: {value}" for name, value in request.headers), "", ""]
    return Response(200, "\n".join(lines).encode("latin-1") + request.body, {"Content-Type": "text/plain"})


def slow(piece: bytes = b"x", *, every: float = 0.1, count: int = 1000) -> Route:
    """A piece now and then."""

    def pieces() -> Iterator[bytes]:
        for _ in range(count):
            yield piece
            time.sleep(every)

    return lambda request: Response(200, pieces())


def late(seconds: float, body: bytes = b"at last\n") -> Route:
    """Nothing at all for a while."""

    def route(request: Request) -> Response:
        time.sleep(seconds)
        return Response(200, body)

    return route


def endless(request: Request) -> Response:
    """Chunks for ever."""

    def pieces() -> Iterator[bytes]:
        block = bytes(1 << 16)
        while True:
            yield block

    return Response(200, pieces())


def endless_headers(request: Request) -> Response:
    """Header lines for ever."""

    def pieces() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n"
        number = 0
        while True:
            yield b"".join(b"X-%d: %s\r\n" % (n, b"y" * 100) for n in range(number, number + 100))
            number += 100

    return Response(raw=pieces())


def cut_short(body: bytes = b"half", *, claimed: int = 1000) -> Response:
    """A Content-Length that is not kept."""
    return Response(raw=b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (claimed, body))


def redirect(to: str, status: int = 302) -> Route:
    return lambda request: Response(status, b"", {"Location": to})


def redirect_loop(request: Request) -> Response:
    """Each leads to the next."""
    number = int(request.query.get("n", "0")) + 1
    return Response(302, b"", {"Location": f"{request.path}?n={number}"})


def gzipped(body: bytes) -> Response:
    return Response(200, gzip.compress(body), {"Content-Encoding": "gzip", "Content-Type": "text/plain"})


def gzip_bomb(size: int = 1 << 30) -> Response:
    """A thousand times larger than it looks; made piece by piece."""
    machine = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = bytes(1 << 20)
    parts = [machine.compress(block) for _ in range(size >> 20)]
    return Response(200, b"".join([*parts, machine.flush()]), {"Content-Encoding": "gzip"})


def ranged(body: bytes, *, etag: str = '"one"') -> Route:
    """A file of which parts can be asked for."""

    def route(request: Request) -> Response:
        headers = {"Accept-Ranges": "bytes", "ETag": etag, "Content-Type": "application/octet-stream"}
        asked = request.header("range")
        if asked is None or not asked.startswith("bytes="):
            return Response(200, body, headers)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        if first == "":
            start, stop = max(0, len(body) - int(last)), len(body)
        else:
            start, stop = int(first), min(int(last) + 1 if last else len(body), len(body))
        if start >= len(body):
            return Response(416, b"", {**headers, "Content-Range": f"bytes */{len(body)}"})
        return Response(206, body[start:stop], {**headers, "Content-Range": f"bytes {start}-{stop - 1}/{len(body)}"})

    return route


def protected(user: str, password: str, body: bytes = b"secret area\n") -> Route:
    """Basic authentication."""
    expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def route(request: Request) -> Response:
        if request.header("authorization") == expected:
            return Response(200, body)
        return Response(401, b"who are you?\n", {"WWW-Authenticate": 'Basic realm="test"'})

    return route
