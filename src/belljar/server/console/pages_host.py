"""The files of the page, as `tools/build_web.py` made them, and the rules that a browser is given for them."""

from __future__ import annotations

import gzip
import secrets
from functools import cache
from mimetypes import guess_type
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from belljar.server.errors import ApiError

STATIC: Final = Path(__file__).parent / "static"
_NONCE: Final = "{nonce}"
_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'nonce-{nonce}' 'strict-dynamic'",
        "style-src 'self' 'nonce-{nonce}'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types belljar",
    ]
)
_MISSING: Final = """<!doctype html><html lang="en"><title>belljar</title>
<p>This server runs. Its console is not built: the wheels of belljar carry it; in a checkout, run <code>make web</code>.
"""
HEADERS: Final = {
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
SEALED: Final = {**HEADERS, "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'"}
"""For what is no page."""


@cache
def _read(name: str) -> bytes | None:
    """A file of the page. Names are compared, never joined to a path: there is none that leads elsewhere."""
    for path in sorted(STATIC.glob("[!.]*")):
        if path.name == name and path.is_file():
            return path.read_bytes()
    return None


@cache
def _packed(name: str) -> bytes:
    return gzip.compress(_read(name) or b"", 6)


async def index(request: Request) -> Response:
    page = (_read("index.html") or _MISSING.encode()).decode()
    nonce = secrets.token_urlsafe(16)
    headers = {**HEADERS, "Content-Security-Policy": _POLICY.replace(_NONCE, nonce), "Cache-Control": "no-store"}
    return Response(page.replace(_NONCE, nonce), 200, headers, media_type="text/html")


async def asset(request: Request) -> Response:
    """A file whose name has a digest of its contents. ApiError 404."""
    name = request.path_params["name"]
    data = None if name == "index.html" else _read(name)
    if data is None:
        raise ApiError(404, "Not found")
    headers = {**SEALED, "Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    kind = guess_type(name)[0] or "application/octet-stream"
    if "gzip" in request.headers.get("accept-encoding", "") and kind.startswith("text/"):
        return Response(_packed(name), 200, {**headers, "Content-Encoding": "gzip"}, media_type=kind)
    return Response(data, 200, headers, media_type=kind)
