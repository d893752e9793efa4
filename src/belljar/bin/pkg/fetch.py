"""Catalogs and archives of registries, through the sandbox's network; `file:` URLs from its own files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from belljar.abi.errors import SysError
from belljar.bin._web import Exchange, WebError
from belljar.kernel.process import Process
from belljar.packages.errors import PackageError

_TIMEOUT: Final = 120.0


def split_url(url: str) -> SplitResult:
    """The parts of a registry's URL. PackageError."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "file" or (parts.scheme in ("http", "https") and parts.hostname and parts.port != 0):
            return parts
    except ValueError:
        pass
    raise PackageError(f"{url[:200]!r} is no URL of a registry: it begins with https://, http:// or file://")


def fetch(process: Process, url: str, limit: int) -> bytes:
    """All of a file. PackageError."""
    with open_url(process, url, limit) as chunks:
        return b"".join(chunks)


@contextmanager
def open_url(process: Process, url: str, limit: int) -> Iterator[Iterator[bytes]]:
    """The pieces of a file of at most `limit` bytes. PackageError, also while they are read."""
    parts = split_url(url)
    if parts.scheme == "file":
        try:
            yield _limited(process.chunks(unquote(parts.path)), url, limit)
        except SysError as error:
            raise PackageError(f"could not get {url}: {error.reason}") from None
        return
    try:
        with Exchange(process) as exchange:
            head = exchange.ask("GET", url, [("Accept", "*/*"), ("User-Agent", "pkg (belljar)")], timeout=_TIMEOUT)
            if head.status != 200:
                raise PackageError(f"could not get {url}: {head.status} {head.reason}{_advice(head.status)}")
            yield _limited(exchange.chunks(), url, limit)
    except WebError as error:
        host = parts.hostname
        if error.kind != "denied":
            raise PackageError(f"could not get {url}: {error.kind}: {error.text}") from None
        raise PackageError(
            f"could not get {url}: the sandbox's network is closed to {host} ({error.text}). "
            f"Its owner can grant it: Sandbox(network=Network.allow({parts.netloc!r}))"
        ) from None


def _advice(status: int) -> str:
    if status in (301, 302, 303, 307, 308):
        return " (it leads elsewhere: add the registry by the address it moved to)"
    if status in (401, 403):
        return " (it wants credentials: the sandbox's owner adds them by the network policy, see docs/packages.md)"
    return " (is this the address of a registry?)" if status == 404 else ""


def _limited(chunks: Iterator[bytes], url: str, limit: int) -> Iterator[bytes]:
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > limit:
            raise PackageError(f"{url} has more than the {limit:,} bytes that it should have")
        yield chunk
