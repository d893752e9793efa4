"""What tenants keep and are counted by: volumes, secrets, logs, quotas, usage."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import e2b
import httpx
import pytest
from e2b import AsyncVolume, Sandbox, Secret, Volume

from belljar.server.database_host import Database
from belljar.server.keys_host import create_key
from tests.server.serving import Server
from tests.server.test_control import envd

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def run(server: Server, made: dict[str, Any], code: str) -> str:
    answer = envd(server, made, "POST", "/execute", json={"code": code, "language": "bash"})
    events = [json.loads(line) for line in answer.text.splitlines()]
    return "".join(event["text"] for event in events if event["type"] in ("stdout", "stderr"))


# Volumes.


@pytest.fixture
def volume(sdk: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Volume]:
    monkeypatch.setenv("E2B_VOLUME_API_URL", sdk.url)
    made = Volume.create(f"v{time.monotonic_ns()}")
    yield made
    Volume.destroy(made.volume_id)


def test_files_of_a_volume(volume: Volume) -> None:
    made = volume.make_dir("/a/b", mode=0o750, force=True)
    assert (made.name, made.path, made.type.value, made.mode) == ("b", "/a/b", "directory", 0o750)
    wrote = volume.write_file("/a/text", "hello", mode=0o600)
    assert (wrote.size, wrote.mode) == (5, 0o600)
    volume.write_file("/a/big", os.urandom(3_000_000))
    assert volume.read_file("/a/text") == "hello"
    assert len(volume.read_file("a/big", format="bytes")) == 3_000_000
    assert len(b"".join(volume.read_file("/a/big", format="stream"))) == 3_000_000
    assert [entry.path for entry in volume.list("/")] == ["/a"]
    assert sorted(entry.path for entry in volume.list("/", depth=2)) == ["/a", "/a/b", "/a/big", "/a/text"]
    assert volume.update_metadata("/a/text", mode=0o644).mode == 0o644
    assert (volume.exists("/a/text"), volume.exists("/none")) == (True, False)
    volume.remove("/a")
    assert volume.list("/") == []


def test_wrong_calls_for_files(volume: Volume) -> None:
    volume.write_file("/f", "1")
    for call in (
        lambda: volume.read_file("/none"),
        lambda: volume.list("/none"),
        lambda: volume.get_info("/none"),
        lambda: volume.remove("/none"),
        lambda: volume.make_dir("/no/where"),
        lambda: volume.write_file("/no/where", "x"),
        lambda: volume.update_metadata("/none", mode=0o600),
    ):
        with pytest.raises(e2b.NotFoundException):
            call()
    for call in (
        lambda: volume.make_dir("/f"),
        lambda: volume.make_dir("/f/below"),
        lambda: volume.update_metadata("/f", uid=0),
        lambda: volume.make_dir("/d", uid=5),
    ):
        with pytest.raises(e2b.VolumeException):
            call()
    assert volume.read_file("/../../f") == "1"  # there is nothing above


def test_sandboxes_share_a_volume(sdk: Server, volume: Volume) -> None:
    one = Sandbox.create(volume_mounts={"/mnt/data": volume.name})
    two = Sandbox.create(volume_mounts={"/other": volume})
    one.commands.run("echo shared > /mnt/data/f; mkdir /mnt/data/.git; echo x > /mnt/data/.git/config")
    assert two.commands.run("cat /other/f").stdout == volume.read_file("/f") == "shared\n"
    volume.write_file("/from-outside", "hi")
    assert one.files.read("/mnt/data/from-outside") == "hi"
    with pytest.raises(e2b.VolumeException, match="mounted"):
        Volume.destroy(volume.volume_id)
    one.pause()
    two.commands.run("echo later > /other/f")
    one.connect()
    assert one.files.read("/mnt/data/f") == "later\n"
    for each in (one, two):
        each.kill()
    assert volume.read_file("/f") == "later\n"


def test_volumes_are_listed_and_named_once(sdk: Server, volume: Volume) -> None:
    assert (volume.volume_id, volume.name) in [(each.volume_id, each.name) for each in Volume.list()]
    assert Volume.connect(volume.volume_id).name == volume.name
    with pytest.raises(e2b.VolumeException):
        Volume.create(volume.name)
    with pytest.raises(e2b.VolumeException):
        Volume.create("bad name")
    with pytest.raises(e2b.SandboxException, match="not found"):
        Sandbox.create(volume_mounts={"/x": "no-such-volume"})
    with pytest.raises(e2b.SandboxException):
        Sandbox.create(volume_mounts={"/": volume.name})
    assert Volume.destroy("i" + "0" * 24) is False


def test_volumes_are_a_tenants_own(sdk: Server, volume: Volume) -> None:
    stranger = sdk.new_key("volume-thief")
    path = f"/volumes/{volume.volume_id}"
    assert sdk.request("GET", path, key=stranger).status_code == 404
    assert sdk.request("DELETE", path, key=stranger).status_code == 404
    wish = {"templateID": "base", "volumeMounts": [{"name": volume.name, "path": "/x"}]}
    assert sdk.request("POST", "/v2/sandboxes", key=stranger, json=wish).status_code == 404
    for token in ("none", "wrong", sdk.key, stranger):
        answer = httpx.get(
            f"{sdk.url}/volumecontent/{volume.volume_id}/dir?path=/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=30,
        )
        assert answer.status_code in (401, 429)


def test_links_in_a_volume_lead_nowhere(sdk: Server, volume: Volume) -> None:
    """What a sandbox links to is looked up where there is nothing of the host."""
    sandbox = Sandbox.create(volume_mounts={"/v": volume.name})
    sandbox.commands.run("ln -s /etc/passwd /v/abs; ln -s ../../../../../../etc/hostname /v/rel; ln -s / /v/root")
    sandbox.kill()
    host = Path("/etc/passwd").read_text()
    assert volume.read_file("/abs") != host
    assert all(entry.name != "work" for entry in volume.list("/root"))
    with pytest.raises(e2b.VolumeException):
        volume.write_file("/root/tmp", "x")


def test_volumes_asynchronously(sdk: Server, volume: Volume) -> None:
    async def main() -> None:
        mine = await AsyncVolume.connect(volume.volume_id)
        await mine.write_file("/f", b"async")
        assert await mine.read_file("/f") == "async"

    asyncio.run(main())


def test_a_volume_takes_no_more_than_its_quota(own: Server) -> None:
    own.cli("key", "quota", "default", "--volume-mb", "1")
    made = own.request("POST", "/volumes", json={"name": "small"}).json()
    sandbox = own.create(volumeMounts=[{"name": "small", "path": "/v"}])
    assert "quota" in run(own, sandbox, "head -c 3000000 /dev/zero > /v/big; ls /v").lower()
    token = {"Authorization": f"Bearer {made['token']}"}
    url = f"{own.url}/volumecontent/{made['volumeID']}/file?path=/more"
    assert httpx.put(url, content=bytes(3_000_000), headers=token, timeout=30).status_code == 507


# Secrets.


def test_secrets_are_written_and_never_shown(sdk: Server) -> None:
    name, value = f"Key-{time.monotonic_ns()}", "s3cr3t-of-a-tenant"
    made = Secret.create(name, value, metadata={"for": "tests"})
    assert (made.name, made.version, made.metadata) == (name.lower(), 1, {"for": "tests"})
    assert Secret.update(name, value + "2").version == 2
    assert Secret.get_info(made.secret_id).metadata == {"for": "tests"}
    assert name.lower() in [each.name for each in Secret.list().next_items()]
    assert (Secret.exists(name), Secret.exists("none")) == (True, False)
    assert value not in sdk.request("GET", "/secrets").text
    for wrong in ({"name": "a b", "value": "x"}, {"name": "sec_x", "value": "x"}, {"name": "x", "value": "a\nb"}):
        assert sdk.request("POST", "/secrets", json=wrong).status_code == 400
    assert sdk.request("POST", "/secrets", json={"name": name, "value": "x"}).status_code == 409
    stranger = sdk.new_key("secret-thief")
    assert sdk.request("GET", f"/secrets/{made.secret_id}", key=stranger).status_code == 404
    assert sdk.request("DELETE", f"/secrets/{made.secret_id}", key=stranger).status_code == 404
    assert Secret.destroy(name) is True
    assert Secret.destroy(name) is False
    assert not [line for line in sdk.logged if value in line]


class Echo(BaseHTTPRequestHandler):
    """Answers with the headers that it got."""

    seen: list[dict[str, str]] = []  # noqa: RUF012 - of the class, for the test to look at

    def do_GET(self) -> None:
        Echo.seen.append(dict(self.headers))
        body = json.dumps(dict(self.headers)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.mark.slow
def test_secrets_are_put_into_requests_and_guests_never_see_them(tmp_path: Path) -> None:
    web = HTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    place = f"127.0.0.1:{web.server_port}"
    server = Server(tmp_path, "--allow-host", place)
    try:
        stranger = server.new_key("other")
        for key, value in ((server.key, "value-of-mine"), (stranger, "value-of-another")):
            assert server.request("POST", "/secrets", key=key, json={"name": "tok", "value": value}).status_code == 201
        header = {"Authorization": "Bearer ${e2b.secrets.tok}"}
        rules = {place: [{"transform": {"headers": header}}]}
        made = server.create(network={"allowOut": [place], "rules": rules})
        said = run(server, made, f"curl -s http://{place}/; env; cat /proc/*/environ")
        assert Echo.seen[-1]["Authorization"] == "Bearer value-of-mine"
        assert "value-of-mine" not in said
        server.request("POST", "/secrets/tok", json={"value": "a-newer-value"})
        run(server, made, f"curl -s -H 'Authorization: forged' http://{place}/")
        assert Echo.seen[-1]["Authorization"] == "Bearer a-newer-value"
        server.request("DELETE", "/secrets/tok")
        count = len(Echo.seen)
        assert "value" not in run(server, made, f"curl -sS http://{place}/")
        assert len(Echo.seen) == count  # what can't be filled in does not go out
        path = f"/sandboxes/{made['sandboxID']}/network"
        assert server.request("PUT", path, json={"allowOut": [place]}).status_code == 204
        run(server, made, f"curl -s http://{place}/")
        assert "Authorization" not in Echo.seen[-1]
        wrong: dict[str, Any]
        for wrong in ({"bad host/": []}, {place: [{"transform": {"headers": {"a b": "x"}}}]}):
            assert server.request("PUT", path, json={"allowOut": [place], "rules": wrong}).status_code == 400
    finally:
        server.stop()
        web.shutdown()
        web.server_close()


# Logs.


def test_the_log_of_a_sandbox(server: Server) -> None:
    made = server.create()
    path = f"/sandboxes/{made['sandboxID']}"
    body = b'{"process": {"cmd": "/bin/bash", "args": ["-c", "exit 3"]}}'
    content = b"\0" + len(body).to_bytes(4, "big") + body
    headers = {"Content-Type": "application/connect+json"}
    envd(server, made, "POST", "/process.Process/Start", content=content, headers=headers)
    server.request("POST", f"{path}/pause", json={})
    server.request("POST", f"{path}/connect", json={})
    lines = server.request("GET", f"/v2{path}/logs").json()["logs"]
    assert [line["message"] for line in lines] == [
        "sandbox started", "process started", "process ended", "sandbox paused", "sandbox resumed"
    ]  # fmt: skip
    assert lines[1]["fields"]["command"] == "/bin/bash -c exit 3"
    assert lines[2]["fields"]["status"] == "exit status 3"
    back = server.request("GET", f"/v2{path}/logs?direction=backward&limit=2&search=sandbox").json()["logs"]
    assert [line["message"] for line in back] == ["sandbox resumed", "sandbox paused"]
    assert len(server.request("GET", f"{path}/logs").json()["logEntries"]) == 5
    for wrong in ("level=loud", "limit=-1", "cursor=x", "direction=up"):
        assert server.request("GET", f"/v2{path}/logs?{wrong}").status_code == 400
    server.request("DELETE", path)


# Quotas and usage.


@pytest.mark.battery
def test_the_command_line_sets_quotas(tmp_path: Path) -> None:
    """`test_clock.py` has what they do."""
    data = str(tmp_path / "server.db")
    database = Database(data)
    create_key(database, "default", "first")
    given = {"memory_mb": 1, "disk_mb": 10, "cpu_seconds_per_hour": 2, "egress_mb_per_hour": 3}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    command = [sys.executable, "-m", "belljar.cli", "serve", "key", "quota", "default", *options, "--data", data]
    subprocess.run(command, capture_output=True, check=True)
    assert json.loads(database.quota("default")) == given
    database.close()


def test_one_tenants_starts_do_not_hold_up_anothers(own: Server) -> None:
    """A burst of one tenant waits in its own row."""
    keys = [own.key] * 40 + [own.new_key("patient")]
    assert own.process is not None
    with ExitStack() as opened:
        os.kill(own.process.pid, signal.SIGSTOP)  # all have asked before it looks at any
        sockets = [opened.enter_context(socket.create_connection(("127.0.0.1", own.port), 60)) for _ in keys]
        for connection, key in zip(sockets, keys, strict=True):
            body = b'{"templateID": "base"}'
            head = f"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-KEY: {key}\r\nContent-Length: {len(body)}\r\n"
            connection.sendall(f"{head}Content-Type: application/json\r\nConnection: close\r\n\r\n".encode() + body)
        os.kill(own.process.pid, signal.SIGCONT)
        answers = [b"".join(iter(partial(connection.recv, 65536), b"")) for connection in sockets]
    assert all(answer.startswith(b"HTTP/1.1 201") for answer in answers)
    started = []
    for answer, key in zip(answers, keys, strict=True):
        number = json.loads(answer.partition(b"\r\n\r\n")[2])["sandboxID"]
        (line,) = own.request("GET", f"/v2/sandboxes/{number}/logs", key=key).json()["logs"]
        started.append(line["timestamp"])
    assert sum(each < started[-1] for each in started) < 35
