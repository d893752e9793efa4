"""sed's input and output: lines across files, output that remembers a missing newline, w files."""

from __future__ import annotations

from collections import deque

from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_RDONLY, O_TRUNC, O_WRONLY, SEEK_SET
from belljar.kernel.process import Process
from belljar.kernel.stdio import Writer

CHUNK = 1 << 18


class Output:
    """A stream of lines. A last line without a newline gets one only if more follows."""

    def __init__(
        self, process: Process, fd: int, separator: bytes, writer: Writer | None = None, *, unbuffered: bool = False
    ) -> None:
        self.process = process
        self.separator = separator
        self.fd = fd
        self.writer = writer or Writer(process, fd)
        self.missing = False
        self.unbuffered = unbuffered

    def line(self, text: bytes, end: bytes) -> None:
        """Write a line with its terminator, b"" for the last one of a file that has none."""
        if self.missing:
            self.writer.write(self.separator)
            self.missing = False
        self.writer.write(text + end)
        if not end:
            self.missing = True
        if self.unbuffered:
            self.writer.flush()

    def raw(self, data: bytes) -> None:
        if not data:
            return
        if self.missing:
            self.writer.write(self.separator)
            self.missing = False
        self.writer.write(data)
        if self.unbuffered:
            self.writer.flush()

    def complete(self) -> None:
        """Write the newline that is missing, if one is."""
        if self.missing:
            self.writer.write(self.separator)
            self.missing = False

    def close(self) -> None:
        self.writer.flush()
        if self.fd > 2:
            self.process.close(self.fd)


class Reader:
    """The lines of one open file."""

    def __init__(self, process: Process, fd: int, separator: bytes, *, minimal: bool = False) -> None:
        self.process = process
        self.fd = fd
        self.separator = separator
        self.lines: deque[bytes] = deque()
        self.complete = True  # does the last line end in a separator?
        self.finished = False
        self.rest = b""
        self.size = 1 if minimal else CHUNK

    def fill(self) -> bool:
        """Make sure there is a line, if there is one left."""
        parts = [self.rest] if self.rest else []
        held = len(self.rest)
        while not self.lines and not self.finished:
            data = self.process.read(self.fd, self.size)
            if not data:
                self.finished = True
                if parts:
                    self.complete = False
                    self.lines.append(b"".join(parts))
                self.rest = b""
                break
            head, found, tail = data.rpartition(self.separator)
            if not found:
                held += len(data)
                self.process.budget.charge_size(held)
                parts.append(data)
                self.rest = b""
                continue
            parts.append(head)
            self.lines.extend((b"".join(parts) if len(parts) > 1 else head).split(self.separator))
            self.rest = tail
        return bool(self.lines)

    def buffered(self) -> int:
        """Bytes read ahead of the current line."""
        return sum(map(len, self.lines)) + len(self.lines) + len(self.rest)

    def give_back(self) -> None:
        """Leave a seekable standard input where the next program should read on."""
        ahead = self.buffered()
        if self.finished and not self.complete and ahead:
            ahead -= 1
        if not ahead:
            return
        try:
            self.process.seek(self.fd, self.process.seek(self.fd, 0, 1) - ahead, SEEK_SET)
        except SysError:
            return


def create(process: Process, name: str) -> int:
    return process.open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC)


def open_for_reading(process: Process, name: str) -> int:
    return process.open(name, O_RDONLY | O_CLOEXEC)
