"""Buffered output of a program, as C's stdio does it: by the line on a terminal, in large pieces elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belljar.abi.errors import OutputError, SysError

if TYPE_CHECKING:
    from belljar.kernel.process import Process

BUFFER: Final = 1 << 16


class Writer:
    """Collects what a program writes to one descriptor and hands it on in large pieces."""

    __slots__ = ("_fd", "_line_buffered", "_parts", "_process", "_size", "guarded")

    def __init__(self, process: Process, fd: int) -> None:
        self._process = process
        self._fd = fd
        self._parts: list[bytes] = []
        self._size = 0
        self._line_buffered: bool | None = None
        self.guarded = False
        """Whether a failed write is an OutputError rather than a SysError."""

    def write(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size >= BUFFER:
            self.flush()
        elif self._line_buffered is not False:
            if self._line_buffered is None:
                self._line_buffered = self._process.isatty(self._fd)
            if self._line_buffered:
                self.flush()

    def line_buffered(self) -> None:
        """Flush after every write from now on (`grep --line-buffered`, `sed -u`)."""
        self._line_buffered = True
        self.flush()

    def flush(self) -> None:
        if self._parts:
            data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self.discard()
            try:
                self._process.write_all(self._fd, data)
            except SysError as error:
                if self.guarded:
                    raise OutputError(error.errno) from None
                raise

    def reset(self) -> None:
        """Discard the buffer, for execve."""
        if self._parts:
            self.discard()
        self._line_buffered = None
        self.guarded = False

    def discard(self) -> None:
        self._parts = []
        self._size = 0


class _Nowhere(Writer):
    """Discards writes of a program that has ended."""

    __slots__ = ()

    def __init__(self) -> None:
        return

    def write(self, data: bytes) -> None:
        return

    def line_buffered(self) -> None:
        return

    def flush(self) -> None:
        return

    def reset(self) -> None:
        return

    def discard(self) -> None:
        return


NOWHERE: Final = _Nowhere()
