"""System calls of an engine process: what they do, what they refuse, and what a hostile process can't do with them."""

from __future__ import annotations

import struct
from errno import EBADF, EEXIST, EFBIG, EINTR, EINVAL, ENOENT, ENOSPC, ENOSYS, ENOTDIR
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.flags import O_CREAT, O_DIRECTORY, O_EXCL, O_RDWR, O_WRONLY, S_IFMT, S_IFREG, WNOHANG
from belljar.engines.calls.client_host import CallError, Client, ConnectionEnded
from belljar.engines.wire.calls import (
    AT_FDCWD,
    CALLS,
    NEW_GROUP,
    REPORTED,
    BadFrame,
    decode,
    encode,
)
from belljar.engines.worker.calls.server import _SHARED, CallServer
from tests.engines.rig import serve


def errno_of(client: Client, name: str, *arguments: Any) -> int:
    with pytest.raises(CallError) as caught:
        client.call(name, *arguments)
    return caught.value.errno


def finish(client: Client) -> None:
    client.post("exit", 0, 0, 0)


def test_every_call_has_a_handler() -> None:
    numbers = [call.number for call in CALLS.values()]
    assert len(set(numbers)) == len(numbers)

    def client(c: Client) -> set[str]:
        c.wait_for_start()
        finish(c)
        return set()

    _, _, session = serve(client)
    server = CallServer(session.kernel.init, None)  # type: ignore[arg-type]
    assert server._own.keys() | _SHARED.keys() == set(numbers)


def test_start_says_what_to_run() -> None:
    def client(c: Client) -> Any:
        program = c.wait_for_start()
        finish(c)
        return program

    program, status, _ = serve(client, argv=["prog", "x\udcff"])
    assert program.argv == [b"prog", b"x\xff"]
    assert b"A=1" in program.env
    assert program.cwd == b"/"
    assert program.numbers.memory_bytes > 0
    assert status.shell == 0


def test_files() -> None:
    def client(c: Client) -> None:
        c.wait_for_start()
        fd, stat = c.call("open", AT_FDCWD, b"/tmp/a", O_RDWR | O_CREAT | O_EXCL, 0o640)
        assert stat[0] == S_IFREG | 0o640
        assert c.call("write", fd, b"hello") == [5]
        assert c.call("pwrite", fd, b"J", 0) == [1]
        assert c.call("seek", fd, 0, 0) == [0]
        assert c.call("read", fd, 100) == [b"Jello"]
        assert c.call("read", fd, 100) == [b""]
        assert c.call("pread", fd, 2, 1) == [b"el"]
        assert errno_of(c, "read", fd, -1) == EINVAL
        c.call("ftruncate", fd, 2)
        assert c.call("fstat", fd)[0][6] == 2
        c.call("fchmod", fd, 0o600)
        c.call("futimens", fd, 5_000_000_000, 7_000_000_000, 5)
        c.call("close", fd)
        assert errno_of(c, "close", fd) == EBADF
        stat = c.call("stat", AT_FDCWD, b"/tmp/a", 0)[0]
        assert (stat[0] & 0o7777, stat[7], stat[8]) == (0o600, 5_000_000_000, 7_000_000_000)
        assert errno_of(c, "open", AT_FDCWD, b"/tmp/a", O_CREAT | O_EXCL, 0) == EEXIST
        assert c.call("read_file", AT_FDCWD, b"/tmp/a") == [b"Je"]
        assert c.call("write_file", AT_FDCWD, b"/tmp/b", 0, 0o644, b"x" * 100) == [100]
        finish(c)

    serve(client)


def test_a_file_that_can_not_be_written_is_closed() -> None:
    def client(c: Client) -> None:
        c.wait_for_start()
        (free,) = c.call("dup", 0, 0, 1)
        c.call("close", free)
        assert errno_of(c, "write_file", AT_FDCWD, b"/dev/full", 0, 0o644, b"x") == ENOSPC
        assert c.call("dup", 0, 0, 1) == [free]
        finish(c)

    serve(client)


def test_paths_are_seen_from_a_directory() -> None:
    def client(c: Client) -> None:
        c.wait_for_start()
        c.call("mkdir", AT_FDCWD, b"/tmp/d", 0o755)
        c.call("mkdir", AT_FDCWD, b"/tmp/e", 0o755)
        fd, _ = c.call("open", AT_FDCWD, b"/tmp/d", O_DIRECTORY, 0)
        other, _ = c.call("open", AT_FDCWD, b"/tmp/e", O_DIRECTORY, 0)
        c.call("write_file", fd, b"f", 0, 0o644, b"1")
        c.call("symlink", b"f", fd, b"l")
        assert c.call("readlink", fd, b"l") == [b"f"]
        c.call("link", fd, b"f", other, b"g", 0)
        c.call("rename", fd, b"f", other, b"h", 0)
        assert [entry[2] for entry in c.call("readdir", other, b"")[0]] == [b"g", b"h"]
        assert [name for _, name in c.call("scandir", AT_FDCWD, b"/tmp/d")[0]] == [b"l"]
        assert errno_of(c, "stat", fd, b"l", 0) == ENOENT
        assert c.call("stat", fd, b"l", 1)[0][0] & S_IFMT != S_IFREG
        c.call("chdir", other, b".")
        assert c.call("getcwd") == [b"/tmp/e"]
        assert c.call("stat", AT_FDCWD, b"g", 0)[0][3] == 2
        c.call("unlink", other, b"g")
        file, _ = c.call("open", other, b"h", O_WRONLY, 0)
        assert errno_of(c, "stat", file, b"x", 0) == ENOTDIR
        assert errno_of(c, "rmdir", AT_FDCWD, b"/tmp/none") == ENOENT
        finish(c)

    serve(client)


