"""Servers over messages: neither side can harm the other with what it sends."""

import gc
from collections.abc import Callable, Mapping
from errno import EBADF, EINVAL, EIO, ENFILE, ENOENT, EROFS, ESTALE

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_RDWR, S_IFREG
from belljar.abi.records import Owner
from belljar.kernel.fiber import WaitQueue
from belljar.kernel.fs import remote as remote_near
from belljar.kernel.fs import remote_export
from belljar.kernel.fs.remote import Export, Message, RemoteServer
from belljar.kernel.fs.remote_message import BATCH, CHUNK, SCANS
from belljar.kernel.process import Process
from tests.contract.servers import File, make_memory, memory, view_of
from tests.kernel.rig import doing, errno_of, new_kernel, result

ROOT = Owner(0, 0)


def export(**files: bytes) -> Export:
    return Export(make_memory({name: File(data) for name, data in files.items()}, None))  # type: ignore[arg-type]


# The far side against a hostile peer.


def root_number(far: Export) -> int:
    number = far.serve({"op": "root"})["ok"]
    assert isinstance(number, list)
    return int(number[0])


@pytest.mark.parametrize(
    ("fields", "errno"),
    [
        ({"op": "walk", "node": 1}, EINVAL),
        ({"op": "walk", "node": 1, "name": b"f", "extra": 1}, EINVAL),
        ({"op": "walk", "node": 1, "name": "f"}, EINVAL),
        ({"op": "walk", "node": 1, "name": b".."}, EINVAL),
        ({"op": "walk", "node": 1, "name": b"a/b"}, EINVAL),
        ({"op": "walk", "node": 1, "name": b"a\0b"}, EINVAL),
        ({"op": "walk", "node": 1, "name": b""}, EINVAL),
        ({"op": "walk", "node": 1, "name": b"x" * 256}, EINVAL),
        ({"op": "walk", "node": True, "name": b"f"}, EINVAL),
        ({"op": "walk", "node": -1, "name": b"f"}, EINVAL),
        ({"op": "walk", "node": 1 << 80, "name": b"f"}, EINVAL),
        ({"op": "walk", "node": 99, "name": b"f"}, ESTALE),
        ({"op": "walk", "node": 1, "name": b"none"}, ENOENT),
        ({"op": "_walk", "node": 1, "name": b"f"}, EINVAL),
        ({"op": "serve"}, EINVAL),
        ({"op": ["walk"]}, EINVAL),
        ({}, EINVAL),
        ({"op": "read", "handle": 5, "offset": 0, "size": 10}, EBADF),
        ({"op": "read", "handle": 5, "offset": 0, "size": 1 << 32}, EINVAL),
        ({"op": "read", "handle": 5, "offset": -1, "size": 1}, EINVAL),
        ({"op": "write", "handle": 5, "offset": 0, "data": "text"}, EINVAL),
        ({"op": "write", "handle": 5, "offset": 0, "data": bytes(CHUNK + 1)}, EINVAL),
        ({"op": "open", "node": 1, "flags": 0o4000000}, EINVAL),
        ({"op": "symlink", "node": 1, "name": b"l", "target": b"", "uid": 0, "gid": 0}, EINVAL),
        ({"op": "symlink", "node": 1, "name": b"l", "target": b"x" * 4096, "uid": 0, "gid": 0}, EINVAL),
        ({"op": "rename", "node": 1, "name": b"f", "into": 1, "new": b"..", "flags": 0}, EINVAL),
        ({"op": "nothing", "close": [1] * 1001}, EINVAL),
        ({"op": "scan", "nodes": 1}, EINVAL),
        ({"op": "scan", "nodes": [1]}, EINVAL),
        ({"op": "scan", "nodes": [[1, 0]] * (SCANS + 1)}, EINVAL),
        ({"op": "scan", "nodes": [[-1, 0]]}, EINVAL),
        ({"op": "contents", "nodes": [1] * (BATCH + 1)}, EINVAL),
        ({"op": "contents", "nodes": [b"1"]}, EINVAL),
        ({"op": "nothing", "close": "123"}, EINVAL),
        ({"op": "nothing", "forget": [5]}, EINVAL),
        ({"op": "nothing", "forget": [[5, -1]]}, EINVAL),
    ],
)
def test_malformed_requests_are_refused(fields: dict[str, object], errno: int) -> None:
    far = export(f=b"x")
    assert root_number(far) == 1
    assert far.serve(fields) == {"errno": errno}


