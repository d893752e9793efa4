"""The control API by itself: answers, shapes and codes; timeouts, quotas, keys; health and metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from belljar.server.database_host import Database
from tests.server.serving import Server, from_elsewhere


def envd(server: Server, made: dict[str, Any], method: str, path: str, **options: Any) -> httpx.Response:
    headers = {"E2b-Sandbox-Id": made["sandboxID"], "X-Access-Token": made["envdAccessToken"]}
    return httpx.request(method, server.url + path, headers=headers | options.pop("headers", {}), timeout=30, **options)


def until(holds: Callable[[], Any], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def state(server: Server, made: dict[str, Any]) -> str:
    answer = server.request("GET", f"/sandboxes/{made['sandboxID']}")
    return str(answer.json().get("state", answer.status_code))


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v2/sandboxes", {}, 400),
        ("POST", "/v2/sandboxes", {"templateID": 5}, 400),
        ("POST", "/v2/sandboxes", {"templateID": "base", "timeout": -1}, 400),
        ("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 10**7}, 400),
        ("POST", "/v2/sandboxes", {"templateID": "base", "envVars": {"A=B": "x"}}, 400),
        ("POST", "/v2/sandboxes", {"templateID": "base", "metadata": {"a": "b" * 70_000}}, 400),
        ("POST", "/v2/sandboxes", {"templateID": "../../etc", "timeout": 5}, 404),
        ("POST", "/v2/sandboxes", {"templateID": "sha256:" + "0" * 64}, 404),
        ("POST", "/v2/sandboxes", {"templateID": "base", "volumeMounts": [{"name": "v", "path": "/v"}]}, 404),
        ("POST", "/v2/sandboxes", {"templateID": "base", "network": {"allowOut": ["example.com"]}}, 403),
        ("POST", "/v2/sandboxes", {"templateID": "base", "network": {"dnsServers": ["9.9.9.9"]}}, 400),
        ("POST", "/v2/sandboxes", {"templateID": "base", "network": {"rules": {"a host/": [{}]}}}, 400),
        ("POST", "/v2/sandboxes", {"templateID": "base", "autoPause": False, "autoPauseMemory": False}, 400),
        ("GET", "/sandboxes/nosuchsandbox", None, 404),
        ("GET", "/sandboxes/Bad.Id", None, 400),
        ("DELETE", "/sandboxes/nosuchsandbox", None, 404),
        ("POST", "/sandboxes/nosuchsandbox/timeout", {"timeout": 5}, 404),
        ("POST", "/sandboxes/nosuchsandbox/pause", {}, 404),
        ("POST", "/v2/sandboxes/nosuchsandbox/connect", {}, 404),
        ("POST", "/sandboxes/nosuchsandbox/snapshots", {}, 404),
        ("GET", "/v2/sandboxes?state=sleeping", None, 400),
        ("GET", "/v2/sandboxes?limit=0", None, 400),
        ("GET", "/v2/sandboxes?limit=x", None, 400),
        ("GET", "/v2/sandboxes?nextToken=unknown", None, 400),
        ("GET", "/v2/sandboxes?order=up", None, 400),
        ("GET", "/v2/sandboxes?startedAfter=yesterday", None, 400),
        ("DELETE", "/templates/unknown", None, 404),
        ("GET", "/nothing/here", None, 404),
        ("PATCH", "/v2/sandboxes", {}, 405),
    ],
)
def test_wrong_calls_have_a_code_and_a_message(server: Server, method: str, path: str, body: Any, status: int) -> None:
    answer = server.request(method, path, json=body)
    assert answer.status_code == status
    assert answer.json()["code"] == status
    assert isinstance(answer.json()["message"], str)
    assert answer.headers["x-request-id"]


def test_what_a_sandbox_says_of_itself(server: Server) -> None:
    made = server.create(timeout=77, metadata={"k": "v"})
    assert set(made) >= {"sandboxID", "templateID", "clientID", "envdVersion", "envdAccessToken"}
    shown = server.request("GET", f"/sandboxes/{made['sandboxID']}").json()
    assert shown["state"] == "running"
    assert shown["metadata"] == {"k": "v"}
    assert shown["lifecycle"] == {"autoResume": True, "onTimeout": "pause"}
    assert shown["envdAccessToken"] == made["envdAccessToken"]
    assert server.request("DELETE", f"/sandboxes/{made['sandboxID']}").status_code == 204
    assert server.request("DELETE", f"/sandboxes/{made['sandboxID']}").status_code == 404


def test_pages(server: Server) -> None:
    made = [server.create(metadata={"test": "pages"})["sandboxID"] for _ in range(5)]
    seen: list[str] = []
    token = ""
    while True:
        answer = server.request("GET", f"/v2/sandboxes?metadata=test%3Dpages&limit=2&order=asc{token}")
        seen += [each["sandboxID"] for each in answer.json()]
        if "x-next-token" not in answer.headers:
            break
        token = f"&nextToken={answer.headers['x-next-token']}"
    assert seen == made
    for number in made:
        server.request("DELETE", f"/sandboxes/{number}")


def test_an_idempotency_key_makes_one_sandbox(server: Server) -> None:
    def create() -> str:
        headers = {"Idempotency-Key": "once-1"}
        return str(
            server.request("POST", "/v2/sandboxes", json={"templateID": "base"}, headers=headers).json()["sandboxID"]
        )

    first = create()
    assert create() == first
    server.request("DELETE", f"/sandboxes/{first}")
    second = create()
    assert second != first
    server.request("DELETE", f"/sandboxes/{second}")


def test_a_timeout_pauses_or_ends(server: Server) -> None:
    kept = server.create(timeout=1)
    ended = server.create(timeout=1, autoPause=False)
    assert envd(server, kept, "POST", "/files?path=a", files={"file": ("a", b"x")}).status_code == 200
    until(lambda: state(server, kept) == "paused")
    until(lambda: state(server, ended) == "404")
    assert envd(server, kept, "GET", "/health").status_code == 502
    longer = server.request("POST", f"/sandboxes/{kept['sandboxID']}/refreshes", json={"duration": 300})
    assert longer.status_code == 204
    assert envd(server, kept, "GET", "/files?path=a").text == "x"  # it goes on by itself
    assert envd(server, kept, "GET", "/health").status_code == 204
    server.request("DELETE", f"/sandboxes/{kept['sandboxID']}")


def test_a_sandbox_that_is_not_to_go_on_by_itself_does_not(server: Server) -> None:
    made = server.create(autoPause=True, autoResume={"enabled": False})
    assert server.request("POST", f"/sandboxes/{made['sandboxID']}/pause", json={}).status_code == 204
    answer = envd(server, made, "GET", "/files?path=a")
    assert (answer.status_code, answer.json()["message"]) == (502, "The sandbox was not found")
    assert server.request("POST", f"/sandboxes/{made['sandboxID']}/resume", json={}).status_code == 201
    assert server.request("POST", f"/sandboxes/{made['sandboxID']}/resume", json={}).status_code == 409
    server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


def test_named_snapshots_are_templates(server: Server) -> None:
    made = server.create()
    envd(server, made, "POST", "/files?path=a", files={"file": ("a", b"in the snapshot")})
    path = f"/sandboxes/{made['sandboxID']}/snapshots"
    taken = server.request("POST", path, json={"name": "my-snap"})
    assert (taken.status_code, taken.json()["names"]) == (201, ["my-snap"])
    assert server.request("POST", path, json={"name": "my-snap"}).status_code == 409
    assert server.request("POST", path, json={"name": "Bad Name"}).status_code == 400
    other = server.create(templateID="my-snap")
    assert envd(server, other, "GET", "/files?path=a").text == "in the snapshot"
    assert [each["names"] for each in server.request("GET", "/snapshots?name=my-snap").json()] == [["my-snap"]]
    assert server.request("DELETE", "/templates/my-snap").status_code == 204
    for each in (made, other):
        server.request("DELETE", f"/sandboxes/{each['sandboxID']}")


def test_quotas(server: Server) -> None:
    tenant = f"small-{time.monotonic_ns()}"
    key = server.new_key(tenant)
    server.cli("key", "quota", tenant, "--sandboxes", "2", "--execs-per-minute", "2")
    wish = {"templateID": "base"}
    made = [server.request("POST", "/v2/sandboxes", key=key, json=wish) for _ in range(3)]
    assert [answer.status_code for answer in made] == [201, 201, 429]
    headers = {"Content-Type": "application/json"}
    body = json.dumps({"code": ":", "language": "bash"})  # quick: every half minute one more is allowed
    runs = [envd(server, made[0].json(), "POST", "/execute", content=body, headers=headers) for _ in range(5)]
    assert [run.status_code for run in runs] == [200, 200, 429, 429, 429]
    server.request("DELETE", f"/sandboxes/{made[0].json()['sandboxID']}", key=key)
    again = server.request("POST", "/v2/sandboxes", key=key, json=wish)
    assert again.status_code == 201
    for answer in (made[1], again):
        server.request("DELETE", f"/sandboxes/{answer.json()['sandboxID']}", key=key)


def test_what_a_tenant_may_keep(server: Server) -> None:
    key = server.new_key("modest")
    server.cli("key", "quota", "modest", "--kept", "1")

    def create(**wish: Any) -> str:
        answer = server.request("POST", "/v2/sandboxes", key=key, json={"templateID": "base", **wish})
        return str(answer.json()["sandboxID"])

    one, two = create(), create()
    assert server.request("POST", f"/sandboxes/{one}/pause", key=key, json={}).status_code == 204
    assert server.request("POST", f"/sandboxes/{two}/pause", key=key, json={}).status_code == 429
    assert server.request("POST", f"/sandboxes/{two}/snapshots", key=key, json={}).status_code == 429
    server.request("POST", f"/sandboxes/{two}/timeout", key=key, json={"timeout": 0})
    until(lambda: server.request("GET", f"/sandboxes/{two}", key=key).status_code == 404)
    assert server.request("DELETE", f"/sandboxes/{one}", key=key).status_code == 204


def test_keys_are_made_listed_and_revoked(server: Server) -> None:
    key = server.new_key("acme", "--name", "ci")
    assert server.request("GET", "/v2/sandboxes", key=key).status_code == 200
    listed = json.loads(server.cli("key", "list", "--json").stdout)
    (mine,) = [each for each in listed if each["name"] == "ci"]
    assert mine["tenant"] == "acme"
    assert key not in json.dumps(listed)
    server.cli("key", "revoke", mine["id"])
    assert server.request("GET", "/v2/sandboxes", key=key, headers=from_elsewhere()).status_code == 401
    assert server.request("GET", "/v2/sandboxes").status_code == 200


def test_bearer_tokens_are_keys_too(server: Server) -> None:
    answer = httpx.get(f"{server.url}/v2/sandboxes", headers={"Authorization": f"Bearer {server.key}"}, timeout=30)
    assert answer.status_code == 200


def test_health_and_metrics(server: Server) -> None:
    assert httpx.get(f"{server.url}/healthz", timeout=30).json() == {"status": "ok"}
    until(lambda: httpx.get(f"{server.url}/readyz", timeout=30).status_code == 200)
    made = server.create()
    text = httpx.get(f"{server.url}/metrics", timeout=30).text
    assert 'belljar_requests_total{method="POST",route="/v2/sandboxes",status="201"}' in text
    assert 'belljar_sandboxes{state="running"}' in text
    assert made["sandboxID"] not in text
    far = {"X-Forwarded-For": "203.0.113.5"}
    assert httpx.get(f"{server.url}/metrics", headers=far, timeout=30).status_code == 401
    tenant = server.new_key("nosy")
    assert httpx.get(f"{server.url}/metrics", headers={**far, "X-API-KEY": tenant}, timeout=30).status_code == 403
    assert httpx.get(f"{server.url}/metrics", headers={**far, "X-API-KEY": server.key}, timeout=30).status_code == 200
    server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


def test_a_request_id_is_in_the_answer_and_the_log(server: Server) -> None:
    assert server.request("GET", "/healthz", headers={"X-Request-Id": "mine-123"}).headers["x-request-id"] == "mine-123"
    until(lambda: any('"request": "mine-123"' in line for line in server.logged))
    forged = server.request("GET", "/healthz", headers={"X-Request-Id": 'x", "level": "fatal'})
    assert forged.headers["x-request-id"] != 'x", "level": "fatal'
    assert all(isinstance(json.loads(line), dict) for line in server.logged)


def test_usage_and_audit_are_kept(own: Server) -> None:
    made = own.create()
    envd(own, made, "POST", "/files?path=a", files={"file": ("a", b"x" * 5000)})
    envd(own, made, "GET", "/files?path=a")
    envd(own, made, "POST", "/execute", json={"code": "echo", "language": "bash"})
    number = own.request("DELETE", f"/sandboxes/{made['sandboxID']}").headers["x-request-id"]
    own.stop()
    database = Database(str(own.directory / "store.db.server.db"))
    usage = {name: amount for _, _, name, amount in database.usage("default")}
    assert usage["execs"] == 1
    assert usage["bytes_out"] == 5000
    assert usage["bytes_in"] > 5000
    lines = database.audited("default")
    assert [line[4] for line in lines] == ["kill", "create"]
    assert {line[5] for line in lines} == {made["sandboxID"]}
    assert lines[0][3] == number
    database.close()


def test_parts_of_files(server: Server) -> None:
    made = server.create()
    envd(server, made, "POST", "/files?path=r", files={"file": ("r", bytes(range(100)))})
    for text, expected in (("bytes=0-9", range(10)), ("bytes=90-", range(90, 100)), ("bytes=-5", range(95, 100))):
        answer = envd(server, made, "GET", "/files?path=r", headers={"Range": text})
        assert (answer.status_code, answer.content) == (206, bytes(expected))
    assert envd(server, made, "GET", "/files?path=r", headers={"Range": "bytes=100-"}).status_code == 416
    assert envd(server, made, "GET", "/files?path=r", headers={"Range": "lines=1"}).content == bytes(range(100))
    server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


def test_files_without_a_size_are_read_to_their_end(server: Server) -> None:
    made = server.create()
    for coding in ("identity", "gzip"):
        headers = {"Accept-Encoding": coding}
        assert envd(server, made, "GET", "/files?path=/proc/version", headers=headers).text.startswith("Linux version ")
    envd(server, made, "POST", "/files?path=empty", files={"file": ("empty", b"")})
    answer = envd(server, made, "GET", "/files?path=empty")
    assert (answer.content, answer.headers["content-length"]) == (b"", "0")


def test_wrong_calls_to_a_sandbox(server: Server) -> None:
    made = server.create()
    for path, body, status, code in (
        ("/filesystem.Filesystem/Stat", b"{", 400, "invalid_argument"),
        ("/filesystem.Filesystem/Stat", b'{"path": 5}', 400, "invalid_argument"),
        ("/filesystem.Filesystem/GetWatcherEvents", b'{"watcherId": "w"}', 404, "not_found"),
        ("/process.Process/SendSignal", b'{"process": {}, "signal": "SIGNAL_SIGKILL"}', 501, "unimplemented"),
        ("/process.Process/SendSignal", b'{"process": {"pid": 9}, "signal": "SIGNAL_SIGKILL"}', 404, "not_found"),
        ("/process.Process/SendInput", b'{"process": {"tag": "t"}, "input": {"stdin": ""}}', 404, "not_found"),
    ):
        answer = envd(server, made, "POST", path, content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert envd(server, made, "POST", "/files", content=b"x").status_code == 400
    headers = {"Content-Type": "application/octet-stream"}
    assert envd(server, made, "POST", "/files", content=b"x", headers=headers).status_code == 400
    broken = {"Content-Type": "multipart/form-data; boundary=b"}
    assert envd(server, made, "POST", "/files", content=b"--b\r\nhm", headers=broken).status_code == 400
    assert envd(server, made, "POST", "/execute", content=b"{}").status_code == 422
    assert envd(server, made, "DELETE", "/contexts/none").status_code == 404
    server.request("DELETE", f"/sandboxes/{made['sandboxID']}")
