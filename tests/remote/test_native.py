"""A server whose sandboxes run real programs: the trees of clients, clients that leave, and hostile ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from belljar import Mount, Network, NotOnThisTier, RemoteSandbox, Store
from belljar.abi.wire import Call, Failure, Reply, worker_frames
from belljar.remote import wire
from tests.remote.test_attacks import SECONDS, Raw
from tests.server.serving import WHOLE, Server

CREATE = wire.Create({}, "", "", "belljar", {}, [], "base", 60.0)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def natively(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("native"), "--tier", "native", "--session", "2")
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def mallory(natively: Server) -> str:
    return natively.new_key("mallory")


def until(happens: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_trees_of_the_client_are_live(natively: Server, tmp_path: Path) -> None:
    (tmp_path / "here").write_text("one")
    mounts = {"/mnt": Mount.host(str(tmp_path), read_only=False)}
    with RemoteSandbox(natively.url, natively.key, mounts=mounts) as sandbox:
        assert sandbox.info.tier == "native"
        assert sandbox.exec("cat /mnt/here; echo two > /mnt/there").stdout == "one"
        assert (tmp_path / "there").read_text() == "two\n"
        (tmp_path / "here").write_text("changed")
        assert sandbox.exec("cat /mnt/here").stdout == "changed"
        size = 3_000_000
        assert sandbox.exec(f"head -c {size} /dev/zero > /mnt/big; wc -c < /mnt/big").stdout == f"{size}\n"
        assert (tmp_path / "big").stat().st_size == size
        sandbox.unmount("/mnt")
        assert sandbox.exec("ls /mnt").stdout == ""


def test_it_is_left_and_found_again(natively: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    mounts = {"/mnt": Mount.host(str(tmp_path))}
    sandbox = RemoteSandbox(natively.url, natively.key, mounts=mounts)
    sandbox.files.write("kept", "kept")
    number = sandbox.id
    sandbox.detach()
    with RemoteSandbox.attach(natively.url, natively.key, number) as again:
        assert again.exec("cat kept").stdout == "kept"
        assert again.exec("cat /mnt/file").exit_code != 0  # its client is gone, and its tree with it
        with pytest.raises(NotOnThisTier, match="network= is not possible"):
            RemoteSandbox.attach(natively.url, natively.key, number, network=Network.allow("example.com"))
        again.mount("/mine", Mount.host(str(tmp_path)))
        assert again.exec("cat /mine/file").stdout == "mine"


def test_a_paused_one_goes_on(natively: Server) -> None:
    sandbox = RemoteSandbox(natively.url, natively.key)
    sandbox.files.write("kept", "kept")
    number = sandbox.id
    sandbox.detach()
    assert natively.request("POST", f"/sandboxes/{number}/pause", json={}).status_code == 204
    with RemoteSandbox.attach(natively.url, natively.key, number) as again:
        assert again.exec("cat kept; pwd").stdout == "kept/workspace\n"


def test_what_it_can_not_do_says_what_can(natively: Server) -> None:
    with RemoteSandbox(natively.url, natively.key) as sandbox:
        for use in (sandbox.fork, lambda: sandbox.snapshot(store=Store.memory()), sandbox.pause):
            with pytest.raises(NotOnThisTier, match=r"detach\(\) leaves it there, attach\(id\) goes on with it"):
                use()
        assert sandbox.exec("echo well").stdout == "well\n"


class Hostile(Raw):
    """One that mounts a tree, and then serves it as it likes."""

    def mount(self) -> int:
        """The stream of the device."""
        stream = 1
        self.say(Call(self.number(1), "mkdir", [b"/mnt", True]))
        self.reply(self.number(1))
        self.say(Call(self.number(2), "fuse", [b"/mnt", 0o40755, False]))
        number = self.reply(self.number(2))
        self.send(wire.Request(1, "fuse", [stream, number]))
        self.wait_for(wire.Response)
        return stream

    def reply(self, number: int) -> Any:
        frames = worker_frames()
        while True:
            data = self.wait_for(wire.Data)
            for message in frames.feed(data.data) if data.stream == 0 else ():
                assert not isinstance(message, Failure), message
                if isinstance(message, Reply) and message.id == number:
                    return message.value

    def wait_for(self, kind: type[Any]) -> Any:
        while not isinstance(message := wire.decode(self.bytes()), kind):
            pass
        return message


def notice(code: int, body: bytes = bytes(24)) -> bytes:
    return (16 + len(body)).to_bytes(4, "little") + code.to_bytes(4, "little") + bytes(8) + body


SAID = {
    "a notice": notice(2),  # have an inode's pages dropped
    "nothing": b"",
    "noise": b"\xff" * 64,
    "the end": bytes(4),
    "huge": (1 << 31).to_bytes(4, "little"),
    "short": (8).to_bytes(4, "little") + bytes(4),
    "data for the cache": notice(5, bytes(64)),
    "an answer to nothing": (16).to_bytes(4, "little") + bytes(4) + b"\x07" * 8,
}


@pytest.mark.parametrize("said", list(SAID.values())[: 8 if WHOLE else 1], ids=list(SAID)[: 8 if WHOLE else 1])
def test_a_device_that_is_served_badly(natively: Server, mallory: str, said: bytes) -> None:
    """A program that waits for it ends with its client, and the sandbox with both; others are well."""
    hostile = Hostile(natively, mallory, CREATE)
    number = hostile.welcome.id
    stream = hostile.mount()
    hostile.send(wire.Request(2, "usage", []))
    if said:
        hostile.send(wire.Data(stream, said))
    with RemoteSandbox.attach(natively.url, mallory, number) as other:
        process = other.spawn("ls /mnt")
        hostile.close()  # and never again: its session is over after two seconds
        assert process.wait(SECONDS) is not None
        assert other.exec("echo well").stdout == "well\n"


def test_closing_does_not_wait_for_a_device(natively: Server, mallory: str) -> None:
    hostile = Hostile(natively, mallory, CREATE)
    hostile.mount()
    number = hostile.welcome.id
    other = RemoteSandbox.attach(natively.url, mallory, number)
    other.spawn("ls /mnt")
    other.close()
    hostile.close()
    until(lambda: natively.request("GET", f"/sandboxes/{number}", key=mallory).status_code == 404)


@pytest.mark.parametrize("request_", [["fuse", [1, 99]], ["fuse", [1, -1]], ["fuse", [0, 0]], ["fuse", ["x"]]], ids=str)
def test_devices_that_there_are_not(natively: Server, mallory: str, request_: list[Any]) -> None:
    hostile = Hostile(natively, mallory, CREATE)
    hostile.send(wire.Request(1, *request_))
    while True:
        message = wire.decode(hostile.bytes())
        if isinstance(message, wire.Over) or (isinstance(message, wire.Response) and message.error is not None):
            break
    hostile.close()


def test_a_virtual_sandbox_has_no_devices(server: Server) -> None:
    hostile = Hostile(server, server.new_key("mallory"), CREATE)
    hostile.send(wire.Request(1, "fuse", [1, 0]))
    over = hostile.over()
    assert over is None or "broke the protocol" in over.text
    hostile.close()
