"""WASI preview 1: each function against a real kernel, hostile pointers, rights; and a module that runs over it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
import wasmtime

from belljar.engines.calls.client_host import Client
from belljar.engines.wasi import numbers as n
from belljar.engines.wasi.descriptors import LibraryFile
from belljar.engines.wasi.kernel_host import HostWorld, RemoteKernel
from belljar.engines.wasi.linker_host import direct, engine, give_back_zeros, guest_memory
from belljar.engines.wasi.memory import Fault, Memory
from belljar.engines.wasi.numbers import RIGHT
from belljar.engines.wasi.preview1 import Preview1, functions
from tests.engines.rig import serve

SIZE = 1 << 16
PATH, OUT, BUFFER, VECTORS = 1000, 2000, 8192, 3000
READ_WRITE = n.ALL_RIGHTS


class Text:
    """A library file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size]


LIBRARY: dict[bytes, LibraryFile | list[bytes]] = {b"/lib/x": Text(b"library"), b"/lib": [b"x"]}


class Guest:
    """A program's view: its memory, and the functions it imports."""

    def __init__(self, client: Client) -> None:
        self.raw = bytearray(SIZE)
        self.wasi = Preview1(RemoteKernel(client), HostWorld(_leave), LIBRARY)
        self.wasi.memory = Memory(memoryview(self.raw), lambda: SIZE)
        self.call = functions(self.wasi)

    def put(self, at: int, data: bytes) -> tuple[int, int]:
        self.raw[at : at + len(data)] = data
        return at, len(data)

    def path(self, name: str, at: int = PATH) -> tuple[int, int]:
        return self.put(at, name.encode())

    def u32(self, at: int = OUT) -> int:
        return int(struct.unpack_from("<I", self.raw, at)[0])

    def u64(self, at: int = OUT) -> int:
        return int(struct.unpack_from("<Q", self.raw, at)[0])

    def open(self, name: str, oflags: int = 0, rights: int = READ_WRITE, fdflags: int = 0, fd: int = 3) -> int:
        errno = self.call["path_open"](fd, 1, *self.path(name), oflags, rights, n.ALL_RIGHTS, fdflags, OUT)
        return -errno if errno else self.u32()

    def write(self, fd: int, data: bytes) -> int:
        self.put(BUFFER, data)
        self.put(VECTORS, struct.pack("<II", BUFFER, len(data)))
        errno = self.call["fd_write"](fd, VECTORS, 1, OUT)
        return -errno if errno else self.u32()

    def read(self, fd: int, size: int = 100) -> bytes | int:
        self.put(VECTORS, struct.pack("<IIII", BUFFER, 3, BUFFER + 1000, size - 3))
        errno = self.call["fd_read"](fd, VECTORS, 2, OUT)
        if errno:
            return -errno
        count = self.u32()
        return bytes(
            self.raw[BUFFER : BUFFER + min(3, count)] + self.raw[BUFFER + 1000 : BUFFER + 1000 + max(0, count - 3)]
        )


def _leave(code: int) -> int:
    raise SystemExit(code)


def run(body: Callable[[Guest], Any]) -> Any:
    def client(c: Client) -> Any:
        c.wait_for_start()
        result = body(Guest(c))
        c.post("exit", 0, 0, 0)
        return result

    return serve(client)[0]


def test_every_function_is_there() -> None:
    assert set(n.SIGNATURES) <= set(dir(Preview1))
    assert len(n.SIGNATURES) == 46


def test_files() -> None:
    def body(g: Guest) -> None:
        fd = g.open("tmp/f", n.OFLAG_CREAT)
        assert g.write(fd, b"hello") == 5
        assert g.call["fd_seek"](fd, 0, 0, OUT) == 0
        assert g.read(fd) == b"hello"
        assert g.read(fd) == b""
        assert g.call["fd_tell"](fd, OUT) == 0
        assert g.u64() == 5
        assert g.call["fd_seek"](fd, -2, 2, OUT) == 0
        assert g.read(fd) == b"lo"
        assert g.call["fd_seek"](fd, -9, 0, OUT) == n.EINVAL
        assert g.call["fd_filestat_get"](fd, OUT) == 0
        assert (g.raw[OUT + 16], g.u64(OUT + 32)) == (n.REGULAR_FILE, 5)
        assert g.call["fd_filestat_set_size"](fd, 2) == 0
        assert g.call["fd_allocate"](fd, 0, 10) == 0
        assert g.call["fd_filestat_set_times"](fd, 7, 8, 5) == 0
        assert g.call["path_filestat_get"](3, 1, *g.path("tmp/f"), OUT) == 0
        assert (g.u64(OUT + 32), g.u64(OUT + 40), g.u64(OUT + 48)) == (10, 7, 8)
        assert g.call["fd_filestat_set_times"](fd, 7, 8, 3) == n.EINVAL
        assert g.call["fd_close"](fd) == 0
        assert g.call["fd_close"](fd) == n.EBADF
        log = g.open("tmp/f", fdflags=n.FDFLAG_APPEND)
        assert g.write(log, b"end") == 3
        assert g.call["fd_fdstat_get"](log, OUT) == 0
        assert g.raw[OUT + 2] == n.FDFLAG_APPEND

    run(body)


