"""Reading a line from a descriptor that others share: not one byte past the delimiter is taken."""

from __future__ import annotations

from enum import Enum

from belljar.abi.errors import SysError
from belljar.abi.flags import POLLIN
from belljar.kernel.process import Process

_BLOCK = 4096


class End(Enum):
    """The reason why reading stopped."""

    DELIMITER = "delimiter"
    LIMIT = "limit"
    EOF = "eof"
    TIMEOUT = "timeout"


class Lines:
    """Reads from one descriptor. `deadline` is on the kernel's monotonic clock."""

    def __init__(self, process: Process, fd: int, deadline: float | None = None) -> None:
        self.process = process
        self.fd = fd
        self.deadline = deadline

    def read(self, delimiter: bytes | None, characters: int | None = None) -> tuple[bytes, End]:
        """Bytes up to and including the delimiter (None: there is none), or that many characters. SysError.

        A file is read in blocks and its offset set back; of a pipe only what is wanted of its buffer is taken.
        """
        handle = self.process.fds[self.fd].handle
        if handle.seekable and characters is None:
            return self._read_file(delimiter)
        parts: list[bytes] = []
        total = 0
        left = characters
        while left is None or left > 0:
            available = self._wait()
            if available is None:
                return b"".join(parts), End.TIMEOUT
            size = left if left is not None else len(available) or 1
            if len(available) > 0:
                size = min(size, len(available))
                if delimiter is not None and (at := bytes(available[:size]).find(delimiter)) >= 0:
                    size = at + 1
            elif delimiter is not None:
                size = 1
            data = self.process.read(self.fd, size)
            if not data:
                return b"".join(parts), End.EOF
            parts.append(data)
            total += len(data)
            self.process.budget.charge_size(total)
            if delimiter is not None and data.endswith(delimiter):
                return b"".join(parts), End.DELIMITER
            if characters is not None:
                left = characters - _count_characters(b"".join(parts))
        return b"".join(parts), End.LIMIT

    def _read_file(self, delimiter: bytes | None) -> tuple[bytes, End]:
        process, fd = self.process, self.fd
        parts: list[bytes] = []
        total = 0
        block = _BLOCK
        while True:
            data = process.read(fd, block)
            if not data:
                return b"".join(parts), End.EOF
            at = data.find(delimiter) if delimiter is not None else -1
            if at >= 0:
                extra = len(data) - at - 1
                if extra:
                    process.fds[fd].offset -= extra
                    data = data[: at + 1]
                parts.append(data)
                return b"".join(parts) if len(parts) > 1 else data, End.DELIMITER
            parts.append(data)
            total += len(data)
            process.budget.charge_size(total)
            block = min(block * 2, 1 << 20)

    def _wait(self) -> bytes | memoryview | None:
        """Wait for data; returns what can be peeked (b"" if only a read can tell), None at the deadline. EINTR."""
        handle = self.process.fds[self.fd].handle
        available = handle.peek()
        if available:
            return available
        if self.deadline is not None:
            left = self.deadline - self.process.kernel.hub.clock.monotonic()
            if not self.process.poll({self.fd: POLLIN}, max(left, 0)):
                return None
        elif available is not None:
            self.process.poll({self.fd: POLLIN})
        return handle.peek() or b""


def is_ready(process: Process, fd: int) -> bool:
    """Whether a read would not block (`read -t 0`)."""
    try:
        return bool(process.poll({fd: POLLIN}, 0))
    except SysError:
        return False


def _count_characters(data: bytes) -> int:
    """Count complete characters: a broken sequence counts by the byte, one cut off at the end not yet."""
    text = data.decode("utf-8", "surrogateescape")
    tail = 0
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            tail = back if needed > back else 0
            break
        if byte < 0x80:
            break
    return len(text) - tail
