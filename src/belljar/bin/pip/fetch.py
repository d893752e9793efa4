"""Index pages and archives by URL: `https:` and `http:` through the sandbox's network, `file:` from its files."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

from belljar.abi.errors import SysError
from belljar.bin._web import Exchange, WebError
from belljar.bin.pip.problems import PipError
from belljar.kernel.process import Process

PAGE_MAX: Final = 64 << 20
"""Bytes of one index page or metadata file."""
_REDIRECTS: Final = 10
_TIMEOUT: Final = 60.0


class NotFound(Exception):
    """There is no such page or file."""


class Response:
    """An answer that is being read."""

    def __init__(self, url: str, kind: str, size: int | None, chunks: Iterator[bytes]) -> None:
        self.url = url
        """The URL after redirects."""
        self.kind = kind
        """Its content type."""
        self.size = size
        self.chunks = chunks

    def text(self) -> bytes:
        """All of it. PipError if that is too much."""
        parts, total = [], 0
        for chunk in self.chunks:
            total += len(chunk)
            if total > PAGE_MAX:
                raise PipError(f"{self.url} is larger than {PAGE_MAX >> 20} MB")
            parts.append(chunk)
        return b"".join(parts)


@contextmanager
def fetch(process: Process, url: str, *, accept: str = "*/*") -> Iterator[Response]:
    """Open a URL, following redirects. NotFound; PipError, as pip words it, for everything else."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        yield _local(process, url, unquote(parts.path))
        return
    if parts.scheme not in ("http", "https"):
        raise PipError(f"unsupported URL scheme {parts.scheme!r}: {url}")
    for _ in range(_REDIRECTS + 1):
        with _exchange(process, url) as exchange:
            try:
                head = exchange.ask("GET", url, [("Accept", accept), ("Accept-Encoding", "gzip")], timeout=_TIMEOUT)
                target = head.get("location")
                if head.status in (301, 302, 303, 307, 308) and target is not None:
                    url = urljoin(url, target)
                    continue
                if head.status in (404, 410):
                    raise NotFound(url)
                if head.status != 200:
                    raise PipError(f"HTTP error {head.status} while getting {url}")
                chunks, length = exchange.chunks(), head.get("content-length")
                if head.get("content-encoding") == "gzip":
                    chunks, length = _decoded(chunks), None
                size = int(length) if length is not None and length.isdecimal() else None
                yield Response(url, (head.get("content-type") or "").lower(), size, chunks)
            except WebError as error:
                raise _problem(url, error) from None
            return
    raise PipError(f"too many redirects while getting {url}")


def _exchange(process: Process, url: str) -> Exchange:
    try:
        return Exchange(process)
    except WebError as error:
        raise _problem(url, error) from None


def _problem(url: str, error: WebError) -> PipError:
    host = urlsplit(url).hostname or url
    if error.kind == "denied":
        return PipError(
            f"Could not get {url}: the network is closed to {host} ({error.text})",
            "An index is granted with Sandbox(network=Network.allow('pypi.org', 'files.pythonhosted.org')).",
        )
    return PipError(f"Could not get {url}: {error.kind}: {error.text}")


def _decoded(chunks: Iterator[bytes]) -> Iterator[bytes]:
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for chunk in chunks:
            piece = inflate.decompress(chunk, PAGE_MAX)
            if inflate.unconsumed_tail:
                raise PipError(f"a compressed answer unpacks to more than {PAGE_MAX >> 20} MB")
            yield piece
    except (zlib.error, gzip.BadGzipFile) as error:
        raise PipError(f"a compressed answer is damaged: {error}") from None


def _local(process: Process, url: str, path: str) -> Response:
    try:
        if process.fs.stat(path).is_dir:
            path = path.rstrip("/") + "/index.html"
            url = url.rstrip("/") + "/"
        size = process.fs.stat(path).size
    except SysError:
        raise NotFound(url) from None
    return Response(url, "text/html" if path.endswith(".html") else "", size, process.chunks(path))
