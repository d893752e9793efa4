"""Serves a built page, with the headers that wall its workers in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO, Final

from belljar.browser.embedders_host import read_origins
from belljar.browser.errors import BuildError

TYPES: Final = {
    ".mjs": "text/javascript",
    ".js": "text/javascript",
    ".wasm": "application/wasm",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".ts": "text/plain",
    ".svg": "image/svg+xml",
    ".zip": "application/zip",
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
_ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
WORKER_POLICY: Final = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self'"
"""What a sandbox's worker may load: its own files, and nothing else."""
ENGINE_POLICY: Final = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'"
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src *; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""What the page itself may do: it fetches for the sandbox, by the sandbox's policy, and asks models."""

BRIDGE_POLICY: Final = "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src 'self'"
NOBODY: Final = "'none'"


def headers(name: str, embedders: Sequence[str] = ()) -> dict[str, str]:
    """The headers of a file of the page, by its name. `embedders`: origins that may have the bridge in a frame."""
    policy, readers = PAGE_POLICY, "same-origin"
    if name.startswith("engine"):
        policy = ENGINE_POLICY
    elif name.endswith("worker.mjs"):
        policy = WORKER_POLICY
    elif name == "bridge.html":
        policy, readers = f"{BRIDGE_POLICY}; frame-ancestors {' '.join(embedders) or NOBODY}", "cross-origin"
    return {
        "Content-Security-Policy": policy,
        # Cross-origin isolation: SharedArrayBuffer, by which a worker that is at work can be interrupted.
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Embedder-Policy": "require-corp",
        "Cross-Origin-Resource-Policy": readers,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def send_head(self) -> BinaryIO | None:
        """Send a file, compressed if there is a copy that the client takes."""
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        if not path.is_file():
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        accepted = self.headers.get("Accept-Encoding", "")
        found, encoding = path, ""
        for name, suffix in _ENCODINGS:
            copy = path.with_name(path.name + suffix)
            if name in accepted and copy.is_file():
                found, encoding = copy, name
                break
        status = found.stat()
        tag = f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
        known = self.headers.get("If-None-Match") == tag
        self.send_response(HTTPStatus.NOT_MODIFIED if known else HTTPStatus.OK)
        self.send_header("ETag", tag)
        for name, value in headers(path.name, read_origins(Path(self.directory))).items():
            self.send_header(name, value)
        if known:
            self.end_headers()
            return None
        self.send_header("Content-Type", TYPES.get(path.suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(status.st_size))
        self.send_header("Vary", "Accept-Encoding")
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()
        return found.open("rb")

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet: the terminal has the address, and the browser the errors."""


def serve(directory: Path, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve a built page until interrupted; `ready` is told the address. BuildError, OSError."""
    if not (directory / "belljar.mjs").is_file():
        raise BuildError(f"{directory} is no page: build one with `belljar browser build -o {directory}`")
    with ThreadingHTTPServer((host, port), partial(Handler, directory=str(directory))) as server:
        server.daemon_threads = True
        ready(f"http://{'localhost' if host == '127.0.0.1' else host}:{server.server_port}/")
        server.serve_forever()
