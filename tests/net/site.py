"""A web site with a bit of everything for commands to be run against, and what of their output can't be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.net.servers import HttpServer, Request, Response, Route, bodies


def routes() -> Mapping[str, Route | Response | bytes | str]:
    page = b'<html><a href="a">x</a> <a href="sub/b.txt">y</a> <a href="http://other.example/">z</a> <img src=/big>\n'
    return {
        "/a": "text",
        "/echo": bodies.echo,
        "/big": b"x" * 100_000,
        "/binary": b"\0\1\2",
        "/loop": bodies.redirect_loop,
        "/endless": bodies.endless,
        "/short": bodies.cut_short(),
        "/part": bodies.ranged(b"0123456789" * 10),
        "/gzip": bodies.gzipped(b"plain text\n"),
        "/late": bodies.late(30),
        "/auth": bodies.protected("me", "pw"),
        "/auth/": bodies.protected("me", "pw"),
        "/r301": bodies.redirect("/echo", 301),
        "/r302": bodies.redirect("/a"),
        "/r303": bodies.redirect("/echo", 303),
        "/r307": bodies.redirect("/echo", 307),
        "/r308": bodies.redirect("/echo", 308),
        "/rrel": bodies.redirect("sub/b.txt"),
        "/cookie": _cookie,
        "/empty": Response(raw=b""),
        "/weird": Response(raw=b"hello\r\n\r\n"),
        "/404": Response(404, b"no\n", {"Content-Type": "text/plain"}),
        "/500": Response(500, b"oops\n"),
        "/503": Response(503, b"later\n", {"Retry-After": "1"}),
        "/nocontent": Response(204),
        "/chunked": lambda request: Response(200, iter([b"one", b"two"])),
        "/cd": Response(200, b"named\n", {"Content-Disposition": 'attachment; filename="given.txt"'}),
        "/page.html": Response(200, page, {"Content-Type": "text/html"}),
        "/sub/b.txt": "bee",
        "/dated": Response(200, b"old\n", {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT", "ETag": '"tag"'}),
    }


def _cookie(request: Request) -> Response:
    cookies = [("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; Max-Age=3600; HttpOnly")]
    return Response(200, b"c\n", [*cookies, ("Content-Type", "text/plain")])


_MASKS = [
    (r"boundary=-*[0-9A-Za-z]+", "boundary=B"),
    (r"-{24,}[0-9A-Za-z]+", "--B"),
    (r"(content-length: )\d+\n(content-type: multipart.*)\n", r"\2\n\1N\n"),
    (r"(content-type: multipart.*\ncontent-length: )\d+\n", r"\1N\n"),
    (r"(?m)^\* (Ignoring the response-body|setting size while ignoring|Request completely sent off)\n", ""),
    (r"( +[0-9.]+[kMG]?){2}( --:--:--|  \d:\d\d:\d\d){3} +[0-9.]+[kMG]?", " SPEEDS"),
    (r"(?<=SPEEDS)\r[^\r\n]* SPEEDS(?!\n)", ""),  # curl draws again after each second
    (r"after \d+ (ms|milliseconds)", r"after N \1"),
    (r"\t1\d{9}\t", "\tTIME\t"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE"),
    (r" +[0-9.]+[KMGT ]?=[0-9.]+s", " RATE"),
    (r"\([0-9.]+ [KMGT]?B/s\)", "(RATE)"),
    (r"% +[0-9.]+[KMGT]? +\d+s", "% RATE"),
    (r"(clock time:|in) [0-9.]+s", r"\1 TIME"),
    (r"(passed) \d+ (returned) \d+", r"\1 N \2 N"),
    (r"(?m)^connection: .*\n", ""),  # the broker's own
    (r"(content-length: \d+)\n(content-type: .*)\n", r"\2\n\1\n"),  # the broker frames the body, and says so last
    (r"' or 'curl --manual'", "'"),
]


def masked(text: str, server: HttpServer | str) -> str:
    """Output without times, speeds, ports and made-up boundaries. `{U}` is the server's URL, `{H}` its authority."""
    authority = server if isinstance(server, str) else server.authority
    text = text.replace(f"http://{authority}", "{U}").replace(authority, "{H}")
    port = authority.rpartition(":")[2]
    text = re.sub(rf"port {port}\b", "port {P}", text)
    for pattern, replacement in _MASKS:
        text = re.sub(pattern, replacement, text)
    return text
