"""Requests over webfs: a directory of /mnt/web for each, whose far end is the broker in the owner's program.

What `curl`, `wget`, `git`, `pip` and `npm` share. The commands say what to ask for; the policy, the name's addresses,
TLS and the protocol's framing are the broker's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY, O_RDWR, O_WRONLY
from belljar.bin._net import NetFailure, NetFiles
from belljar.kernel.process import Process

ROOT: Final = "/mnt/web"
CHUNK: Final = 1 << 18


class WebError(NetFailure):
    """A request that came to nothing. `kind`: denied dns connect tls timeout protocol too-large reset, or url."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a response, as it was received."""

    text: bytes
    """The status line and the headers, with the empty line that ends them."""
    status: int
    reason: str
    version: str
    headers: tuple[tuple[str, str], ...] = field(default=())

    def all(self, name: str) -> list[str]:
        """Every value of a header, in order."""
        wanted = name.lower()
        return [value for key, value in self.headers if key.lower() == wanted]

    def get(self, name: str) -> str | None:
        """The last value of a header."""
        found = self.all(name)
        return found[-1] if found else None


class Exchange(NetFiles):
    """One request and its response. Closing it (it is a context manager) ends the request, finished or not."""

    def __init__(self, process: Process, root: str = ROOT) -> None:
        super().__init__(process)
        self._body = -1
        try:
            self._control = self._open(f"{root}/clone", O_RDWR)
        except SysError:
            raise WebError("denied", "this sandbox has no network") from None
        number = process.read(self._control, 64).decode("ascii").strip()
        self._directory = f"{root}/{number}"

    def _command(self, lines: list[str]) -> None:
        """Lines to the request's control file."""
        if any("\n" in line or "\r" in line for line in lines):
            raise WebError("url", "a line break in a URL, method or header")
        try:
            self._process.write_all(self._control, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
        except SysError as error:
            failure = self._failure(error)
            raise WebError("url", failure.text) from None

    def ask(
        self,
        method: str,
        url: str,
        headers: Sequence[tuple[str, str]] = (),
        body: Iterable[bytes] | None = None,
        *,
        timeout: float | None = None,
        connect_timeout: float | None = None,
        version: str | None = None,
    ) -> Head:
        """Send a request and wait for the head of its response. Raises WebError."""
        lines = [f"url {url}", f"method {method}", *(f"header {name}: {value}" for name, value in headers)]
        if timeout is not None:
            lines.append(f"timeout {max(timeout, 0.001):.3f}")
        if connect_timeout is not None:
            lines.append(f"connect-timeout {max(connect_timeout, 0.001):.3f}")
        if version is not None:
            lines.append(f"http {version}")
        self._command(lines)
        try:
            if body is not None:
                fd = self._open(f"{self._directory}/postbody", O_WRONLY)
                for chunk in body:
                    self._process.write_all(fd, chunk)
                self._close(fd)
            self._body = self._open(f"{self._directory}/body", O_RDONLY)
        except SysError as error:
            raise self._failure(error) from None
        return parse_head(self._read_whole("response"))

    def read(self, size: int = CHUNK) -> bytes:
        """The next piece of the body; b"" at its end. Raises WebError."""
        try:
            return self._process.read(self._body, size)
        except SysError as error:
            raise self._failure(error) from None

    def chunks(self) -> Iterator[bytes]:
        while data := self.read():
            yield data

    def info(self) -> dict[str, str]:
        """Return the connection's details: remote-ip, remote-port, time-connect, ..."""
        try:
            text = self._read_whole("info").decode("utf-8", "replace")
        except SysError:
            return {}
        return {key: value for key, _, value in (line.partition(" ") for line in text.splitlines())}

    def _read_whole(self, name: str) -> bytes:
        return self._process.read_file(f"{self._directory}/{name}")

    def _failure(self, error: SysError) -> WebError:
        try:
            said = self._read_whole("error").decode("utf-8", "replace").strip()
        except SysError:
            said = ""
        kind, colon, text = said.partition(": ")
        return WebError(kind, text) if colon else WebError("reset", said or error.reason)

    def _close(self, fd: int) -> None:
        self._fds.remove(fd)
        self._process.close(fd)


def parse_head(text: bytes) -> Head:
    """A status line and headers; a continued line belongs to the one before it."""
    lines = text.decode("utf-8", "surrogateescape").replace("\r\n", "\n").rstrip("\n").split("\n")
    version, _, rest = lines[0].partition(" ")
    code, _, reason = rest.partition(" ")
    headers: list[tuple[str, str]] = []
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers.append((name.strip(), value.strip()))
    whole = text if text.endswith(b"\r\n\r\n") else text.rstrip(b"\r\n") + b"\r\n\r\n"
    status = int(code) if code.isdecimal() and len(code) == 3 else 0
    return Head(whole, status, reason, version.removeprefix("HTTP/"), tuple(headers))


def name_from_header(header: str | None) -> str | None:
    """The file name of a Content-Disposition, without any directories."""
    match = re.search(r'filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))', header or "", re.I)
    if match is None:
        return None
    name = re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2]
    name = name.rpartition("/")[2].rpartition("\\")[2]
    return name if name not in ("", ".", "..") else None
