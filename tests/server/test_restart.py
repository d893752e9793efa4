"""What a server's end leaves: by SIGTERM, by kill -9 at any moment, with and without a store."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from belljar import SandboxError, Snapshot, Store
from tests.server.serving import WHOLE, Server, are_gone
from tests.server.test_control import envd, state, until


def put(server: Server, made: dict[str, Any], text: str) -> None:
    answer = envd(server, made, "POST", "/files?path=state", files={"file": ("f", text.encode())})
    assert answer.status_code == 200


def get(server: Server, made: dict[str, Any]) -> str:
    answer = envd(server, made, "GET", "/files?path=state")
    return answer.text if answer.status_code == 200 else str(answer.status_code)


def test_a_crash_loses_no_pause_snapshot_or_key(own: Server) -> None:
    key = own.new_key("other")
    paused, running, again = own.create(), own.create(), own.create()
    for made in (paused, running, again):
        put(own, made, "one")
    assert own.request("POST", f"/sandboxes/{paused['sandboxID']}/pause", json={}).status_code == 204
    assert own.request("POST", f"/sandboxes/{again['sandboxID']}/pause", json={}).status_code == 204
    put(own, again, "two")  # it goes on
    taken = own.request("POST", f"/sandboxes/{running['sandboxID']}/snapshots", json={"name": "kept"})
    assert taken.status_code == 201
    workers = own.workers()
    assert workers
    own.kill()
    assert are_gone(workers)

    own.start()
    assert not any("API key: bj_" in line for line in own.said)
    assert own.request("GET", "/v2/sandboxes", key=key).status_code == 200
    listed = own.request("GET", "/v2/sandboxes").json()
    assert {(each["sandboxID"], each["state"]) for each in listed} == {
        (paused["sandboxID"], "paused"),
        (again["sandboxID"], "paused"),
    }
    assert get(own, paused) == "one"
    assert get(own, again) == "one"  # as it was at its last pause
    assert get(own, running) == "502"
    assert get(own, own.create(templateID="kept")) == "one"


def test_paused_sandboxes_are_not_forgotten_without_their_store(own: Server) -> None:
    made = own.create()
    put(own, made, "kept")
    assert own.request("POST", f"/sandboxes/{made['sandboxID']}/pause", json={}).status_code == 204
    assert own.stop() == 0
    data = str(own.directory / "store.db.server.db")
    command = [sys.executable, "-m", "belljar.cli", "serve", "--port", "0", "--data", data]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert refused.returncode == 125
    assert "--store" in refused.stderr
    own.start()
    assert get(own, made) == "kept"


def checkpoint(directory: Path) -> str | None:
    """What the file had in it when the newest one was taken."""
    with closing(Store.sqlite(str(directory / "store.db"))) as store, suppress(SandboxError, OSError):
        newest = max(Snapshot.list(store), key=lambda each: each.created, default=None)
        return None if newest is None else newest.files.read("/home/user/state")
    return None  # it was released while it was read, or has no such file yet


@pytest.mark.slow
def test_checkpoints_are_there_after_a_crash(tmp_path: Path) -> None:
    server = Server(tmp_path, "--checkpoint", "1")
    try:
        made = server.create()
        for text in ("one", "two"):
            put(server, made, text)
            until(lambda text=text: checkpoint(tmp_path) == text)  # type: ignore[misc]
        server.kill()
        server.start()
        assert state(server, made) == "paused"
        with closing(Store.sqlite(str(tmp_path / "store.db"))) as store:
            assert len(list(Snapshot.list(store))) == 1  # the others were released, or forgotten by the next server
        assert get(server, made) == "two"
        server.request("DELETE", f"/sandboxes/{made['sandboxID']}")
    finally:
        server.stop()


def test_a_full_disk_loses_no_sandbox(tmp_path: Path) -> None:
    """Files can't grow any more: a pause fails, the sandbox runs on, and is paused when there is room again."""
    server = Server(tmp_path)
    try:
        made = server.create()
        put(server, made, "kept")
        body = os.urandom(6_000_000)
        assert envd(server, made, "POST", "/files?path=big", files={"file": ("f", body)}).status_code == 200
        assert server.process is not None
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
        assert server.request("POST", f"/sandboxes/{made['sandboxID']}/pause", json={}).status_code == 507
        assert state(server, made) == "running"
        assert get(server, made) == "kept"
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert server.request("POST", f"/sandboxes/{made['sandboxID']}/pause", json={}).status_code == 204
        assert envd(server, made, "GET", "/files?path=big").content == body
    finally:
        server.stop()