@pytest.mark.parametrize("message", [None, 5, b"walk", [], "walk", {1: 2}])
def test_what_is_no_request(message: object) -> None:
    assert export().serve(message) == {"errno": EINVAL}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.binary(max_size=20) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
OPERATIONS = sorted(export()._operations)
KEYS = [
    "node",
    "name",
    "into",
    "new",
    "flags",
    "mode",
    "uid",
    "gid",
    "target",
    "handle",
    "offset",
    "size",
    "data",
    "hole",
]


@given(
    operation=st.sampled_from(OPERATIONS) | st.text(max_size=5),
    fields=st.dictionaries(st.sampled_from([*KEYS, "forget", "close", "atime", "mtime"]), VALUES | st.just(1)),
)
def test_no_request_breaks_the_far_side(operation: str, fields: dict[str, object]) -> None:
    bugs: list[BaseException] = []
    far = Export(make_memory({"f": File(b"x")}, None), bugs.append)  # type: ignore[arg-type]
    root_number(far)
    far.serve({"op": "walk", "node": 1, "name": b"f"})
    reply = far.serve({"op": operation, **fields})
    assert set(reply) in ({"ok"}, {"errno"})
    assert bugs == []
    assert far.serve({"op": "walk", "node": 1, "name": b"none"}) == {"errno": ENOENT}


def test_the_peer_cannot_make_us_hold_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_export, "HANDLES_MAX", 3)
    monkeypatch.setattr(remote_export, "NODES_MAX", 3)
    far = export(a=b"", b=b"", c=b"")
    root_number(far)
    for name in (b"a", b"b"):
        far.serve({"op": "walk", "node": 1, "name": name})
    assert far.serve({"op": "walk", "node": 1, "name": b"c"}) == {"errno": ENFILE}
    handles = [far.serve({"op": "open", "node": 2, "flags": 0})["ok"] for _ in range(3)]
    assert far.serve({"op": "open", "node": 2, "flags": 0}) == {"errno": ENFILE}
    assert "ok" in far.serve({"op": "open", "node": 2, "flags": 0, "close": handles[:1]})


def test_a_bug_of_the_server_is_an_io_error_and_reported() -> None:
    server = memory()
    bugs: list[BaseException] = []

    def broken(*_arguments: object) -> object:
        raise KeyError("secret /host/path")

    server.readdir = broken  # type: ignore[method-assign, assignment]
    far = Export(server, bugs.append)
    root_number(far)
    assert far.serve({"op": "readdir", "node": 1, "start": 0}) == {"errno": EIO}
    assert isinstance(bugs[0], KeyError)

    def missing(*_arguments: object) -> object:
        raise FileNotFoundError(ENOENT, "no such thing", "/host/path")

    server.stat = missing  # type: ignore[method-assign, assignment]
    assert far.serve({"op": "stat", "node": 1}) == {"errno": ENOENT}


class Thing:
    """A node, an open file and a server with just what a reader needs; it inherits from nothing."""

    mode, uid, gid = S_IFREG | 0o644, 0, 0

    @property
    def root(self) -> "Thing":
        return self

    def stat(self, node: object) -> tuple[int, ...]:
        return (self.mode, 1, 0, 1, 0, 0, 4, 0, 0, 0)

    def open(self, node: object, flags: int) -> "Thing":
        return self

    def read(self, offset: int, size: int) -> bytes:
        return b"data"[offset : offset + size]


def test_what_an_object_does_not_have_is_as_on_a_read_only_disk() -> None:
    far = Export(Thing())  # type: ignore[arg-type]
    root = root_number(far)
    handle = far.serve({"op": "open", "node": root, "flags": 0})["ok"]
    assert far.serve({"op": "stat", "node": root})["ok"] == [S_IFREG | 0o644, 1, 0, 1, 0, 0, 4, 0, 0, 0, 0, 0]
    assert far.serve({"op": "read", "handle": handle, "offset": 1, "size": 9}) == {"ok": b"ata"}
    assert far.serve({"op": "statfs"})["ok"] == [4096, 0, 0, 0, 0, 255]
    assert far.serve({"op": "sync", "handle": handle}) == {"ok": None}
    for message in (
        {"op": "write", "handle": handle, "offset": 0, "data": b"x"},
        {"op": "truncate", "handle": handle, "size": 0},
        {"op": "unlink", "node": root, "name": b"f"},
        {"op": "mkdir", "node": root, "name": b"f", "mode": 0o755, "uid": 0, "gid": 0},
    ):
        assert far.serve(message) == {"errno": EROFS}
    assert far.serve({"op": "readlink", "node": root}) == {"errno": EINVAL}
    far.close()