def test_directories_and_links() -> None:
    def body(g: Guest) -> None:
        assert g.call["path_create_directory"](3, *g.path("tmp/d")) == 0
        assert g.call["path_create_directory"](3, *g.path("tmp/d")) == n.EEXIST
        assert g.call["fd_close"](g.open("tmp/d/a", n.OFLAG_CREAT)) == 0
        assert g.call["path_symlink"](*g.path("a", 500), 3, *g.path("tmp/d/l")) == 0
        assert g.call["path_readlink"](3, *g.path("tmp/d/l"), BUFFER, 9, OUT) == 0
        assert g.raw[BUFFER : BUFFER + g.u32()] == b"a"
        assert g.call["path_link"](3, 0, *g.path("tmp/d/a", 500), 3, *g.path("tmp/d/h")) == 0
        assert g.call["path_rename"](3, *g.path("tmp/d/h", 500), 3, *g.path("tmp/d/r")) == 0
        fd = g.open("tmp/d", n.OFLAG_DIRECTORY)
        assert g.call["fd_readdir"](fd, BUFFER, 4096, 0, OUT) == 0
        names, at, end = [], BUFFER, BUFFER + g.u32()
        while at < end:
            cookie, _, length, kind = struct.unpack_from("<QQIB", g.raw, at)
            names.append((bytes(g.raw[at + 24 : at + 24 + length]), kind, cookie))
            at += 24 + length
        assert [name for name, _, _ in names] == [b".", b"..", b"a", b"l", b"r"]
        assert g.call["fd_readdir"](fd, BUFFER, 30, names[1][2], OUT) == 0
        assert g.u32() == 30, "the last entry is cut, so that the caller asks again from there"
        assert g.call["path_unlink_file"](3, *g.path("tmp/d/a")) == 0
        assert g.call["path_remove_directory"](3, *g.path("tmp/d")) == n.FROM_LINUX[39]
        assert g.call["path_filestat_get"](3, 1, *g.path("tmp/d/l"), OUT) == n.ENOENT
        assert g.call["path_filestat_get"](3, 0, *g.path("tmp/d/l"), OUT) == 0

    run(body)


def test_paths_stay_in_their_directory_and_rights_only_shrink() -> None:
    def body(g: Guest) -> None:
        g.call["path_create_directory"](3, *g.path("tmp/d"))
        fd = g.open("tmp/d", n.OFLAG_DIRECTORY)
        assert g.open("../../etc/passwd", fd=fd) == -n.ENOTCAPABLE
        assert g.open("a/../../../etc/passwd", fd=fd) == -n.ENOTCAPABLE
        assert g.open("/etc/passwd", fd=fd) == -n.ENOTCAPABLE
        assert g.open("/etc/passwd") == -n.ENOTCAPABLE
        reader = g.open("etc/passwd", rights=RIGHT["FD_READ"] | RIGHT["FD_FDSTAT_SET_FLAGS"])
        assert reader > 3
        assert g.write(reader, b"x") == -n.ENOTCAPABLE
        assert g.call["fd_fdstat_set_rights"](reader, n.ALL_RIGHTS, 0) == n.ENOTCAPABLE
        assert g.call["fd_fdstat_set_rights"](reader, 0, 0) == 0
        assert g.read(reader) == -n.ENOTCAPABLE
        assert g.call["fd_fdstat_set_rights"](fd, RIGHT["PATH_OPEN"], RIGHT["FD_READ"]) == 0
        assert g.open("new", n.OFLAG_CREAT, rights=RIGHT["FD_WRITE"], fd=fd) == -n.ENOTCAPABLE
        assert g.call["path_create_directory"](fd, *g.path("sub")) == n.ENOTCAPABLE

    run(body)


def test_the_library_is_read_only() -> None:
    def body(g: Guest) -> None:
        fd = g.open("lib/x", rights=RIGHT["FD_READ"])
        assert g.read(fd) == b"library"
        assert g.call["fd_seek"](fd, 3, 0, OUT) == 0
        assert g.read(fd) == b"rary"
        assert g.call["fd_close"](fd) == 0
        assert g.open("lib/x") == -n.EROFS
        assert g.call["path_unlink_file"](3, *g.path("lib/x")) == n.EROFS
        assert g.call["path_filestat_get"](3, 1, *g.path("lib"), OUT) == 0
        assert g.raw[OUT + 16] == n.DIRECTORY

    run(body)


