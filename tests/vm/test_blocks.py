"""Disks of blocks, block stores, and the NBD server over them."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.vm import stores_host
from belljar.vm.blocks import Disk
from belljar.vm.blockstore import BlockContext, BlockRange, BlockStore, BlockStoreError, Chunk
from belljar.vm.nbd_host import DiskServer, StoreCalls

SIZE = 64 * 512
CONTEXT = BlockContext("sha256:base", SIZE)


class Bytes:
    """A base in memory."""

    def __init__(self, data: bytes) -> None:
        self.data, self.size = data, len(data)

    def read(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]


BASE = Bytes(bytes(range(256)) * (SIZE // 256))


class Memory(BlockStore):
    """A store of the user's own, with faults."""

    block_size = 512

    def __init__(self) -> None:
        self.blocks: dict[int, bytes] = {}
        self.fail: set[str] = set()
        self.given: list[bytes] = []
        self.answer: Callable[[list[Chunk]], Any] = lambda chunks: chunks

    def _check(self, name: str) -> None:
        if name in self.fail:
            raise OSError(f"no {name} today")

    def list(self, context: BlockContext) -> Sequence[int]:
        self._check("list")
        return [*self.blocks]

    def read(self, range: BlockRange, context: BlockContext) -> Sequence[Chunk]:
        self._check("read")
        found = [(index, data) for index, data in self.blocks.items() if range.start <= index < range.stop]
        answer: Sequence[Chunk] = self.answer(found)
        return answer

    def write(self, chunks: Sequence[Chunk], context: BlockContext) -> None:
        self._check("write")
        self.given += [data for _, data in chunks]
        self.blocks.update(chunks)

    def flush(self, context: BlockContext) -> None:
        self._check("flush")


class Later(BlockStore):
    """The same, asynchronous."""

    block_size = 512

    def __init__(self) -> None:
        self._kept = Memory()

    async def list(self, context: BlockContext) -> Sequence[int]:
        await asyncio.sleep(0)
        return self._kept.list(context)

    async def read(self, range: BlockRange, context: BlockContext) -> Sequence[Chunk]:
        await asyncio.sleep(0)
        return self._kept.read(range, context)

    async def write(self, chunks: Sequence[Chunk], context: BlockContext) -> None:
        await asyncio.sleep(0)
        self._kept.write(chunks, context)


STORES: dict[str, Callable[[Path], BlockStore]] = {
    "directory": lambda path: BlockStore.directory(path / "blocks", 512),
    "sqlite": lambda path: BlockStore.sqlite(path / "blocks.db", 512),
    "fsspec": lambda path: BlockStore.fsspec(f"file://{path}/objects", 512),
    "own": lambda path: Memory(),
    "async": lambda path: Later(),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlockStore]:
    made = STORES[request.param](tmp_path)
    release = made.lease()
    yield made
    release()


def test_a_store_gives_what_it_was_given(store: BlockStore) -> None:
    with closing(StoreCalls(store, CONTEXT)) as calls:
        assert calls.indices() == set()
        calls.write([(1, b"a" * 512), (63, b"b" * 512)])
        calls.write([(1, b"c" * 512)])
        assert calls.read(BlockRange(0, 3)) == {1: b"c" * 512}
        calls.flush()
        assert calls.indices() == {1, 63}
        assert calls.read(BlockRange(1, 64)) == {1: b"c" * 512, 63: b"b" * 512}


@pytest.mark.parametrize("name", ["directory", "sqlite", "fsspec"])
def test_a_store_of_another_base_is_refused(name: str, tmp_path: Path) -> None:
    store = STORES[name](tmp_path)
    release = store.lease()
    with closing(StoreCalls(store, CONTEXT)) as calls:
        calls.indices()
        calls.write([(1, b"a" * 512)])
        calls.flush()
    release()
    again = STORES[name](tmp_path)
    release = again.lease()
    with (
        closing(StoreCalls(again, BlockContext("sha256:other", SIZE))) as calls,
        pytest.raises(BlockStoreError, match="lie over sha256:base"),
    ):
        calls.indices()
    with closing(StoreCalls(again, CONTEXT)) as calls:
        assert calls.read(BlockRange(0, 9)) == {1: b"a" * 512}
    release()


@pytest.mark.parametrize("name", ["directory", "sqlite", "fsspec"])
def test_two_at_once_are_refused(name: str, tmp_path: Path) -> None:
    release = STORES[name](tmp_path).lease()
    with pytest.raises(BlockStoreError, match="in use"):
        STORES[name](tmp_path).lease()
    release()
    STORES[name](tmp_path).lease()()


