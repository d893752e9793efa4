"""Reading a descriptor just as far as needed: the rest is left for the next reader."""

from __future__ import annotations

from typing import Final

from belljar.kernel.pipe import PipeEnd
from belljar.kernel.process import Process

FIRST: Final = 256
MOST: Final = 1 << 16


def read_line(process: Process, fd: int, delimiter: bytes = b"\n") -> bytes:
    """Bytes up to and including the delimiter; less at the end of the input. SysError (EINTR included)."""
    file = process.fds[fd]
    process.budget.charge()
    parts: list[bytes] = []
    total = 0
    size = FIRST
    seekable = file.handle.seekable
    while True:
        if seekable:
            start = file.offset
            data = file.read(size)
        elif isinstance(file.handle, PipeEnd):
            data = file.read(_available(file.handle, delimiter))
        else:
            data = file.read(1)
        if not data:
            break
        end = data.find(delimiter) + 1
        if end:
            if end < len(data):
                file.offset = start + end
                data = data[:end]
            parts.append(data)
            break
        parts.append(data)
        total += len(data)
        process.budget.charge_size(total)
        size = min(size * 4, MOST)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _available(end: PipeEnd, delimiter: bytes) -> int:
    """Bytes to read from a pipe without reading past a line: up to the delimiter in its next chunk."""
    chunks = end.pipe.chunks
    if not chunks:
        return 1
    chunk = chunks[0]
    found = bytes(chunk[:MOST]).find(delimiter) + 1
    return found or min(len(chunk), MOST)
