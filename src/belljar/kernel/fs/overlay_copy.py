"""Copying a file's contents from one server to another, in pieces and with its holes."""

from typing import Final

from belljar.abi.flags import O_RDONLY, O_WRONLY
from belljar.kernel.vfs.server import FileServer, Handle, Node

CHUNK: Final = 1 << 20


def copy_contents(lower: FileServer, old: Node, upper: FileServer, new: Node, size: int | None) -> None:
    """The first `size` bytes (None: all) of a file into an empty one. Errors are those of either side."""
    if size == 0:
        return
    source = lower.open(old, O_RDONLY)
    try:
        target = upper.open(new, O_WRONLY)
        try:
            _copy(source, target, source.size() if size is None else min(size, source.size()))
        finally:
            target.close()
    finally:
        source.close()


def _copy(source: Handle, target: Handle, end: int) -> None:
    offset = 0
    while offset < end:
        data = source.read(offset, min(CHUNK, end - offset))
        if not data:
            break
        if data.count(0) != len(data):  # a piece of zeros is left out, so that a hole stays one
            _write_all(target, offset, data)
        offset += len(data)
    if offset > target.size():
        target.truncate(offset)


def _write_all(target: Handle, offset: int, data: bytes) -> None:
    while data:
        count = target.write(offset, data)
        offset += count
        data = data[count:]