def test_children_and_pipes() -> None:
    def client(c: Client) -> None:
        c.wait_for_start()
        reader, writer = c.call("pipe", 1)
        argv = [b"bash", b"-c", b'echo "$PWD $B"; exit 3']
        (pid,) = c.call("spawn", b"bash", argv, [b"B=2", b"PATH=/usr/bin"], b"/tmp", [1], [writer], 0)
        c.call("close", writer)
        assert c.call("read", reader, 100) == [b"/tmp 2\n"]
        assert c.call("wait", pid, 0) == [pid, 3, 0]
        assert errno_of(c, "spawn", b"no-such", [b"no-such"], [], b"", [], [], 0) == ENOENT
        (pid,) = c.call("spawn", b"/usr/bin/sleep", [b"sleep", b"1000"], [], b"", [], [], NEW_GROUP)
        assert c.call("wait", pid, WNOHANG) == [0, 0, 0]
        c.call("kill", pid, 15)
        assert c.call("wait", -1, 0) == [pid, 0, 15]
        assert c.call("poll", [reader], [1], 0) == [[16]]
        finish(c)

    serve(client)


def test_a_caught_signal_is_an_event_and_interrupts() -> None:
    def client(c: Client) -> Any:
        c.wait_for_start()
        c.call("catch", 10, REPORTED)
        pid = c.call("ids")[0][0]
        # Again and again, until there is nobody: the first may come before the sleep has begun.
        script = b"while sleep 0.05; do kill -USR1 %d || exit; done" % pid
        c.call("spawn", b"bash", [b"bash", b"-c", script], [b"PATH=/usr/bin"], b"", [], [], 0)
        error = errno_of(c, "sleep", 20_000_000_000)
        while not c.signals:
            c.call("sleep", 1_000_000)
        finish(c)
        return error, set(c.signals)

    assert serve(client)[0] == (EINTR, {10})


def test_limits_come_with_the_answer_that_a_run_is() -> None:
    told: list[tuple[int, int]] = []

    def client(c: Client) -> list[int]:
        c.wait_for_start()
        c.on_limits = lambda cpu_ns, memory: told.append((cpu_ns, memory))
        after = []
        for _ in range(2):
            c.call("getcwd")
            after.append(len(told))
        finish(c)
        return after

    assert serve(client, limits=(1.5, 4096))[0] == [1, 1]
    assert told == [(1_500_000_000, 4096)]


def test_how_it_ends() -> None:
    def leave(c: Client) -> None:
        c.wait_for_start()

    def die(c: Client) -> None:
        c.wait_for_start()
        c.post("exit", 0, 6, 1_000_000)

    def kill_itself(c: Client) -> None:
        c.wait_for_start()
        with pytest.raises(ConnectionEnded):
            c.call("kill", c.call("ids")[0][0], 9)

    assert serve(leave)[1].shell == 137
    assert serve(die)[1].shell == 134
    assert serve(kill_itself)[1].shell == 137


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack("<IIHH", 0, 1, 1, 0),
        struct.pack("<IIHH", 1 << 31, 1, 1, 0),
        struct.pack("<IIHH", 8, 0, 41, 0),
        struct.pack("<IIHHq", 16, 1, 41, 0, 1),
        struct.pack("<IIHHqI", 20, 1, 20, 0, 0, 1 << 30),
        struct.pack("<IIHHI", 12, 1, 44, 0, 1 << 31),
    ],
)
def test_a_broken_frame_ends_the_process(frame: bytes) -> None:
    def client(c: Client) -> None:
        c.wait_for_start()
        c._connection.sendall(frame)
        with pytest.raises(ConnectionEnded):
            c.call("getcwd")

    assert serve(client)[1].signal == 31


def test_unknown_calls_and_large_files_are_refused() -> None:
    def client(c: Client) -> None:
        c.wait_for_start()
        with pytest.raises(CallError) as caught:
            c.request(999, b"")
        assert caught.value.errno == ENOSYS
        fd, _ = c.call("open", AT_FDCWD, b"/tmp/large", O_RDWR | O_CREAT, 0o600)
        c.call("ftruncate", fd, 100 << 20)
        assert errno_of(c, "read_file", AT_FDCWD, b"/tmp/large") == EFBIG
        assert len(c.call("read", fd, 1 << 40)[0]) == 1 << 20
        finish(c)

    serve(client)


numbers = st.integers(-(1 << 63), (1 << 63) - 1)


@given(numbers, st.binary(), st.lists(st.binary()), st.lists(numbers), st.tuples(*[numbers] * 12))
def test_values_survive_the_trip(q: int, s: bytes, l: list[bytes], q_: list[int], stat: tuple[int, ...]) -> None:  # noqa: E741
    values = [q, s, l, q_, stat, [(q, 1, s)], [(stat, s)]]
    assert decode("qslQSDT", encode("qslQSDT", values)) == values


@given(st.text("qslQSDT", max_size=5), st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(signature: str, body: bytes) -> None:
    try:
        values = decode(signature, body)
    except BadFrame:
        return
    assert encode(signature, values) == body
