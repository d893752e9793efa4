"""Previews: web servers inside sandboxes by path and by host name, their links, and what they must not reach."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from socket import create_connection
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.server.serving import Server, from_elsewhere
from tests.server.test_control import envd

INSIDE = r"""
import base64, hashlib, http.server, json, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("Upgrade", "").lower() == "websocket":
            return self.socket()
        if self.path.startswith("/redirect"):
            self.send_response(302); self.send_header("Location", f"http://localhost:{PORT}/landed")
            self.send_header("Content-Length", "0"); self.end_headers(); return
        length = int(self.headers.get("Content-Length") or 0)
        seen = {"path": self.path, "method": self.command, "body": self.rfile.read(length).decode()}
        seen["names"] = list(self.headers)
        seen["headers"] = {k.lower(): v for k, v in self.headers.items()}
        data = json.dumps(seen).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", "guest=1; Domain=localhost; Path=/")
        self.send_header("Strict-Transport-Security", "max-age=1")
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    do_POST = do_GET
    def socket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_response(101); self.send_header("Upgrade", "websocket"); self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept); self.end_headers()
        while True:
            head = self.rfile.read(2)
            if len(head) < 2 or head[0] & 15 == 8: break
            size = head[1] & 127
            if size == 126: size = int.from_bytes(self.rfile.read(2), "big")
            mask = self.rfile.read(4); data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(size)))
            kind = head[0] & 15
            out = data.upper() if kind == 1 else data[::-1]
            size = bytes([len(out)]) if len(out) < 126 else b"\x7e" + len(out).to_bytes(2, "big")
            self.wfile.write(bytes([0x80 | kind]) + size + out)
        self.close_connection = True
    def log_message(self, *args): pass

PORT = int(sys.argv[1])
http.server.ThreadingHTTPServer(("0.0.0.0", PORT), Handler).serve_forever()
"""


def serve_inside(server: Server, made: dict[str, Any], port: int = 8000) -> None:
    envd(server, made, "POST", "/files?path=serve.py", files={"file": ("f", INSIDE.encode())})
    start = {"code": f"nohup python3 serve.py {port} >log 2>&1 &", "language": "bash"}
    assert envd(server, made, "POST", "/execute", json=start).status_code == 200
    end = time.monotonic() + 60
    while direct(server, made, port=port).status_code == 502:
        assert time.monotonic() < end
        time.sleep(0.05)


def direct(server: Server, made: dict[str, Any], path: str = "/", port: int = 8000, **options: Any) -> httpx.Response:
    """By the path, with the token of the sandbox's ports."""
    headers = {"E2B-Traffic-Access-Token": made["trafficAccessToken"], **options.pop("headers", {})}
    return httpx.get(f"{server.url}/p/{made['sandboxID']}/{port}{path}", headers=headers, timeout=30, **options)


def named(server: Server, made: dict[str, Any], path: str = "/", port: int = 8000, **options: Any) -> httpx.Response:
    """By the host name."""
    headers = {"Host": f"{port}-{made['sandboxID']}.localhost:{server.port}", **options.pop("headers", {})}
    return httpx.get(server.url + path, headers=headers, timeout=30, **options)


def link(server: Server, made: dict[str, Any], port: int = 8000, **wish: Any) -> dict[str, str]:
    answer = server.request("POST", f"/sandboxes/{made['sandboxID']}/ports/{port}", json=wish)
    assert answer.status_code == 201, answer.text
    given: dict[str, str] = answer.json()
    return given


@pytest.fixture(scope="module")
def made(server: Server) -> Iterator[dict[str, Any]]:
    made = server.create(timeout=7200)
    serve_inside(server, made)
    yield made
    server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


@pytest.fixture(scope="module")
def other(server: Server) -> Iterator[dict[str, Any]]:
    made = server.create(timeout=7200)
    yield made
    server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


def test_a_signed_link_by_path(server: Server, made: dict[str, Any]) -> None:
    url = link(server, made)["pathUrl"]
    assert url.startswith(f"{server.url}/p/{made['sandboxID']}/8000/?belljar=")
    with httpx.Client(follow_redirects=True, cookies={"session": "of the console"}, timeout=30) as client:
        answer = client.get(url + "&q=1")
        assert answer.status_code == 200
        seen = answer.json()
        assert seen["path"] == "/?q=1"
        assert "~" in str(answer.url)  # what the page refers to is below it, and needs no cookie
        below = client.get(answer.url.join("static/a%20b.js?x=%2F"))
        assert below.json()["path"] == "/static/a%20b.js?x=%2F"
    assert "cookie" not in seen["headers"]
    assert seen["headers"]["host"] == "localhost:8000"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "allow-same-origin" not in answer.headers["content-security-policy"]
    for name in ("set-cookie", "service-worker-allowed", "strict-transport-security"):
        assert name not in answer.headers