def test_hostile_pointers_are_faults() -> None:
    def body(g: Guest) -> None:
        high = (1 << 32) - 4
        fd = g.open("tmp/f", n.OFLAG_CREAT)
        assert g.call["fd_read"](fd, high, 1, OUT) == n.EFAULT
        assert g.call["fd_write"](fd, VECTORS, 1 << 31, OUT) == n.EFAULT
        g.put(VECTORS, struct.pack("<II", SIZE - 4, 8))
        assert g.call["fd_write"](fd, VECTORS, 1, OUT) == n.EFAULT
        g.put(VECTORS, struct.pack("<II", BUFFER, 8))
        assert g.call["fd_write"](fd, VECTORS, 1, SIZE - 2) == n.EFAULT
        assert g.call["path_open"](3, 1, high, 4, 0, 0, 0, 0, OUT) == n.EFAULT
        assert g.call["path_open"](3, 1, PATH, 1 << 30, 0, 0, 0, 0, OUT) == n.FROM_LINUX[36]
        assert g.call["random_get"](0, high) == n.EFAULT
        assert g.call["clock_time_get"](0, 0, high) == n.EFAULT
        assert g.call["clock_time_get"](99, 0, OUT) == n.EINVAL
        assert g.call["poll_oneoff"](0, 0, 1_000_000, OUT) == n.EINVAL
        assert g.call["fd_prestat_get"](4, OUT) == n.EBADF
        assert g.call["args_get"](high, 0) in (0, n.EFAULT)
        for name in ("sock_accept", "sock_recv", "sock_send", "sock_shutdown"):
            assert g.call[name](*[3] * len(n.SIGNATURES[name])) == n.ENOTSUP

    run(body)


def test_waiting() -> None:
    def body(g: Guest) -> None:
        clock = struct.pack("<QB7xI4xQQH6x", 77, n.SUBSCRIBE_CLOCK, n.CLOCK_MONOTONIC, 10_000_000, 0, 0)
        ready = struct.pack("<QB7xI28x", 78, n.SUBSCRIBE_READ, g.open("etc/passwd", rights=RIGHT["FD_READ"]))
        g.put(BUFFER, clock)
        assert g.call["poll_oneoff"](BUFFER, OUT, 1, 100) == 0
        assert (g.u32(100), g.u64(OUT), g.raw[OUT + 10]) == (1, 77, 0)
        g.put(BUFFER, clock + ready)
        assert g.call["poll_oneoff"](BUFFER, OUT, 2, 100) == 0
        assert (g.u32(100), g.u64(OUT)) == (1, 78)

    run(body)


def test_memory_is_measured_anew_when_it_grew() -> None:
    size = 100
    memory = Memory(memoryview(bytearray(1000)), lambda: size)
    with pytest.raises(Fault):
        memory.write(90, bytes(20))
    size = 200
    memory.write(90, bytes(20))
    with pytest.raises(Fault):
        memory.read(199, 2)


MODULE = """
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "hello\\n")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const 6))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
    (call $exit (i32.load (i32.const 16)))))
"""


def test_zeros_are_given_back_where_the_memory_grew() -> None:
    store = wasmtime.Store(engine())
    wat = """(module (memory (export "memory") 1) (func (export "grow") (param i32) (result i32)
             local.get 0 memory.grow))"""
    instance = wasmtime.Instance(store, wasmtime.Module(store.engine, wat), [])
    exports = instance.exports(store)
    memory, grow = guest_memory(store, exports), exports["grow"]
    assert isinstance(grow, wasmtime.Func)
    assert direct(store, grow)(3) == 1
    memory.write(10, b"low")
    memory.write(2 * SIZE + 5000, b"kept")
    memory.write(3 * SIZE, bytes(SIZE))
    assert give_back_zeros(memory, SIZE) == 3 * SIZE - (16 << 10)
    assert memory.read(0, 20) == bytes(10) + b"low" + bytes(7)
    assert memory.read(2 * SIZE, SIZE).replace(b"\0", b"") == b"kept"
    assert memory.read(3 * SIZE, SIZE) == bytes(SIZE)


def test_a_module_runs_over_it() -> None:
    wasmtime = pytest.importorskip("wasmtime")
    from belljar.engines.wasi.linker_host import Bindings, engine, guest_memory

    def client(c: Client) -> Any:
        c.wait_for_start()
        native = engine()
        store, linker = wasmtime.Store(native), wasmtime.Linker(native)
        bindings = Bindings(linker)
        wasi = Preview1(RemoteKernel(c), HostWorld(_leave))
        bindings.define_all("wasi_snapshot_preview1", n.SIGNATURES, functions(wasi))
        exports = linker.instantiate(store, wasmtime.Module(native, MODULE)).exports(store)
        wasi.memory = guest_memory(store, exports)
        reader, writer = c.call("pipe", 1)
        c.call("dup2", writer, 1, 0)
        with pytest.raises(wasmtime.WasmtimeError, match="ended by the host"):
            exports["_start"](store)
        assert isinstance(bindings.raised, SystemExit)
        said = c.call("read", reader, 100)
        c.post("exit", 0, 0, 0)
        return said, bindings.raised.code

    assert serve(client)[0] == ([b"hello\n"], 6)
