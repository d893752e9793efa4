"""Downloads of npm: pages and tarballs, subject to the sandbox's network policy."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from belljar.abi.errors import SysError
from belljar.bin._web import Exchange, WebError
from belljar.bin.npm.config import Config
from belljar.bin.npm.problems import NpmError
from belljar.kernel.process import Process

PAGE_MAX: Final = 64 << 20
"""Bytes of one page of metadata."""
_REDIRECTS: Final = 10
_TIMEOUT: Final = 60.0
_RETRIES: Final = 2


class Missing(Exception):
    """The server has no such thing: its status and what it says."""

    def __init__(self, status: int, url: str, reason: str) -> None:
        super().__init__(url)
        self.status = status
        self.url = url
        self.reason = reason


class Fetcher:
    def __init__(self, process: Process, config: Config) -> None:
        self._process = process
        self._config = config

    def page(self, url: str, accept: str) -> bytes:
        """A whole answer. Missing; NpmError."""
        parts, total = [], 0
        with self.stream(url, accept) as chunks:
            for chunk in chunks:
                total += len(chunk)
                if total > PAGE_MAX:
                    raise NpmError("ETOOLARGE", f"{url} is larger than {PAGE_MAX >> 20} MB")
                parts.append(chunk)
        return b"".join(parts)

    @contextmanager
    def stream(self, url: str, accept: str = "*/*") -> Iterator[Iterator[bytes]]:
        """The pieces of an answer. Credentials go only to whom the settings have them for, redirected or not."""
        if self._config.flag("offline"):
            raise NpmError(
                "ENOTCACHED",
                f"request to {url} failed: cache mode is 'only-if-cached' but no cached response is available.",
            )
        asked = url
        for _ in range(_REDIRECTS + 1):
            parts = split_url(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise NpmError(
                    "EINVALIDURL", f"Invalid URL: {url}", *([f"It was led there from {asked}."] if url != asked else [])
                )
            exchange, target, packed = self._ask(url, accept)
            with exchange:
                if target is not None:
                    url = _joined(url, target)
                    continue
                try:
                    yield _inflated(exchange.chunks(), url) if packed else exchange.chunks()
                except WebError as error:
                    raise problem(url, error) from None
                return
        raise NpmError("EMAXREDIRECT", f"maximum redirect reached at: {url}")

    def _ask(self, url: str, accept: str) -> tuple[Exchange, str | None, bool]:
        """An exchange, where it leads instead if it does, and whether its body is compressed."""
        headers = [("Accept", accept), ("Accept-Encoding", "gzip"), ("User-Agent", "npm/11 (belljar)")]
        authorization = self._config.authorization(url)
        if authorization is not None:
            headers.append(("Authorization", authorization))
        for left in range(_RETRIES, -1, -1):
            try:
                exchange = Exchange(self._process)
                try:
                    head = exchange.ask("GET", url, headers, timeout=_TIMEOUT)
                except BaseException:
                    exchange.close()
                    raise
            except WebError as error:
                if left and error.kind in ("reset", "timeout"):
                    self._process.sleep(0.5)
                    continue
                raise problem(url, error) from None
            target = head.get("location")
            if head.status in (301, 302, 303, 307, 308) and target is not None:
                return exchange, target, False
            if head.status == 200:
                return exchange, None, head.get("content-encoding") == "gzip"
            exchange.close()
            if not left or head.status not in (408, 420, 429, 500, 502, 503, 504):
                break
            self._process.sleep(0.5)
        if head.status in (401, 403):
            raise NpmError(f"E{head.status}", f"{head.status} {head.reason} - GET {url}", *_LOGIN)
        if head.status in (404, 405, 410):
            raise Missing(head.status, url, head.reason or "Not Found")
        raise NpmError(f"E{head.status}", f"{head.status} {head.reason} - GET {url}")


_LOGIN: Final = ("The registry wants credentials, or refuses these. Credentials that never enter the sandbox are added",
                 "by its owner's network policy; else set //HOST/:_authToken in .npmrc.")  # fmt: skip


def split_url(url: str) -> SplitResult:
    """The parts of a URL; none, if it is no URL at all."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", url, "", "")


def _joined(url: str, target: str) -> str:
    try:
        return urljoin(url, target)
    except ValueError:
        return target


def _inflated(chunks: Iterator[bytes], url: str) -> Iterator[bytes]:
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for chunk in chunks:
            piece = inflate.decompress(chunk, PAGE_MAX)
            if inflate.unconsumed_tail:
                raise NpmError("ETOOLARGE", f"{url} unpacks to more than {PAGE_MAX >> 20} MB")
            yield piece
    except zlib.error as error:
        raise NpmError("Z_DATA_ERROR", f"the answer of {url} is damaged: {error}") from None


def problem(url: str, error: WebError) -> NpmError:
    """Why there was no answer, and what can be done."""
    host = split_url(url).hostname or url
    if error.kind == "denied":
        why = error.text if "no network" in error.text else f"the sandbox's network is closed to {host} ({error.text})"
        return NpmError(
            "EACCES",
            f"request to {url} failed: {why}",
            f"The sandbox's owner can grant it: Sandbox(network=Network.allow({host!r})).",
        )
    code = {
        "dns": "ENOTFOUND",
        "connect": "ECONNREFUSED",
        "timeout": "ETIMEDOUT",
        "reset": "ECONNRESET",
        "url": "EINVALIDURL",
    }
    return NpmError(code.get(error.kind, "EPROTO"), f"request to {url} failed, reason: {error.text}")


def local_chunks(process: Process, path: str) -> Iterator[bytes]:
    """A file of the sandbox's. ENOENT as npm says it."""
    try:
        yield from process.chunks(path)
    except SysError as error:
        raise NpmError("ENOENT", f"Could not read {path}: {error.reason}") from None
