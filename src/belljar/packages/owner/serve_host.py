"""`belljar registry serve`: the files of a registry over HTTP, and no others."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Final

_SERVED: Final = re.compile(r"/(catalog\.json|archives/sha256-[0-9a-f]{64}\.tar\.gz)")
_TIMEOUT: Final = 60
_TEND_SECONDS: Final = 60.0


class RegistryServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, directory: Path, host: str, port: int, tend: Callable[[], None] = lambda: None) -> None:
        """`tend` is called at first, and every minute."""
        self.directory = directory
        self._tend = tend
        self._next = monotonic()
        super().__init__((host, port), _Handler)

    def service_actions(self) -> None:
        if monotonic() >= self._next:
            self._next = monotonic() + _TEND_SECONDS
            self._tend()


class _Handler(BaseHTTPRequestHandler):
    server: RegistryServer
    protocol_version = "HTTP/1.1"
    server_version = "belljar-registry"
    timeout = _TIMEOUT

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        match = _SERVED.fullmatch(self.path.partition("?")[0])
        try:
            file = open(self.server.directory / match[1], "rb") if match else None  # noqa: SIM115 - closed below
        except OSError:
            file = None
        if file is None:
            self.send_error(404, "there is no such file in this registry")
            return
        with file:
            size = file.seek(0, 2)
            file.seek(0)
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if self.path.endswith("json") else "application/gzip")
            self.send_header("Content-Length", str(size))
            self.send_header("Cache-Control", "no-cache" if self.path.endswith("json") else "immutable")
            self.end_headers()
            if with_body:
                shutil.copyfileobj(file, self.wfile)
