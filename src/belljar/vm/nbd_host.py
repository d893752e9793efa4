"""Serves a disk to QEMU over NBD, on a socket pair, by a thread; and calls block stores, within a time limit."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from belljar.abi.errno import EINVAL, EIO, ENOSPC, EPERM
from belljar.vm import nbd
from belljar.vm.blocks import Disk
from belljar.vm.blockstore import (
    BlockContext,
    BlockRange,
    BlockStore,
    BlockStoreError,
    Chunk,
    check_block_size,
    check_chunks,
    check_indices,
)

STORE_SECONDS: Final = 30.0
"""Time limit of one call of a block store's."""
Report = Callable[[str, dict[str, Any]], None]


class FileBase:
    """An image in a file."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        data = os.pread(self._fd, length, offset)
        while len(data) < length:
            more = os.pread(self._fd, length - len(data), offset + len(data))
            if not more:
                raise OSError(EIO, "the base image is cut")
            data += more
        return data

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class StoreCalls:
    """A user's store, called by a thread of its own; async methods run on an event loop there."""

    def __init__(self, store: BlockStore, context: BlockContext, seconds: float = STORE_SECONDS) -> None:
        self.block_size = check_block_size(store)
        self._store = store
        self._context = context
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="belljar-blocks")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._late: Future[Any] | None = None

    def _call(self, name: str, *arguments: Any) -> Any:
        if self._late is not None and not self._late.done():
            raise BlockStoreError("the block store has not come back from an earlier call")
        self._late = None
        future = self._thread.submit(self._run, name, *arguments)
        try:
            return future.result(self._seconds)
        except TimeoutError:
            self._late = future
            raise BlockStoreError(f"{name}() of the block store took longer than {self._seconds:g} s") from None
        except BlockStoreError:
            raise
        except Exception as error:
            raise BlockStoreError(f"{name}() of the block store failed: {type(error).__name__}: {error}") from error

    def _run(self, name: str, *arguments: Any) -> Any:
        found = getattr(self._store, name)(*arguments, self._context)
        if not inspect.isawaitable(found):
            return found
        if self._loop is None:
            self._loop = asyncio.new_event_loop()

        async def wait() -> Any:
            return await found

        return self._loop.run_until_complete(wait())

    def indices(self) -> set[int]:
        count = -(-self._context.size // self.block_size)
        return check_indices(self._call("list"), count)

    def read(self, wanted: BlockRange) -> dict[int, bytes]:
        return check_chunks(self._call("read", wanted), wanted, self.block_size)

    def write(self, chunks: list[Chunk]) -> None:
        self._call("write", chunks)

    def flush(self) -> None:
        self._call("flush")

    def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and (self._late is None or self._late.done()):
            self._thread.submit(loop.close)
        self._thread.shutdown(wait=False)


class DiskServer:
    """Serves one client, QEMU, until it goes away; `close` ends that and stores what is buffered."""

    def __init__(self, disk: Disk, report: Report, *, read_only: bool = False) -> None:
        self.disk = disk
        self._report = report
        self._read_only = read_only
        self.lock = threading.Lock()
        """Held while the disk is used."""
        self._ours, self.theirs = socket.socketpair()
        for end in (self._ours, self.theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self._thread = threading.Thread(target=self._serve, name="belljar-nbd", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self._negotiate()
            while self._answer():
                pass
        except (OSError, EOFError, nbd.NbdError):
            pass
        finally:
            self._ours.close()

    def _negotiate(self) -> None:
        self._ours.sendall(nbd.GREETING)
        self._exactly(4)
        while True:
            option, length = nbd.parse_option(self._exactly(nbd.OPTION_HEAD))
            self._exactly(length)
            said, done = nbd.answer_option(option, self.disk.size, read_only=self._read_only)
            self._ours.sendall(said)
            if done:
                return

    def _answer(self) -> bool:
        request = nbd.parse_request(self._exactly(nbd.REQUEST_HEAD))
        if request.command == nbd.Command.DISCONNECT:
            return False
        data = memoryview(self._exactly(request.length)) if request.command == nbd.Command.WRITE else memoryview(b"")
        found: bytes = b""
        try:
            with self.lock:
                found = self._do(request, data)
            error = 0
        except BlockStoreError as problem:
            error = EIO
            self._report("store", {"error": str(problem)})
        except OSError as problem:
            error = problem.errno if problem.errno in (EINVAL, ENOSPC, EPERM) else EIO
            if error in (EIO, ENOSPC):
                self._report("store", {"error": problem.strerror or str(problem)})
        self._ours.sendall(nbd.answer(request.cookie, error))
        if request.command == nbd.Command.READ and not error:
            self._ours.sendall(found)
        return True

    def _do(self, request: nbd.Request, data: memoryview) -> bytes:
        if request.offset + request.length > self.disk.size and request.command != nbd.Command.FLUSH:
            raise OSError(EINVAL, "beyond the end of the disk")
        match request.command:
            case nbd.Command.READ:
                return self.disk.read(request.offset, request.length)
            case nbd.Command.WRITE if not self._read_only:
                self.disk.write(request.offset, data)
                if request.flags & nbd.FUA:
                    self.disk.flush()
            case nbd.Command.WRITE:
                raise OSError(EPERM, "the disk is read-only")
            case nbd.Command.FLUSH:
                self.disk.flush()
            case _:
                raise OSError(EINVAL, "no such request")
        return b""

    def _exactly(self, count: int) -> bytes:
        if count == 0:
            return b""
        data = bytearray(count)
        view = memoryview(data)
        at = 0
        while at < count:
            received = self._ours.recv_into(view[at:])
            if not received:
                raise EOFError
            at += received
        return bytes(data)

    def close(self) -> None:
        """Stop serving. What was buffered is stored, if it can be. Idempotent."""
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
        self.theirs.close()
        self._thread.join(2 * STORE_SECONDS)
        try:
            with self.lock:
                self.disk.flush()
        except (OSError, BlockStoreError) as problem:
            self._report("store", {"error": f"what the machine wrote last is not kept: {problem}"})