def test_a_signed_link_by_host_name(server: Server, made: dict[str, Any]) -> None:
    url = link(server, made)["url"]
    host = f"8000-{made['sandboxID']}.localhost:{server.port}"
    assert url.startswith(f"http://{host}/?belljar=")
    first = httpx.get(url.replace(host, f"127.0.0.1:{server.port}"), headers={"Host": host}, timeout=30)
    assert first.status_code == 303
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "Domain" not in cookie
    assert named(server, made, headers=from_elsewhere()).status_code == 403
    answer = named(server, made, "/x", headers={"Cookie": f"own=1; {cookie.partition(';')[0]}"})
    assert (answer.status_code, answer.json()["path"]) == (200, "/x")
    assert answer.json()["headers"]["cookie"] == "own=1"
    assert answer.headers["set-cookie"] == "guest=1; Path=/"
    assert answer.json()["headers"]["x-forwarded-host"] == host


def test_names_of_headers_are_spelled_as_usual(server: Server, made: dict[str, Any]) -> None:
    headers = {
        "E2B-Traffic-Access-Token": made["trafficAccessToken"],
        "x-own-header": "1",
        "Content-Type": "text/plain",
    }
    names = httpx.post(f"{server.url}/p/{made['sandboxID']}/8000/", headers=headers, content=b"x", timeout=30).json()[
        "names"
    ]
    usual = {"Host", "Content-Type", "Content-Length", "X-Own-Header", "X-Forwarded-Host", "X-Forwarded-Prefix"}
    assert usual <= set(names)
    assert len({name.lower() for name in names}) == len(names)


def test_bodies_and_redirects(server: Server, made: dict[str, Any]) -> None:
    headers = {"E2B-Traffic-Access-Token": made["trafficAccessToken"]}
    url = f"{server.url}/p/{made['sandboxID']}/8000"
    answer = httpx.post(f"{url}/form", headers=headers, content=b"x" * 300_000, timeout=30)
    assert (answer.json()["method"], len(answer.json()["body"])) == ("POST", 300_000)
    assert "e2b-traffic-access-token" not in json.dumps(answer.json())
    moved = httpx.get(f"{url}/redirect", headers=headers, timeout=30)
    assert (moved.status_code, moved.headers["location"]) == (302, f"/p/{made['sandboxID']}/8000/landed")
    bare = httpx.get(url, headers=headers, timeout=30)
    assert (bare.status_code, bare.headers["location"]) == (303, f"/p/{made['sandboxID']}/8000/")


def test_the_sdks_header_leads_to_a_port(server: Server, made: dict[str, Any]) -> None:
    headers = {"E2b-Sandbox-Id": made["sandboxID"], "E2b-Sandbox-Port": "8000"}
    assert httpx.get(f"{server.url}/a", headers=headers, timeout=30).status_code in (401, 403, 429)
    headers["E2B-Traffic-Access-Token"] = made["trafficAccessToken"]
    assert httpx.get(f"{server.url}/a", headers=headers, timeout=30).json()["path"] == "/a"


@pytest.mark.parametrize("form", ["path", "name"])
def test_websockets(server: Server, made: dict[str, Any], form: str) -> None:
    token = {"E2B-Traffic-Access-Token": made["trafficAccessToken"]}
    if form == "path":
        url = f"ws://127.0.0.1:{server.port}/p/{made['sandboxID']}/8000/ws"
        options: dict[str, Any] = {}
    else:
        url = f"ws://8000-{made['sandboxID']}.localhost:{server.port}/ws"
        options = {"sock": create_connection(("127.0.0.1", server.port))}
    with connect(url, additional_headers=token, proxy=None, open_timeout=60, **options) as socket:
        socket.send("hello")
        assert socket.recv(timeout=30) == "HELLO"
        socket.send(b"abc")
        assert socket.recv(timeout=30) == b"cba"
        socket.send("x" * 5000)
        assert socket.recv(timeout=30) == "X" * 5000


def test_a_websocket_needs_a_link_too(server: Server, made: dict[str, Any]) -> None:
    url = f"ws://127.0.0.1:{server.port}/p/{made['sandboxID']}/8000/ws"
    for headers in ({}, {"E2B-Traffic-Access-Token": "wrong"}):
        with pytest.raises(Exception, match="403"):
            connect(url, additional_headers={**headers, **from_elsewhere()}, proxy=None, open_timeout=60).close()
    token = link(server, made)["pathUrl"].partition("belljar=")[2]
    with connect(f"{url}?belljar={token}", proxy=None, open_timeout=60) as socket:
        socket.send("signed")
        assert socket.recv(timeout=30) == "SIGNED"


def test_public_previews_are_what_a_client_asked_for(server: Server) -> None:
    made = server.create(network={"allowPublicTraffic": True, "maskRequestHost": "masked.example.com:${PORT}"})
    serve_inside(server, made)
    seen = named(server, made, "/open").json()
    assert (seen["path"], seen["headers"]["host"]) == ("/open", "masked.example.com:8000")
    server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


