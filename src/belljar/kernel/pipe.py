"""Pipes and FIFOs: chunks handed from writer to reader by reference, with back pressure and EPIPE."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

from belljar.abi.errno import EAGAIN, EBADF, ENXIO, EPIPE
from belljar.abi.errors import SysError
from belljar.abi.flags import (
    O_ACCMODE,
    O_NONBLOCK,
    O_RDONLY,
    O_RDWR,
    O_WRONLY,
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    S_IFIFO,
)
from belljar.abi.records import Dirent, Stat
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.kernel.vfs.server import FileServer, Handle, Node

CAPACITY: Final = 1 << 16
"""A writer waits while this many bytes are unread. A chunk is taken whole: a pipe holds at most this and one chunk."""


class Pipe:
    """The buffer between the two ends, and the waiters at each."""

    __slots__ = ("chunks", "reader_opens", "readers", "used", "waiters", "writer_opens", "writers")

    def __init__(self, hub: Hub) -> None:
        self.chunks: deque[bytes | memoryview] = deque()
        self.used = 0
        self.readers = 0
        self.writers = 0
        self.reader_opens = 0
        self.writer_opens = 0
        self.waiters = WaitQueue(hub)

    def read(self, size: int, *, nonblocking: bool) -> bytes:
        """The next bytes; b"" once every writer is gone."""
        if size <= 0:
            return b""
        chunks = self.chunks
        while not chunks:
            if self.writers == 0:
                return b""
            if nonblocking:
                raise SysError(EAGAIN)
            self.waiters.wait()
        chunk = chunks.popleft()
        if len(chunk) > size:
            # A view, so that eating a large chunk bite by bite does not copy the rest each time.
            view = memoryview(chunk)
            chunks.appendleft(view[size:])
            chunk = view[:size]
        elif len(chunk) < size and chunks:
            parts, room = [chunk], size - len(chunk)
            while chunks and room:
                part = chunks.popleft()
                if len(part) > room:
                    view = memoryview(part)
                    chunks.appendleft(view[room:])
                    part = view[:room]
                parts.append(part)
                room -= len(part)
            chunk = b"".join(parts)
        self.used -= len(chunk)
        self.waiters.wake_all()
        return bytes(chunk)

    def unread(self, data: bytes) -> None:
        """Put back what was read, in front of everything else."""
        if data:
            self.chunks.appendleft(data)
            self.used += len(data)
            self.waiters.wake_all()

    def write(self, data: bytes, *, nonblocking: bool) -> int:
        """Write all of `data`, waiting for room. EPIPE without readers."""
        if not data:
            return 0
        while True:
            if self.readers == 0:
                raise SysError(EPIPE)
            if self.used < CAPACITY:
                break
            if nonblocking:
                raise SysError(EAGAIN)
            self.waiters.wait()
        self.chunks.append(bytes(data))
        self.used += len(data)
        self.waiters.wake_all()
        return len(data)

    def hold(self, data: bytes) -> None:
        """Fill the pipe with all its input, of any size, and mark it as closed by its writer."""
        self.writer_opens = 1
        if data:
            self.chunks.append(data)
            self.used = len(data)


def discard(_data: bytes) -> None:
    """Discard the data."""


Take = Callable[[bytes], None]


class Outlet(Pipe):
    """A pipe out of the kernel: whoever writes hands its bytes to `take` itself, which may park. Nobody need read."""

    __slots__ = ("busy", "take")

    def __init__(self, hub: Hub, take: Take = discard) -> None:
        super().__init__(hub)
        self.take = take
        self.readers = 1
        self.busy = False
        """Whether something that was written is not handed on yet."""

    def write(self, data: bytes, *, nonblocking: bool) -> int:
        if not data:
            return 0
        while self.busy:
            if nonblocking:
                raise SysError(EAGAIN)
            self.waiters.wait()
        self.busy = True
        try:
            self.take(bytes(data))
        finally:
            self.busy = False
            self.waiters.wake_all()
        return len(data)


class PipeEnd(Handle):
    """One open end (or, of a FIFO opened for both, both)."""

    __slots__ = ("_access", "_came", "pipe")
    seekable = False
    may_be_terminal = False

    def __init__(self, pipe: Pipe, access: int, *, hung_up: bool = False) -> None:
        """`hung_up`: if nobody writes, that is an end already; else it is one when a writer has come and gone."""
        self.nonblocking = False
        self.pipe = pipe
        self._access = access
        self._came = -1 if pipe.writers or hung_up else pipe.writer_opens
        if access != O_WRONLY:
            pipe.readers += 1
            pipe.reader_opens += 1
        if access != O_RDONLY:
            pipe.writers += 1
            pipe.writer_opens += 1
        pipe.waiters.wake_all()

    def reopen(self) -> None:
        """Reopen after a close."""
        self.nonblocking = False
        if self._access != O_WRONLY:
            self.pipe.readers += 1
        if self._access != O_RDONLY:
            self.pipe.writers += 1

    @property
    def has_room(self) -> bool:
        """Whether a write would not wait."""
        return self.pipe.used < CAPACITY

    def read(self, offset: int, size: int) -> bytes:
        if self._access == O_WRONLY:
            raise SysError(EBADF)
        return self.pipe.read(size, nonblocking=self.nonblocking)

    def peek(self) -> bytes | memoryview:
        chunks = self.pipe.chunks
        return chunks[0] if chunks else b""

    def write(self, offset: int | None, data: bytes) -> int:
        if self._access == O_RDONLY:
            raise SysError(EBADF)
        return self.pipe.write(data, nonblocking=self.nonblocking)

    def poll(self) -> int:
        pipe, events = self.pipe, 0
        if self._access != O_WRONLY:
            events |= (POLLIN if pipe.chunks else 0) | (
                POLLHUP if pipe.writers == 0 and pipe.writer_opens != self._came else 0
            )
        if self._access != O_RDONLY:
            events |= (POLLOUT if pipe.used < CAPACITY else 0) | (POLLERR if pipe.readers == 0 else 0)
        return events

    @property
    def waiters(self) -> WaitQueue:
        return self.pipe.waiters

    def close(self) -> None:
        pipe = self.pipe
        if self._access != O_WRONLY:
            pipe.readers -= 1
        if self._access != O_RDONLY:
            pipe.writers -= 1
        if pipe.readers == pipe.writers == 0:
            pipe.chunks.clear()
            pipe.used = 0
        pipe.waiters.wake_all()


class PipeNode(Node):
    """The file behind an anonymous pipe: what fstat shows, and what /dev/fd/N opens again."""

    __slots__ = ("ino", "pipe", "time")

    def __init__(self, pipe: Pipe, ino: int, uid: int, gid: int, time: int) -> None:
        super().__init__(S_IFIFO | 0o600, uid, gid)
        self.pipe = pipe
        self.ino = ino
        self.time = time


class PipeServer(FileServer):
    """Anonymous pipes; mounted nowhere."""

    kind = "pipefs"

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._next_ino = 1
        self._root = Node(0o040500, 0, 0)
        self._fifos: WeakKeyDictionary[Node, Pipe] = WeakKeyDictionary()

    @property
    def root(self) -> Node:
        return self._root

    def new(self, uid: int, gid: int, now: int, pipe: Pipe | None = None) -> PipeNode:
        self._next_ino += 1
        return PipeNode(pipe if pipe is not None else Pipe(self._hub), self._next_ino, uid, gid, now)

    def walk(self, directory: Node, name: str) -> Node:
        raise SysError(ENXIO)

    def locate(self, directory: Node) -> None:
        return None

    def readdir(self, directory: Node) -> list[Dirent]:
        return []

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, PipeNode)
        time = node.time
        return Stat(node.mode, node.ino, self.dev, 1, node.uid, node.gid, 0, time, time, time)

    def open(self, node: Node, flags: int) -> Handle:
        return self.open_fifo(node, flags)

    def open_fifo(self, node: Node, flags: int) -> Handle:
        """Open a FIFO of any server (or a pipe again), waiting for the other side as fifo(7) says.

        ENXIO: nonblocking, for writing, and nobody reads.
        """
        if isinstance(node, PipeNode):
            return PipeEnd(node.pipe, flags & O_ACCMODE, hung_up=True)
        pipe = self._fifos.get(node)
        if pipe is None:
            pipe = self._fifos[node] = Pipe(self._hub)
        access = flags & O_ACCMODE
        if access == O_WRONLY and flags & O_NONBLOCK and pipe.readers == 0:
            raise SysError(ENXIO)
        end = PipeEnd(pipe, access)
        if access != O_RDWR and not flags & O_NONBLOCK:
            try:
                self._wait_for_other_end(pipe, access)
            except BaseException:
                end.close()
                raise
        return end

    def _wait_for_other_end(self, pipe: Pipe, access: int) -> None:
        """Wait until the other end is open, or was opened meanwhile: it may be closed again when we wake."""
        readers, writers = pipe.reader_opens, pipe.writer_opens
        if access == O_RDONLY:
            while pipe.writers == 0 and pipe.writer_opens == writers:
                pipe.waiters.wait()
        else:
            while pipe.readers == 0 and pipe.reader_opens == readers:
                pipe.waiters.wait()
