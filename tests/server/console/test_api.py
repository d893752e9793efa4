"""The calls of the console's page: what each gives, and what it does to a sandbox."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from belljar.server.console.api import allow_pattern
from belljar.server.console.processes import parse_process
from tests.server.console.client import API, OURS, Page
from tests.server.serving import Server
from tests.server.test_control import until


def test_the_page_is_there(served: Server) -> None:
    answer = httpx.get(served.url, timeout=30)
    assert answer.status_code == 200
    (script,) = re.findall(r'<script type="module" nonce="[\w-]+" src="(/console/assets/[\w.-]+)"', answer.text)
    (style,) = re.findall(r'href="(/console/assets/[\w.-]+\.css)"', answer.text)
    for path, kind in ((script, "text/javascript"), (style, "text/css")):
        got = httpx.get(served.url + path, timeout=30)
        assert got.status_code == 200
        assert got.headers["content-type"].startswith(kind)
        assert "immutable" in got.headers["cache-control"]
        assert got.headers["content-encoding"] == "gzip"


def test_the_start_says_where_it_is_and_signs_in_once(own: Server) -> None:
    (link,) = re.findall(r"Console: (\S+)", "".join(own.said))
    url, token = link.split("/#sign-in=")
    assert url == own.url
    with httpx.Client(base_url=own.url, headers=OURS, timeout=30) as client:
        answer = client.post(f"{API}/session", json={"token": token})
        assert answer.status_code == 201
        assert answer.json()["key"]["name"] == "first"
        assert client.get(f"{API}/session").json()["tenant"] == "default"
        assert httpx.post(f"{own.url}{API}/session", json={"token": token}, headers=OURS, timeout=30).status_code == 401


def test_nobody_is_signed_in_at_first(served: Server) -> None:
    assert httpx.get(f"{served.url}{API}/session", timeout=30).json() is None
    assert httpx.get(f"{served.url}{API}/sandboxes", timeout=30).status_code == 401


def test_signing_out_ends_the_session(served: Server) -> None:
    page = Page(served)
    cookie = page.cookie
    assert page.ask("DELETE", "/session").status_code == 204
    assert httpx.get(f"{served.url}{API}/sandboxes", headers={"Cookie": cookie}, timeout=30).status_code == 401


def test_a_revoked_key_ends_its_sessions(served: Server) -> None:
    key = served.new_key("default", "--name", "short")
    page = Page(served, key)
    page.get("/sandboxes")
    served.cli("key", "revoke", key)
    assert page.ask("GET", "/sandboxes").status_code == 401


def test_a_sandbox_lives(page: Page) -> None:
    number = page.create(metadata={"name": "short-lived"})
    (mine,) = [each for each in page.get("/sandboxes")["sandboxes"] if each["id"] == number]
    assert (mine["name"], mine["state"], mine["from"]) == ("short-lived", "running", "base")
    assert mine["sample"]["memory"] > 0
    assert page.ask("POST", f"/sandboxes/{number}/pause").status_code == 204
    assert page.get(f"/sandboxes/{number}")["state"] == "paused"
    assert page.ask("POST", f"/sandboxes/{number}/resume", {"timeout": 600}).status_code == 201
    assert page.get(f"/sandboxes/{number}")["state"] == "running"
    assert page.ask("DELETE", f"/sandboxes/{number}").status_code == 204
    assert page.ask("GET", f"/sandboxes/{number}").status_code == 404


def test_files(page: Page, sandbox: str) -> None:
    path = f"/sandboxes/{sandbox}"
    assert page.ask("POST", f"{path}/directory?path=/home/user/f").status_code == 204
    assert page.write(sandbox, "/home/user/f/ä b.txt", b"one").status_code == 200
    (entry,) = page.get(f"{path}/entries", path="/home/user/f")["entries"]
    assert (entry["name"], entry["kind"], entry["size"]) == ("ä b.txt", "file", 3)
    got = page.ask("GET", f"{path}/file?path=/home/user/f/ä b.txt")
    assert got.content == b"one"
    assert got.headers["content-disposition"] == "attachment; filename*=utf-8''%C3%A4%20b.txt"
    moved = {"path": "/home/user/f/ä b.txt", "to": "/home/user/f/c"}
    assert page.ask("POST", f"{path}/rename", moved).status_code == 204
    assert page.ask("DELETE", f"{path}/file?path=/home/user/f/c").status_code == 204
    assert page.get(f"{path}/entries", path="/home/user/f")["entries"] == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/entries?path=/nowhere", 404),
        ("GET", "/entries?path=/etc/passwd", 404),
        ("GET", "/file?path=/nowhere", 404),
        ("GET", "/file?path=/etc", 400),
        ("POST", "/directory?path=/etc", 409),
        ("DELETE", "/file?path=/", 400),
        ("DELETE", "/file?path=/nowhere", 404),
        ("GET", "/entries?path=/x%00y", 400),
        ("POST", "/processes/99999/signal", 409),
    ],
)
def test_a_wrong_call_is_told_why(page: Page, sandbox: str, method: str, path: str, status: int) -> None:
    answer = page.ask(method, f"/sandboxes/{sandbox}{path}")
    assert answer.status_code == status, answer.text
    assert answer.json()["message"]


def test_changes_since_the_last_snapshot(page: Page) -> None:
    number = page.create()
    path = f"/sandboxes/{number}"
    page.write(number, "/home/user/a", b"one\n")
    page.write(number, "/home/user/b", b"stays\n")
    assert page.get(f"{path}/changes")["since"] is None
    page.ask("POST", f"{path}/snapshots", {"name": "before"})
    page.write(number, "/home/user/a", b"two\n")
    page.write(number, "/home/user/c", b"new\n")
    found = page.get(f"{path}/changes")
    assert found["since"]["name"] == "before"
    assert {(each["name"], each["kind"]) for each in found["changes"]} == {
        ("/home/user/a", "modified"),
        ("/home/user/c", "added"),
    }
    assert page.ask("GET", f"{path}/before?path=/home/user/a").content == b"one\n"
    assert page.ask("GET", f"{path}/before?path=/home/user/c").status_code == 404


def test_snapshots_are_a_tree(page: Page) -> None:
    number = page.create(metadata={"name": "root"})
    first = page.ask("POST", f"/sandboxes/{number}/snapshots", {}).json()["snapshotID"]
    second = page.ask("POST", f"/sandboxes/{number}/snapshots", {}).json()["snapshotID"]
    branch = page.create(templateID=first)
    third = page.ask("POST", f"/sandboxes/{branch}/snapshots", {}).json()["snapshotID"]
    tree = page.get("/snapshots")
    parents = {each["id"]: (each["parent"], each["image"]) for each in [*tree["snapshots"], *tree["sandboxes"]]}
    assert parents[first] == ("base", True)
    assert parents[second] == (first, False)
    assert parents[third] == (first, False)
    assert parents[number] == (second, False)
    assert parents[branch] == (third, False)
    assert page.ask("DELETE", f"/snapshots/{second}").status_code == 204
    assert second not in [each["id"] for each in page.get("/snapshots")["snapshots"]]


def run(page: Page, number: str, code: str, language: str) -> list[dict[str, Any]]:
    answer = page.ask("POST", f"/sandboxes/{number}/run", {"code": code, "language": language})
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines() if line]


def test_cells_keep_their_variables(page: Page, sandbox: str) -> None:
    run(page, sandbox, "const x = 41", "javascript")
    (told,) = [event for event in run(page, sandbox, "x + 1", "javascript") if event["type"] == "result"]
    assert told["text"] == "42"
    answer = page.ask("POST", f"/sandboxes/{sandbox}/contexts/default-javascript/restart")
    assert answer.status_code == 200
    assert any(event["type"] == "error" for event in run(page, sandbox, "x + 1", "javascript"))


def test_the_network_log_says_what_would_allow_it(page: Page, sandbox: str) -> None:
    def denied() -> dict[str, str]:
        events = page.get(f"/sandboxes/{sandbox}/network")["events"]
        return {event.get("name") or event.get("ip"): event["allow"] for event in events if event["allow"]}

    run(page, sandbox, "curl -s http://denied.example.com/; curl -s http://10.9.8.7:5432/", "bash")
    until(lambda: "10.9.8.7" in denied())  # a thread writes the log
    assert denied() == {"denied.example.com": "denied.example.com", "10.9.8.7": "10.9.8.7:5432"}
    assert page.get(f"/sandboxes/{sandbox}/network")["granted"] == ["allowed.example.org"]


@pytest.mark.parametrize(
    ("event", "pattern"),
    [
        ({"name": "a.example.com", "type": "A"}, "a.example.com"),
        ({"ip": "1.2.3.4", "port": 443, "hostname": "b.example.com"}, "b.example.com"),
        ({"ip": "1.2.3.4", "port": 80, "hostname": None}, "1.2.3.4"),
        ({"ip": "1.2.3.4", "port": 22, "hostname": None}, "1.2.3.4:22"),
        ({"ip": "2001:db8::1", "port": 22, "hostname": None}, "[2001:db8::1]:22"),
        ({"name": "no name'; echo", "type": "A"}, None),
        ({"action": "outcome"}, None),
    ],
)
def test_the_pattern_that_allows_an_event(event: dict[str, Any], pattern: str | None) -> None:
    assert allow_pattern({**event, "verdict": "denied"}) == pattern
    assert allow_pattern({**event, "verdict": "accepted"}) is None


def test_processes_and_their_end(page: Page, sandbox: str) -> None:
    terminal = page.terminal(sandbox)
    terminal.type("sleep 4321 & echo be''gun\n")
    terminal.until("begun")
    found = page.process(sandbox, "sleep 4321")
    answer = page.ask("POST", f"/sandboxes/{sandbox}/processes/{found['pid']}/signal", {"signal": "KILL"})
    assert answer.status_code == 204
    terminal.type("wait; echo go''ne\n")
    terminal.until("gone")
    assert not any("sleep 4321" in each["command"] for each in page.get(f"/sandboxes/{sandbox}/processes"))
    terminal.close()


@pytest.mark.parametrize(
    "stat", [b"", b"nonsense", b"1 (x) S", b"1 (x) S a b c", b"1 (x S 0 1 1", b") ) ) 1 2 3", b"\xff" * 50]
)
def test_a_stat_that_is_none_is_left_out(stat: bytes) -> None:
    assert parse_process(1, stat, b"x\0") is None


def test_a_process_is_read_as_linux_writes_it() -> None:
    stat = b"7 (a) b) S 1 7 7 0 -1 4194304 0 0 0 0 150 50 0 0 20 0 1 0 0 0 3 18446744073709551615 0\n"
    shown = parse_process(7, stat, b"sh\0-c\0a\x1bb\0")
    assert shown == {"pid": 7, "parent": 1, "state": "S", "cpu": 2.0, "memory": 12288, "command": "sh -c a\\x1bb"}


def test_images_are_the_operators_and_ones_own(own: Server) -> None:
    own.stop()
    recipe = "from belljar import Image, Store\n"
    program = f"Image().files({{'/a': 'x'}}).build(Store.sqlite({str(own.directory / 'store.db')!r}), name='tools')\n"
    other = f"Image().files({{'/b': 'x'}}).build(Store.sqlite({str(own.directory / 'store.db')!r}))\n"
    run_python(recipe + program + other)
    own.start()
    shown = Page(own).get("/images")
    assert [(each["name"], each["kind"]) for each in shown] == [("base", "built in"), ("tools", "image")]


def run_python(text: str) -> None:
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", text], check=True, cwd=Path(__file__).parents[3])


def test_keys_are_made_and_revoked(page: Page, served: Server) -> None:
    made = page.ask("POST", "/keys", {"name": "ci"})
    assert made.status_code == 201
    key = made.json()["key"]
    other = Page(served, key)
    (shown,) = [each for each in other.get("/keys") if each["own"]]
    assert (shown["name"], shown["scope"]) == ("ci", "tenant")
    assert other.ask("DELETE", f"/keys/{shown['id']}").status_code == 409
    assert page.ask("DELETE", f"/keys/{shown['id']}").status_code == 204
    assert page.ask("DELETE", f"/keys/{shown['id']}").status_code == 404
    assert other.ask("GET", "/keys").status_code == 401


def test_what_was_done_and_used(page: Page, sandbox: str) -> None:
    actions = {each["action"] for each in page.get("/audit")}
    assert {"sign in", "create"} <= actions
    assert isinstance(page.get("/usage"), list)
    assert page.get(f"/sandboxes/{sandbox}/samples")[-1]["uptime"] > 0