# Attacks.


def test_links_hold_for_one_port_of_one_sandbox(server: Server, made: dict[str, Any], other: dict[str, Any]) -> None:
    token = link(server, made)["pathUrl"].partition("belljar=")[2]
    until, _, signature = token.partition(".")
    mine, theirs = made["sandboxID"], other["sandboxID"]
    for path in (
        f"/p/{mine}/8000/",
        f"/p/{mine}/8000~/",
        f"/p/{mine}/8001~{token}/",
        f"/p/{theirs}/8000~{token}/",
        f"/p/{mine}/8000~{int(until) + 1}.{signature}/",
        f"/p/{mine}/8000~{until}.{signature[:-1]}x/",
        f"/p/{mine}/8000~.{signature}/",
        f"/p/{mine}/8000~{until}/",
        f"/p/i{'0' * 24}/8000~{token}/",
    ):
        assert httpx.get(server.url + path, timeout=30).status_code in (403, 404, 429), path
    for wish in ({"seconds": 0}, {"seconds": -5}, {"seconds": 10**9}):
        assert server.request("POST", f"/sandboxes/{mine}/ports/8000", json=wish).status_code == 400
    for port in ("0", "65536", "x", "99999999"):
        assert server.request("POST", f"/sandboxes/{mine}/ports/{port}", json={}).status_code == 400


def test_another_tenant_gets_no_link_and_its_key_opens_nothing(server: Server, made: dict[str, Any]) -> None:
    stranger = server.new_key("peeping")
    path = f"/sandboxes/{made['sandboxID']}/ports/8000"
    assert server.request("POST", path, key=stranger, json={}).status_code == 404
    url = f"{server.url}/p/{made['sandboxID']}/8000/"
    assert httpx.get(url, headers={"X-API-KEY": stranger}, timeout=30).status_code in (401, 403, 429)
    assert httpx.get(url, headers={"X-API-KEY": server.key}, timeout=30).status_code == 200


def test_ports_are_the_sandboxs_own_not_the_hosts(server: Server, made: dict[str, Any], other: dict[str, Any]) -> None:
    """Neither the server's own port, nor what listens on this machine, nor another sandbox's port is reached."""
    for port in (server.port, 22, 1):
        assert direct(server, made, port=port).status_code == 502
    assert direct(server, other).status_code == 502  # port 8000 is the first one's
    for path in ("/@127.0.0.1:22/", "//127.0.0.1/", "/http://127.0.0.1/", "/%2e%2e/healthz"):
        answer = direct(server, made, path)
        assert answer.json()["headers"]["host"] == "localhost:8000"
    for port in (49983, 49999):
        assert direct(server, made, port=port).status_code == 502


def test_nothing_of_ours_reaches_the_guest(server: Server, made: dict[str, Any]) -> None:
    headers = {
        "X-API-KEY": server.key,
        "Authorization": f"Bearer {server.key}",
        "X-Access-Token": made["envdAccessToken"],
        "Cookie": "session=1",
        "X-Forwarded-Host": "forged",
        "Connection": "X-Private",
        "X-Private": "1",
    }
    answer = direct(server, made, headers=headers)
    assert answer.status_code == 200
    for secret in (server.key, made["envdAccessToken"], made["trafficAccessToken"], "session=1", "forged", "x-private"):
        assert secret not in answer.text
    kept = direct(server, made, headers={"Authorization": "Basic YTpi"})
    assert kept.json()["headers"]["authorization"] == "Basic YTpi"


def test_a_preview_is_not_the_api(server: Server, made: dict[str, Any]) -> None:
    """By a preview's host name nothing of the server's own answers: a page there is of another origin."""
    for path in ("/v2/sandboxes", "/healthz", "/metrics", "/"):
        answer = named(server, made, path, headers={"E2B-Traffic-Access-Token": made["trafficAccessToken"]})
        assert answer.json()["path"] == path
        assert named(server, made, path, headers={"X-API-KEY": "bj_" + "x" * 42}).status_code in (401, 403, 429)


def test_what_speaks_no_http_is_a_bad_gateway(server: Server, made: dict[str, Any]) -> None:
    code = (
        "import socket\ns = socket.socket(); s.bind(('0.0.0.0', 7000)); s.listen()\n"
        "while True:\n    c, _ = s.accept(); c.recv(10); c.sendall(b'SSH-2.0-x\\r\\n' * 50); c.close()\n"
    )
    envd(server, made, "POST", "/files?path=raw.py", files={"file": ("f", code.encode())})
    envd(server, made, "POST", "/execute", json={"code": "nohup python3 raw.py >/dev/null 2>&1 &", "language": "bash"})
    end = time.monotonic() + 60
    while "speaks no HTTP" not in (answer := direct(server, made, port=7000)).text:
        assert answer.status_code == 502
        assert time.monotonic() < end
        time.sleep(0.1)