def is_refused(calls: StoreCalls) -> bool:
    try:
        calls.write([(1, b"a" * 512)])
    except BlockStoreError as error:
        return "another program's by now" in str(error)
    return False


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_store_that_another_program_took_over_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a machine was asleep for longer than its lease."""
    monkeypatch.setattr(stores_host, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(stores_host, "_RENEW_SECONDS", 0.05)
    store = STORES["fsspec"](tmp_path)
    release = store.lease()
    with closing(StoreCalls(store, CONTEXT)) as calls:
        calls.indices()
        lease = tmp_path / "objects/lease.json"
        first = lease.read_text()
        wait_until(lambda: lease.read_text() != first)  # it is renewed
        taken = json.dumps(["another", time.time()])
        wait_until(lambda: bool(lease.write_text(taken)) and is_refused(calls))  # it may be renewing this very moment
    release()
    assert lease.read_text() == taken


@pytest.mark.parametrize("size", [0, 100, 513, 1 << 25, True, "512"])
def test_block_sizes_that_make_no_sense(size: Any) -> None:
    store = Memory()
    store.block_size = size
    with pytest.raises(BlockStoreError, match="block_size"):
        StoreCalls(store, CONTEXT)


WRITES = st.lists(st.tuples(st.integers(0, SIZE - 1), st.binary(min_size=1, max_size=1500), st.booleans()), max_size=25)


@given(WRITES, st.sampled_from([None, 1024, 4096]))
@settings(deadline=None)
def test_a_disk_is_an_array_of_bytes(writes: list[tuple[int, bytes, bool]], room: int | None) -> None:
    store = Memory()
    calls = None if room is None else StoreCalls(store, CONTEXT)
    disk = Disk(BASE, calls, room or 1 << 20)
    model = bytearray(BASE.data)
    for offset, data, flush in writes:
        data = data[: SIZE - offset]
        disk.write(offset, memoryview(data))
        model[offset : offset + len(data)] = data
        assert room is None or disk.dirty_bytes <= room
        if flush:
            disk.flush()
        assert disk.read(0, SIZE) == bytes(model)
    disk.flush()
    if calls is not None:
        again = Disk(BASE, StoreCalls(store, CONTEXT))
        assert again.read(0, SIZE) == bytes(model)
        calls.close()


def test_bytes_handed_to_a_store_never_change() -> None:
    store = Memory()
    disk = Disk(BASE, StoreCalls(store, CONTEXT))
    for value in (b"1", b"2", b"3"):
        disk.write(0, memoryview(value * 512))
        disk.flush()
    assert [data[:1] for data in store.given] == [b"1", b"2", b"3"]


def test_an_ephemeral_disk_has_a_quota() -> None:
    disk = Disk(BASE, None, 3 * 65_536)
    assert disk.block_size == 65_536
    small = Disk(Bytes(bytes(10 * 65_536)), None, 2 * 65_536)
    small.write(0, memoryview(b"x"))
    small.write(65_536, memoryview(b"x"))
    with pytest.raises(OSError, match="max_dirty_bytes"):
        small.write(2 * 65_536, memoryview(b"x"))
    small.write(5, memoryview(b"y"))  # a block that it has
    assert small.read(0, 6) == b"x\0\0\0\0y"


LIES: dict[str, Callable[[list[Chunk]], Any]] = {
    "short": lambda chunks: [(index, data[:-1]) for index, data in chunks],
    "long": lambda chunks: [(index, data + b"x") for index, data in chunks],
    "missing": lambda chunks: [],
    "another": lambda chunks: [(index + 1, data) for index, data in chunks],
    "twice": lambda chunks: [*chunks, *chunks],
    "no list": lambda chunks: None,
    "no pairs": lambda chunks: [data for _, data in chunks],
    "text": lambda chunks: [(index, "x" * 512) for index, _ in chunks],
}


@pytest.mark.parametrize("lie", LIES)
def test_a_store_that_lies_is_an_error_never_data(lie: str) -> None:
    store = Memory()
    store.blocks[5] = b"z" * 512
    store.answer = LIES[lie]
    disk = Disk(BASE, StoreCalls(store, CONTEXT))
    with pytest.raises(BlockStoreError):
        disk.read(5 * 512, 10)
    assert disk.read(0, 512) == BASE.data[:512]
    store.answer = lambda chunks: chunks
    assert disk.read(5 * 512, 10) == b"z" * 10


def test_what_could_not_be_stored_stays() -> None:
    store = Memory()
    disk = Disk(BASE, StoreCalls(store, CONTEXT))
    disk.write(0, memoryview(b"kept" * 128))
    for call in ("write", "flush"):
        store.fail = {call}
        with pytest.raises(BlockStoreError, match=f"{call} today"):
            disk.flush()
        assert disk.read(0, 4) == b"kept"
    store.fail = set()
    disk.flush()
    assert store.blocks[0] == b"kept" * 128


def test_a_store_that_is_slow_is_an_error() -> None:
    import threading

    store, go = Memory(), threading.Event()
    store.answer = lambda chunks: [go.wait(60), chunks][1]
    store.blocks[0] = b"s" * 512
    calls = StoreCalls(store, CONTEXT, seconds=0.05)
    disk = Disk(BASE, calls)
    with pytest.raises(BlockStoreError, match="longer than"):
        disk.read(0, 1)
    with pytest.raises(BlockStoreError, match="not come back"):
        disk.read(0, 1)
    go.set()
    for _ in range(1500):
        try:
            assert disk.read(0, 1) == b"s"
            break
        except BlockStoreError:
            threading.Event().wait(0.02)
    else:
        pytest.fail("the store did not come back")


# The server, as QEMU talks to it, and as somebody who took QEMU over does.


class Client:
    def __init__(self, server: DiskServer) -> None:
        self.socket = server.theirs
        self.socket.settimeout(60)
        assert self.take(18) == b"NBDMAGICIHAVEOPT\0\3"
        self.socket.sendall(struct.pack(">I", 3))

    def take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def go(self) -> int:
        self.socket.sendall(struct.pack(">QII", 0x49484156454F5054, 7, 6) + bytes(6))
        size = 0
        while True:
            _, _, kind, length = struct.unpack(">QIII", self.take(20))
            data = self.take(length)
            if kind == 3 and data[:2] == b"\0\0":
                (size,) = struct.unpack(">Q", data[2:10])
            if kind == 1:
                return size

    def request(self, command: int, offset: int, length: int, data: bytes = b"", flags: int = 0) -> tuple[int, bytes]:
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, flags, command, 7, offset, length) + data)
        magic, error, cookie = struct.unpack(">IIQ", self.take(16))
        assert (magic, cookie) == (0x67446698, 7)
        return error, self.take(length) if command == 0 and not error else b""


@pytest.fixture
def served() -> Iterator[tuple[Memory, DiskServer, list[dict[str, Any]]]]:
    store, events = Memory(), list[dict[str, Any]]()
    server = DiskServer(Disk(BASE, StoreCalls(store, CONTEXT)), lambda kind, data: events.append(data))
    yield store, server, events
    store.fail = set()
    server.close()


Served = tuple[Memory, DiskServer, list[dict[str, Any]]]


def test_nbd(served: Served) -> None:
    store, server, _ = served
    client = Client(server)
    assert client.go() == SIZE
    assert client.request(0, 512, 4) == (0, BASE.data[512:516])
    assert client.request(1, 100, 5, b"hello") == (0, b"")
    assert client.request(0, 99, 7)[1] == BASE.data[99:100] + b"hello" + BASE.data[105:106]
    assert not store.blocks
    assert client.request(3, 0, 0)[0] == 0
    assert store.blocks[0][100:105] == b"hello"
    assert client.request(1, 0, 1, b"x", flags=1)[0] == 0
    assert store.blocks[0][:1] == b"x"


@pytest.mark.parametrize("fault", ["read", "write", "flush"])
def test_faults_are_io_errors_and_events(served: Served, fault: str) -> None:
    store, server, events = served
    client = Client(server)
    client.go()
    client.request(1, 0, 512, b"a" * 512, flags=1)
    store.fail = {fault}
    if fault == "read":
        assert client.request(0, 0, 1)[0] == 5
    else:
        client.request(1, 512, 1, b"b")
        assert client.request(3, 0, 0)[0] == 5
    assert f"{fault} today" in events[0]["error"]
    store.fail = set()
    assert client.request(0, 0, 1) == (0, b"a")


ATTACKS = {
    "an offset beyond the end": ((0, SIZE, 1), 22),
    "a length beyond the end": ((0, SIZE - 1, 2), 22),
    "an offset of all ones": ((0, (1 << 64) - 1, 1), 22),
    "no such command": ((9, 0, 0), 22),
    "trim": ((4, 0, 512), 22),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_requests_that_make_no_sense(served: Served, attack: str) -> None:
    client = Client(served[1])
    client.go()
    request, error = ATTACKS[attack]
    assert client.request(*request)[0] == error
    assert client.request(0, 0, 1) == (0, BASE.data[:1])


BREAKS = {
    "no magic": struct.pack(">IHHQQI", 1, 0, 0, 0, 0, 1),
    "a read of 4 GiB": struct.pack(">IHHQQI", 0x25609513, 0, 0, 0, 0, 0xFFFFFFFF),
    "a write of 4 GiB": struct.pack(">IHHQQI", 0x25609513, 0, 1, 0, 0, 0xFFFFFFFF),
    "disconnect": struct.pack(">IHHQQI", 0x25609513, 0, 2, 0, 0, 0),
}


@pytest.mark.parametrize("attack", BREAKS)
def test_what_ends_the_connection(served: Served, attack: str) -> None:
    client = Client(served[1])
    client.go()
    client.socket.sendall(BREAKS[attack])
    with pytest.raises((EOFError, ConnectionError)):
        client.take(1)


@pytest.mark.parametrize("option", [(1, 1 << 20), (0xFFFFFFFF, 0xFFFFFFFF), (2, 0)])
def test_options_that_end_the_connection(served: Served, option: tuple[int, int]) -> None:
    client = Client(served[1])
    client.socket.sendall(struct.pack(">QII", 0x49484156454F5054, *option))
    with pytest.raises((EOFError, ConnectionError)):
        client.take(1)


def test_a_client_that_goes_away_in_the_middle(served: Served) -> None:
    client = Client(served[1])
    client.go()
    client.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 1, 0, 0, 4096) + b"half")
    client.socket.shutdown(socket.SHUT_WR)
    with pytest.raises((EOFError, ConnectionError)):
        client.take(1)
    assert served[1].disk.read(0, 16) == BASE.data[:16]
