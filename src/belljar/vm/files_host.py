"""The files of a machine as a stream by one of its ports (agent/tree.c): read for a snapshot, written for a machine
that goes on from one. What comes from a machine may be anything: it is bounded and checked.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from enum import IntEnum
from io import IOBase
from typing import Final

import msgspec

from belljar.abi.errno import strerror
from belljar.abi.errors import SnapshotError
from belljar.abi.flags import PATH_MAX
from belljar.abi.limits import GIB
from belljar.image.tree import ENTRIES_MAX, FileTree, Node
from belljar.store.objects import PIECE_BYTES, content_of
from belljar.store.store import Objects
from belljar.store.tree import Kind

_SECONDS: Final = 120.0
"""A machine that says nothing for so long is given up."""
_PIECE: Final = 64 << 10
_HOLE: Final = 0xFFFFFFFF
_ZEROS: Final = bytes(1 << 20)
_ZEROS_MAX: Final = 16 * GIB
_FRAME_MAX: Final = 3 * PATH_MAX
_LENGTH: Final = struct.Struct("<I")
_SIZE: Final = struct.Struct("<Q")
_LOST_MAX: Final = 200
_SEND: Final = 1 << 20


class _Record(IntEnum):
    """Kinds of frames beside those of `Kind`."""

    END = 0
    LOST = 7
    LINK = 8
    TIMES = 9


class _Frame(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    kind: int
    path: bytes
    mode: int = 0
    uid: int = 0
    gid: int = 0
    mtime: int = 0
    link: int = 0
    target: bytes = b""


_decoder: Final = msgspec.msgpack.Decoder(_Frame)
_end: Final = msgspec.msgpack.encode([_Record.END, 0])


def _nonsense(what: str) -> SnapshotError:
    return SnapshotError(f"no snapshot was made: the machine's files make no sense: {what}")


class _Stream:
    def __init__(self, file: IOBase) -> None:
        self._file = file

    def take(self, count: int) -> bytes:
        try:
            data: bytes = self._file.read(count)
        except OSError as error:
            raise SnapshotError(f"no snapshot was made: the machine does not answer: {error}") from None
        if len(data) != count:
            raise SnapshotError("no snapshot was made: the machine ended while its files were read")
        return data

    def length(self) -> int:
        (length,) = _LENGTH.unpack(self.take(4))
        return int(length)


class _Reading:
    def __init__(self, stream: _Stream, bytes_max: int) -> None:
        self.stream = stream
        self.left, self.zeros = bytes_max, _ZEROS_MAX

    def contents(self) -> Iterator[bytes]:
        while length := self.stream.length():
            if length != _HOLE:
                self.left -= length
                if length > _PIECE or self.left < 0:
                    raise _nonsense("more than it has room for")
                yield self.stream.take(length)
                continue
            (zeros,) = _SIZE.unpack(self.stream.take(_SIZE.size))
            self.zeros -= zeros
            if self.zeros < 0:
                raise SnapshotError("no snapshot was made: the sparse files are too large")
            for _ in range(zeros // len(_ZEROS)):
                yield _ZEROS
            yield _ZEROS[: zeros % len(_ZEROS)]


def receive_tree(connection: socket.socket, objects: Objects, bytes_max: int) -> tuple[FileTree, list[bytes]]:
    """The files that a machine sends; gives their tree, and what could not be kept. SnapshotError, StoreError.

    Directories of the system that are not all there have the kind MERGED, and names that are gone are WHITEOUT.
    """
    tree, lost = FileTree(), list[bytes]()
    connection.settimeout(_SECONDS)
    with connection, connection.makefile("rb", 1 << 18) as file:  # the port stays open while either is
        objects.write(_pieces(_Reading(_Stream(file), bytes_max), tree, lost))
    return tree, lost[:_LOST_MAX]


def _pieces(reading: _Reading, tree: FileTree, lost: list[bytes]) -> Iterator[bytes]:
    stream, links = reading.stream, dict[int, Node]()
    for _ in range(ENTRIES_MAX):
        length = stream.length()
        if length > _FRAME_MAX:
            raise _nonsense("a frame that is too long")
        data = stream.take(length)
        if data == _end:
            return
        frame = _decode(data)
        if frame.kind == _Record.LOST:
            lost.append(b"what is no file, or can't be read: /" + frame.path)
            continue
        names, name = _place(tree, frame.path)
        node = Node(Kind(frame.kind), frame.mode, frame.uid, frame.gid, frame.mtime, target=frame.target)
        if node.kind is Kind.FILE:
            yield from node.fill(reading.contents())
        if frame.link and not node.is_directory:
            node = links.setdefault(frame.link, node)
        names[name] = node
    raise _nonsense("too many files")


def _decode(data: bytes) -> _Frame:
    try:
        frame = _decoder.decode(data)
        if frame.kind != _Record.LOST:
            Kind(frame.kind)
    except (msgspec.MsgspecError, ValueError):
        raise _nonsense("a frame of no kind") from None
    return frame


def _place(tree: FileTree, path: bytes) -> tuple[dict[bytes, Node], bytes]:
    """The directory of a path, which came before it, and the name there."""
    *way, name = path.split(b"/")
    node = tree.root
    for each in way:
        below = node.names.get(each)
        if below is None or not below.is_directory:
            raise _nonsense("a file in no directory")
        node = below
    if not name or name in (b".", b"..") or name in node.names:
        raise _nonsense("a name that can't be")
    return node.names, name


def send_tree(connection: socket.socket, objects: Objects, tree: FileTree, leave: frozenset[bytes]) -> None:
    """Lay files over those of a machine; `leave` are paths that stay as they are. SnapshotError, StoreError."""
    with connection:
        connection.settimeout(_SECONDS)
        try:
            held = bytearray()
            for data in _frames(objects, tree, leave):
                held += data
                if len(held) >= _SEND:
                    connection.sendall(held)
                    held.clear()
            connection.sendall(held + _framed(_end))
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connection.recv(_FRAME_MAX):
                answer = (answer + piece)[:_FRAME_MAX]
        except OSError as error:
            raise SnapshotError(
                f"the snapshot's files can't be laid out: the machine does not answer: {error}"
            ) from None
    try:
        error_number, path = msgspec.msgpack.decode(answer, type=tuple[int, bytes])
    except msgspec.MsgspecError:
        raise SnapshotError("the snapshot's files can't be laid out: the machine gave no answer") from None
    if error_number:
        reason = strerror(error_number)
        raise SnapshotError(
            f"the snapshot's files can't be laid out: {path.decode('utf-8', 'replace')[:200]}: {reason}"
        )


def _framed(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _frames(objects: Objects, tree: FileTree, leave: frozenset[bytes]) -> Iterator[bytes]:
    first: dict[int, bytes] = {}
    directories: list[bytes] = []
    for path, node in tree.walk():
        if not path or path in leave:
            continue
        if node.is_directory:
            directories.append(_frame(_Record.TIMES, path, node))
        elif id(node) in first:
            yield _frame(_Record.LINK, path, node, first[id(node)])
            continue
        first[id(node)] = path
        yield _frame(node.kind, path, node, node.target)
        if node.kind is Kind.FILE:
            yield from _contents(objects, node)
    yield from reversed(directories)


def _frame(kind: int, path: bytes, node: Node, target: bytes = b"") -> bytes:
    values = [int(kind), path, node.mode, node.uid, node.gid, node.mtime_ns, 0, target]
    return _framed(msgspec.msgpack.encode(values))


def _contents(objects: Objects, node: Node) -> Iterator[bytes]:
    left = node.size
    for part in node.parts:
        data = content_of(objects.read([part])) if part else b""
        size = min(left, PIECE_BYTES)
        left -= size
        if not part:
            yield _LENGTH.pack(_HOLE) + _SIZE.pack(size)
        yield from (_framed(data[at : at + _PIECE]) for at in range(0, len(data), _PIECE))
    yield _LENGTH.pack(0)