def test_a_signal_pauses_what_runs(own: Server) -> None:
    made = own.create(autoPause=False)  # it would end at its timeout, but this is the server's end
    put(own, made, "kept")
    workers = own.workers()
    assert own.stop() == 0
    assert are_gone(workers)
    own.start()
    assert state(own, made) == "paused"
    connect = own.request("POST", f"/v2/sandboxes/{made['sandboxID']}/connect", json={})
    assert connect.status_code == 201
    assert get(own, made) == "kept"


def test_a_server_without_a_store_ends_its_sandboxes(tmp_path: Path) -> None:
    server = Server(tmp_path, store=False)
    made = server.create()
    assert server.request("POST", f"/sandboxes/{made['sandboxID']}/pause", json={}).status_code == 400
    assert server.request("POST", f"/sandboxes/{made['sandboxID']}/snapshots", json={}).status_code == 400
    workers = server.workers()
    assert server.stop() == 0
    assert are_gone(workers)


@pytest.mark.slow
def test_open_streams_do_not_keep_a_server_alive(own: Server) -> None:
    made = own.create()
    body = b'{"process": {"cmd": "/bin/sleep", "args": ["100"]}}'
    headers = {
        "Content-Type": "application/connect+json",
        "E2b-Sandbox-Id": made["sandboxID"],
        "X-Access-Token": made["envdAccessToken"],
    }
    content = b"\0" + len(body).to_bytes(4, "big") + body
    url = f"{own.url}/process.Process/Start"
    with httpx.stream("POST", url, content=content, headers=headers, timeout=30) as answer:
        events = answer.iter_bytes()
        assert b"start" in next(events)
        assert own.process is not None
        own.process.send_signal(signal.SIGTERM)
        assert own.process.wait(60) == 0


@pytest.mark.slow
def test_nothing_is_started_while_it_drains(own: Server) -> None:
    for _ in range(6):
        own.create()
    assert own.process is not None
    own.process.send_signal(signal.SIGTERM)
    statuses = set()
    while own.process.poll() is None:
        try:
            statuses.add(own.request("POST", "/v2/sandboxes", json={"templateID": "base"}).status_code)
        except httpx.HTTPError:
            break
    assert statuses <= {201, 503}
    own.process.wait(60)
    own.start()
    assert {each["state"] for each in own.request("GET", "/v2/sandboxes").json()} == {"paused"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100 if WHOLE else 1))
def test_a_crash_at_any_moment(tmp_path: Path, seed: int) -> None:
    """What was acknowledged holds, whenever the server is killed: pauses with their files, and ends."""
    server = Server(tmp_path)
    chance = random.Random(seed)
    acknowledged: dict[str, tuple[dict[str, Any], str]] = {}
    ended: set[str] = set()

    def work(number: int) -> None:
        turn = 0
        try:
            while True:
                turn += 1
                made = server.create(timeout=600)
                put(server, made, f"{number}-{turn}")
                path = f"/sandboxes/{made['sandboxID']}"
                if turn % 3 == 0:
                    if server.request("DELETE", path).status_code == 204:
                        ended.add(made["sandboxID"])
                elif server.request("POST", f"{path}/pause", json={}).status_code == 204:
                    acknowledged[made["sandboxID"]] = made, f"{number}-{turn}"
        except (httpx.HTTPError, AssertionError):
            return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    try:
        for thread in threads:
            thread.start()
        until(lambda: acknowledged)
        time.sleep(chance.random())
        workers = server.workers()
        server.kill()
        for thread in threads:
            thread.join()
        assert are_gone(workers)
        server.start()
        there = {each["sandboxID"]: each["state"] for each in server.request("GET", "/v2/sandboxes").json()}
        assert set(there.values()) <= {"paused"}
        assert not ended & set(there)
        for number, (made, text) in list(acknowledged.items())[:100]:
            assert there.get(number, "paused") == "paused"
            assert get(server, made) == text
    finally:
        server.stop()
