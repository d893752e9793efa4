"""Hostile clients: other tenants' ids and URLs, tricks with paths, bombs, malformed and endless requests."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.serving import Server
from tests.server.test_control import envd

JSON = {"Content-Type": "application/json"}
STREAM = {"Content-Type": "application/connect+json"}
CHECKOUT = str(Path(__file__).parents[2])


@pytest.fixture(autouse=True)
def _no_failure_of_ours(server: Server) -> Iterator[None]:
    yield
    assert [line for line in server.logged if '"trace"' in line] == []


@pytest.fixture(scope="module")
def victim(server: Server) -> Iterator[dict[str, Any]]:
    made = server.create(timeout=7200, metadata={"secret": "plans"})
    envd(server, made, "POST", "/files?path=secret.txt", files={"file": ("s", b"the secret")})
    yield made
    server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


@pytest.fixture(scope="module")
def stranger(server: Server) -> str:
    return server.new_key("stranger")


def envelope(message: Any) -> bytes:
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"\0" + len(data).to_bytes(4, "big") + data


def signature(path: str, operation: str, token: str, user: str = "", expiration: int | None = None) -> str:
    raw = f"{path}:{operation}:{user}:{token}" + ("" if expiration is None else f":{expiration}")
    return "v1_" + base64.b64encode(hashlib.sha256(raw.encode()).digest()).rstrip(b"=").decode()


def assert_silent(answer: httpx.Response) -> None:
    """Nothing of the host is in an answer."""
    for word in ("Traceback", "site-packages", CHECKOUT, "/root/.", "/tmp/pytest", "sqlite", "belljar/server"):
        assert word not in answer.text


# Other tenants.


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/timeout"),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/connect"),
        ("POST", "/fork"),
        ("POST", "/snapshots"),
        ("PUT", "/network"),
        ("GET", "/metrics"),
        ("GET", "/logs"),
    ],
)
def test_anothers_id_is_answered_as_one_that_never_was(
    server: Server, victim: dict[str, Any], stranger: str, method: str, path: str
) -> None:
    real, none = victim["sandboxID"], "i" + "0" * 24
    body = {"timeout": 1}
    answers = [server.request(method, f"/sandboxes/{number}{path}", key=stranger, json=body) for number in (real, none)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].text.replace(real, "X") == answers[1].text.replace(none, "X")
    assert server.request("GET", f"/sandboxes/{real}").json()["state"] == "running"


def test_lists_show_only_ones_own(server: Server, victim: dict[str, Any], stranger: str) -> None:
    for path in ("/sandboxes", "/v2/sandboxes", "/v2/sandboxes?metadata=secret%3Dplans", "/snapshots"):
        assert server.request("GET", path, key=stranger).json() == []
    answer = server.request("GET", f"/sandboxes/metrics?sandbox_ids={victim['sandboxID']}", key=stranger)
    assert answer.json() == {"sandboxes": {}}
    token = f"/v2/sandboxes?nextToken={victim['sandboxID']}"
    assert server.request("GET", token, key=stranger).status_code == 400


def test_anothers_snapshot_is_no_template(server: Server, victim: dict[str, Any], stranger: str) -> None:
    taken = server.request("POST", f"/sandboxes/{victim['sandboxID']}/snapshots", json={"name": "private"}).json()
    for template in (taken["snapshotID"], "private"):
        wish = {"templateID": template}
        assert server.request("POST", "/v2/sandboxes", key=stranger, json=wish).status_code == 404
        assert server.request("DELETE", f"/templates/{template}", key=stranger).status_code == 404
    assert server.request("DELETE", "/templates/private").status_code == 204


def test_idempotency_keys_are_a_tenants_own(server: Server, stranger: str) -> None:
    headers = {"Idempotency-Key": "shared"}
    mine, theirs = (
        server.request("POST", "/v2/sandboxes", key=key, json={"templateID": "base"}, headers=headers).json()[
            "sandboxID"
        ]
        for key in (server.key, stranger)
    )
    assert mine != theirs
    server.request("DELETE", f"/sandboxes/{mine}")
    server.request("DELETE", f"/sandboxes/{theirs}", key=stranger)


# Tokens and signatures.


@pytest.mark.parametrize("path", ["/health", "/files?path=secret.txt", "/contexts"])
@pytest.mark.parametrize("trick", ["none", "wrong", "other", "key", "unknown id", "empty"])
def test_a_sandbox_needs_its_own_token(server: Server, victim: dict[str, Any], path: str, trick: str) -> None:
    other = server.create()
    number = victim["sandboxID"] if trick != "unknown id" else "i" + "z" * 24
    token = {"none": None, "wrong": "x" * 43, "other": other["envdAccessToken"], "key": server.key, "empty": ""}.get(
        trick, victim["envdAccessToken"]
    )
    headers = {"E2b-Sandbox-Id": number} | ({} if token is None else {"X-Access-Token": token})
    answer = httpx.get(server.url + path, headers=headers, timeout=30)
    assert answer.status_code in (401, 429)
    assert_silent(answer)
    server.request("DELETE", f"/sandboxes/{other['sandboxID']}")


def test_a_token_is_no_key_and_the_ports_token_opens_no_files(server: Server, victim: dict[str, Any]) -> None:
    assert server.request("GET", "/v2/sandboxes", key=victim["envdAccessToken"]).status_code in (401, 429)
    headers = {"E2b-Sandbox-Id": victim["sandboxID"], "E2B-Traffic-Access-Token": victim["trafficAccessToken"]}
    assert httpx.get(f"{server.url}/contexts", headers=headers, timeout=30).status_code == 200
    assert httpx.get(f"{server.url}/files?path=secret.txt", headers=headers, timeout=30).status_code in (401, 429)


def test_signatures_hold_for_one_thing_only(own: Server) -> None:
    made = own.create()
    envd(own, made, "POST", "/files?path=a", files={"file": ("s", b"one")})
    envd(own, made, "POST", "/files?path=b", files={"file": ("s", b"two")})
    token, now = made["envdAccessToken"], int(time.time())

    def ask(**query: Any) -> httpx.Response:
        return httpx.get(f"{own.url}/files", params=query, timeout=30)

    assert ask(path="a", signature=signature("a", "read", token)).text == "one"
    until = now + 60
    assert ask(path="a", signature=signature("a", "read", token, "", until), signature_expiration=until).text == "one"
    past = now - 5
    for query in (
        {"path": "b", "signature": signature("a", "read", token)},
        {"path": "a", "signature": signature("a", "write", token)},
        {"path": "a", "signature": signature("a", "read", token), "username": "root"},
        {"path": "a", "signature": signature("a", "read", token, "", past), "signature_expiration": past},
        {"path": "a", "signature": signature("a", "read", token, "", past), "signature_expiration": until},
        {"path": "a", "signature": signature("a", "read", token, "", until)},
        {"path": "a", "signature": signature("a", "read", token), "signature_expiration": until},
        {"path": "a", "signature": signature("a", "read", "x" * 43)},
        {"path": "a", "signature": ""},
        {"path": "a", "signature": "v1_é"},
    ):
        assert ask(**query).status_code == 401, query
    upload = httpx.post(
        f"{own.url}/files",
        params={"path": "a", "signature": signature("a", "read", token)},
        files={"file": b"x"},
        timeout=30,
    )
    assert upload.status_code == 401
    assert envd(own, made, "GET", "/files?path=a").text == "one"


def test_guessing_keys_is_slowed_down(own: Server) -> None:
    made = own.create()
    with httpx.Client(timeout=30) as client:
        answers = [
            client.get(f"{own.url}/v2/sandboxes", headers={"X-API-KEY": f"bj_{i:042d}"}).status_code for i in range(100)
        ]
    assert answers[:30] == [401] * 30
    assert answers.count(429) > 50
    wrong = {"E2b-Sandbox-Id": made["sandboxID"], "X-Access-Token": "x"}
    assert httpx.get(f"{own.url}/health", headers=wrong, timeout=30).status_code == 429
    assert own.request("GET", "/v2/sandboxes").status_code == 200  # nobody is locked out
    assert envd(own, made, "GET", "/health").status_code == 204


# Paths.


@pytest.mark.parametrize(
    "path",
    [
        "../../../../../../../../{host}",
        "/{host}",
        "/proc/1/root/{host}",
        "/proc/self/root/{host}",
        "/proc/self/cwd/../../../{host}",
        "~/../../{host}",
        "//{host}",
        "/home/user/link/{host}",
        "/dev/fd/0/{host}",
        "file:///{host}",
    ],
)
def test_no_path_leads_to_the_host(server: Server, victim: dict[str, Any], tmp_path: Path, path: str) -> None:
    secret = tmp_path / "host-secret"
    secret.write_text("of the host")
    where = path.format(host=str(secret).lstrip("/"))
    headers = {"X-Access-Token": victim["envdAccessToken"], "E2b-Sandbox-Id": victim["sandboxID"]}
    answer = httpx.get(f"{server.url}/files", params={"path": where}, headers=headers, timeout=30)
    assert answer.status_code in (400, 404)
    assert "of the host" not in answer.text
    httpx.post(
        f"{server.url}/files", params={"path": where}, headers=headers, files={"file": b"overwritten"}, timeout=30
    )
    assert secret.read_text() == "of the host"
    body = json.dumps({"path": where}).encode()
    for method in ("Stat", "ListDir", "Remove"):
        envd(server, victim, "POST", f"/filesystem.Filesystem/{method}", content=body, headers=JSON)
    assert secret.read_text() == "of the host"


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "a/" * 3000, "~root/x", "~mallory"])
def test_paths_that_are_none(server: Server, victim: dict[str, Any], path: str) -> None:
    headers = {"X-Access-Token": victim["envdAccessToken"], "E2b-Sandbox-Id": victim["sandboxID"]}
    answer = httpx.get(f"{server.url}/files", params={"path": path}, headers=headers, timeout=30)
    assert answer.status_code == 400
    assert_silent(answer)


def test_names_of_files_make_no_headers(server: Server, victim: dict[str, Any]) -> None:
    name = 'a"\r\nX-Injected: yes\r\n\r\n<script>'
    headers = {"X-Access-Token": victim["envdAccessToken"], "E2b-Sandbox-Id": victim["sandboxID"]}
    put = {"Content-Type": "application/octet-stream"} | headers
    assert (
        httpx.post(f"{server.url}/files", params={"path": name}, headers=put, content=b"x", timeout=30).status_code
        == 200
    )
    answer = httpx.get(f"{server.url}/files", params={"path": name}, headers=headers, timeout=30)
    assert answer.status_code == 200
    assert "x-injected" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == "application/octet-stream"


# Bombs.


@pytest.mark.parametrize(
    "data", [b"[" * 200_000, b'{"templateID":' * 50_000, b'{"a":[' * 100_000, b'"' + b"\\" * 99_999]
)
def test_deep_json_is_refused(server: Server, victim: dict[str, Any], data: bytes) -> None:
    assert server.request("POST", "/v2/sandboxes", content=data, headers=JSON).status_code == 400
    calls = ("/filesystem.Filesystem/Stat", "/process.Process/SendInput")
    for path in calls:
        answer = envd(server, victim, "POST", path, content=data, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument")
    assert envd(server, victim, "POST", "/execute", content=data, headers=JSON).status_code == 422
    start = envd(server, victim, "POST", "/process.Process/Start", content=envelope(data), headers=STREAM)
    assert b"invalid_argument" in start.content


def test_large_bodies_are_refused(server: Server, victim: dict[str, Any]) -> None:
    big = b'{"templateID": "' + b"x" * (2 << 20) + b'"}'
    assert server.request("POST", "/v2/sandboxes", content=big, headers=JSON).status_code == 413
    huge = b'{"path": "' + b"x" * (17 << 20) + b'"}'
    answer = envd(server, victim, "POST", "/filesystem.Filesystem/Stat", content=huge, headers=JSON)
    assert answer.status_code == 413
    promised = b"\0\xff\xff\xff\xff" + b"x"
    answer = envd(server, victim, "POST", "/process.Process/Start", content=promised, headers=STREAM)
    assert b"resource_exhausted" in answer.content


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\0\0\0\0\5{}", b"\1\0\0\0\2{}", b"\2\0\0\0\2{}", b"\0\0\0\0\2[]", b"\0\0\0\0\2{}" * 3],
)
def test_malformed_streams_are_answered(server: Server, victim: dict[str, Any], data: bytes) -> None:
    for path in ("/process.Process/Start", "/process.Process/Connect", "/filesystem.Filesystem/WatchDir"):
        answer = envd(server, victim, "POST", path, content=data, headers={**STREAM, "Connect-Timeout-Ms": "300"})
        assert answer.status_code == 200
        assert answer.content[0] in (0, 2)
        assert_silent(answer)


@pytest.mark.slow
def test_packed_uploads_unpack_only_to_what_there_is_room_for(tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text("[limits]\nfile_bytes = 8_000_000\n")
    server = Server(tmp_path, "--config", str(config))
    try:
        made = server.create()
        bomb = gzip.compress(bytes(200_000_000), 1)
        headers = {"Content-Type": "application/octet-stream", "Content-Encoding": "gzip"}
        answer = envd(server, made, "POST", "/files?path=bomb", content=bomb, headers=headers)
        assert answer.status_code == 507
        for body in (b"no gzip", bomb[:1000]):
            answer = envd(server, made, "POST", "/files?path=other", content=body, headers=headers)
            assert answer.status_code in (400, 507)
        assert envd(server, made, "GET", "/health").status_code == 204
    finally:
        server.stop()


# HTTP itself.


def raw(server: Server, data: bytes, seconds: float = 30.0) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as connection:
        connection.sendall(data)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        parts = []
        with suppress(OSError):
            while part := connection.recv(65536):
                parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 44\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 5 5\r\n",
        b"Content-Length: +5\r\n",
        b"X-Bad\r\n",
        b"X: a\r\n b: c\r\n\0: d\r\n",
    ],
)
def test_ambiguous_requests_are_not_followed_by_another(server: Server, head: bytes) -> None:
    """A body that is read in two ways would smuggle the second request."""
    smuggled = b"GET /healthz?smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = raw(server, b"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n0\r\n\r\n" + smuggled)
    assert b" 200 " not in answer
    assert answer.count(b"HTTP/1.1") <= 1


def test_too_many_headers_and_too_long_a_target(server: Server) -> None:
    assert (
        httpx.get(f"{server.url}/healthz", headers={f"x-{i}": "1" for i in range(150)}, timeout=30).status_code == 431
    )
    assert httpx.get(f"{server.url}/healthz?{'x' * 20_000}", timeout=30).status_code == 414
    assert raw(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200_000).startswith(b"HTTP/1.1 4")


def test_half_a_request_holds_nobody_up(server: Server) -> None:
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
    try:
        for number, connection in enumerate(sockets):
            connection.sendall(b"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Le"[: number % 50])
        assert httpx.get(f"{server.url}/healthz", timeout=30).status_code == 200
    finally:
        for connection in sockets:
            connection.close()


def _memory(server: Server) -> int:
    assert server.process is not None
    fields = Path(f"/proc/{server.process.pid}/statm").read_text().split()
    return int(fields[1]) * 4096


def test_a_reader_that_does_not_read_fills_no_memory(server: Server, victim: dict[str, Any]) -> None:
    write = "line=$(head -c 30000 /dev/zero | tr '\\0' x); while echo $line; do echo $((count += 1)) >written; done"
    start = {"process": {"cmd": "/bin/bash", "args": ["-c", write]}}
    body = envelope(start)
    lines = [
        "POST /process.Process/Start HTTP/1.1",
        "Host: x",
        "Content-Type: application/connect+json",
        f"Content-Length: {len(body)}",
        f"E2b-Sandbox-Id: {victim['sandboxID']}",
        f"X-Access-Token: {victim['envdAccessToken']}",
    ]
    before = _memory(server)
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        end, seen, looks = time.monotonic() + 60, "", 0
        while looks < 10:  # until the process is held back
            assert time.monotonic() < end
            time.sleep(0.05)
            now = envd(server, victim, "GET", "/files?path=written").text
            looks = looks + 1 if now == seen and now.strip().isdigit() else 0
            seen = now
            assert _memory(server) - before < 64 << 20
        assert envd(server, victim, "GET", "/files?path=secret.txt").text == "the secret"
    listed = envd(server, victim, "POST", "/process.Process/List", content=b"{}", headers=JSON).json()["processes"]
    for process in listed:
        kill = {"process": {"pid": process["pid"]}, "signal": "SIGNAL_SIGKILL"}
        envd(server, victim, "POST", "/process.Process/SendSignal", json=kill)


def test_a_client_that_goes_away_during_an_upload(server: Server, victim: dict[str, Any]) -> None:
    lines = [
        "POST /files?path=half HTTP/1.1",
        "Host: x",
        "Content-Type: application/octet-stream",
        "Content-Length: 100000000",
        f"E2b-Sandbox-Id: {victim['sandboxID']}",
        f"X-Access-Token: {victim['envdAccessToken']}",
    ]
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + b"x" * 300_000)
    assert envd(server, victim, "GET", "/files?path=secret.txt").text == "the secret"
    assert not [line for line in server.logged if "a request failed" in line]


@pytest.mark.slow
def test_streams_are_counted(own: Server) -> None:
    own.cli("key", "quota", "default", "--streams", "3")
    made = own.create()
    body = envelope({"process": {"cmd": "/bin/sleep", "args": ["1000"]}})
    headers = {**STREAM, "E2b-Sandbox-Id": made["sandboxID"], "X-Access-Token": made["envdAccessToken"]}
    url = f"{own.url}/process.Process/Start"
    with ExitStack() as streams:
        opened = [httpx.stream("POST", url, content=body, headers=headers, timeout=30) for _ in range(3)]
        heard = [streams.enter_context(each).iter_bytes() for each in opened]  # one that is dropped closes its stream
        assert all(b"start" in next(events) for events in heard)
        for _ in range(2):
            assert b"resource_exhausted" in httpx.post(url, content=body, headers=headers, timeout=30).content
    started = envd(own, made, "POST", "/process.Process/List", content=b"{}", headers=JSON).json()["processes"]
    assert len(started) == 3  # what is refused does not run