# The near side against a hostile server.

GOOD_ROOT = {"ok": [1, 0o040755, 0, 0]}


def near(answer: Callable[[Message], object]) -> RemoteServer:
    def call(message: Message) -> Mapping[str, object]:
        if message["op"] == "root":
            return GOOD_ROOT
        return answer(message)  # type: ignore[return-value]

    return RemoteServer(call)


@pytest.mark.parametrize(
    "reply",
    [
        None, 5, {}, {"ok": None}, {"ok": 5}, {"ok": []}, {"ok": [1, 2, 3]}, {"ok": [0, 0, 0, 0]},
        {"ok": [2, 0o100644, -1, 0]}, {"ok": [2, 1 << 40, 0, 0]}, {"ok": ["2", 0o100644, 0, 0]},
        {"ok": [1, 0o100644, 0, 0]}, {"errno": -5}, {"errno": "x"}, {"errno": 10**9}, {"errno": 0}, {"errno": True},
    ],
)  # fmt: skip
def test_a_malformed_node_is_an_io_error(reply: object) -> None:
    server = near(lambda _message: reply)
    assert errno_of(server.walk, server.root, "f") == EIO


@pytest.mark.parametrize(
    ("operation", "reply"),
    [
        ("readdir", [[b"..", 1, S_IFREG]]),
        ("readdir", [[b"a/b", 1, S_IFREG]]),
        ("readdir", [["text", 1, S_IFREG]]),
        ("readdir", [[b"f", -1, S_IFREG]]),
        ("readdir", [[b"f", 1]]),
        ("readdir", 7),
        ("stat", [0o100644] * 12),
        ("stat", [0o040755] * 11),
        ("stat", [0o040755, 1, 0, 1, 0, 0, -5, 0, 0, 0, 0, 0]),
        ("readlink", b"x" * 4096),
        ("readlink", b"a\0b"),
        ("readlink", "text"),
        ("locate", [[1, 0o040755, 0, 0], b"../x"]),
        ("locate", [[1, 0o040755, 0, 0]]),
        ("open", -1),
        ("open", b"1"),
    ],
)
def test_a_malformed_answer_is_an_io_error(operation: str, reply: object) -> None:
    server = near(lambda _message: {"ok": reply})
    arguments = (server.root, 0) if operation == "open" else (server.root,)
    assert errno_of(getattr(server, operation), *arguments) == EIO


def test_a_server_cannot_give_more_data_than_asked_for() -> None:
    def answer(message: Message) -> object:
        operation = message["op"]
        if operation == "open":
            return {"ok": 7}
        return {"ok": b"x" * 100 if operation == "read" else 100}

    server = near(answer)
    handle = server.open(server.root, 0)
    assert errno_of(handle.read, 0, 99) == EIO
    assert handle.read(0, 100) == b"x" * 100
    assert errno_of(handle.write, 0, b"y" * 99) == EIO


def test_errnos_come_through() -> None:
    server = near(lambda _message: {"errno": ENOENT})
    assert errno_of(server.walk, server.root, "f") == ENOENT


# Both.


def connected() -> tuple[RemoteServer, Export, list[Message]]:
    far = export(f=b"content", g=b"")
    sent: list[Message] = []

    def call(message: Message) -> Message:
        sent.append(message)
        return far.serve(message)

    return RemoteServer(call), far, sent


def test_nodes_and_handles_let_go_of_are_forgotten_with_the_next_request() -> None:
    server, far, sent = connected()
    view = view_of(server)
    view.stat("/f")
    file = view.open("/g", O_RDWR).retain()
    file.release()
    assert len(far._handles) == 1
    del file
    gc.collect()
    view.statfs("/")
    assert sent[-1].keys() >= {"forget"}
    assert len(far._nodes) == 1
    assert far._handles == {}


def test_a_node_given_again_while_its_forgetting_is_on_the_way_lives() -> None:
    server, far, _sent = connected()
    node = server.walk(server.root, "f")
    number = far._numbers[id(far._server.walk(far._server.root, "f"))]
    far.serve({"op": "walk", "node": 1, "name": b"f"})  # an answer that is still travelling
    far.serve({"op": "nothing", "forget": [[number, 1]]})
    assert server.stat(node).size == 7
    far.serve({"op": "nothing", "forget": [[number, 2]]})
    assert errno_of(server.stat, node) == ESTALE


def test_large_data_goes_in_pieces() -> None:
    server, _far, sent = connected()
    view = view_of(server)
    file = view.open("/big", O_RDWR | O_CREAT).retain()
    data = bytes(range(256)) * 10_000
    written = 0
    while written < len(data):
        written += file.write(data[written:])
    file.seek(0)
    parts = []
    while piece := file.read(1 << 30):
        parts.append(piece)
    assert b"".join(parts) == data
    assert max(len(message["data"]) for message in sent if message["op"] == "write") == CHUNK  # type: ignore[arg-type]


@pytest.mark.parametrize("entries", [0, 1, 9, 10, 11, 20, 25])
def test_large_directories_go_in_pages(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_export, "PAGE", 10)
    monkeypatch.setattr(remote_near, "PAGE", 10)
    far = export(**{f"f{number}": b"" for number in range(entries)})
    server = RemoteServer(far.serve)
    assert sorted(entry.name for entry in server.readdir(server.root)) == sorted(f"f{n}" for n in range(entries))
    assert far._listing == (None, ())


def test_closing_can_be_told_at_once() -> None:
    far = export(f=b"")

    def send(message: Message) -> None:
        far.serve(message)

    server = RemoteServer(far.serve, send)
    file = view_of(server).open("/f", 0).retain()
    assert len(far._handles) == 1
    file.release()
    assert far._handles == {}


def test_the_end_of_a_peer_closes_all() -> None:
    _server, far, _sent = connected()
    far.serve({"op": "open", "node": far.serve({"op": "walk", "node": 1, "name": b"f"})["ok"][0], "flags": 0})  # type: ignore[index]
    far.close()
    assert far._handles == {}
    assert far.serve({"op": "stat", "node": 1}) == {"errno": ESTALE}


def test_a_call_may_park_while_others_go_on() -> None:
    kernel = new_kernel()
    far, answers = export(f=b"content"), WaitQueue(kernel.hub)
    log: list[str] = []

    def call(message: Message) -> Message:
        if kernel.hub.current is not None:
            kernel.hub.sleep(1)
            answers.wake_all()
        return far.serve(message)

    server = RemoteServer(call)
    kernel.init.fs.mkdir("/mnt")
    kernel.init.fs.mount(server, "/mnt")

    def main(process: Process) -> bytes:
        child = process.fork(doing(lambda _child: log.append("ran")))
        data = process.read_file("/mnt/f")
        assert log == ["ran"]
        process.wait_for(child)
        return data

    assert result(kernel, main) == b"content"
    assert kernel.hub.clock.monotonic() >= 3


def test_errors_are_system_errors() -> None:
    server, _far, _sent = connected()
    with pytest.raises(SysError):
        server.create(server.root, "f", S_IFREG, ROOT)


def test_a_read_of_several_messages_is_as_long_as_it_can_be() -> None:
    data = bytes(range(256)) * (3 * CHUNK // 256) + b"end"
    server = RemoteServer(export(f=data).serve)
    handle = server.open(server.walk(server.root, "f"), O_RDWR)
    assert handle.read(0, 8 * CHUNK) == data
    assert handle.read(CHUNK - 1, 2 * CHUNK) == data[CHUNK - 1 : 3 * CHUNK - 1]
    assert handle.read(3 * CHUNK, 100) == b"end"
    assert handle.read(len(data), 100) == b""


@pytest.mark.parametrize("offset", [None, 7])
def test_a_write_of_several_messages_is_whole(offset: int | None) -> None:
    server = RemoteServer(export(f=b"0123456789").serve)
    handle = server.open(server.walk(server.root, "f"), O_RDWR)
    data = bytes(range(256)) * (3 * CHUNK // 256) + b"end"
    assert handle.write(offset, data) == len(data)
    assert handle.read(0, 8 * CHUNK) == b"0123456789"[:offset] + data
