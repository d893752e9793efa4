"""An open descriptor of a process as a Python file, for libraries that read and write archives."""

from __future__ import annotations

from io import RawIOBase, UnsupportedOperation
from typing import Any

from belljar.abi.errno import EINVAL, ESPIPE
from belljar.abi.errors import SysError
from belljar.kernel.process import Process


class GuestFile(RawIOBase):
    """Reads, writes and seeks a guest's file; every call is a call of the process, charged as such."""

    def __init__(self, process: Process, fd: int) -> None:
        super().__init__()
        self._process = process
        self._fd = fd

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._process.fds[self._fd].handle.seekable

    def readinto(self, buffer: Any) -> int:
        data = self._process.read(self._fd, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        raw = bytes(data)
        self._process.budget.charge(len(raw) >> 10)
        self._process.write_all(self._fd, raw)
        return len(raw)

    def seek(self, offset: int, whence: int = 0) -> int:
        try:
            return self._process.seek(self._fd, offset, whence)
        except SysError as error:
            if error.errno == ESPIPE:
                raise UnsupportedOperation("not seekable") from None
            if error.errno == EINVAL:
                raise OSError(
                    EINVAL, error.reason
                ) from None  # before the beginning: what zipfile expects of a short file
            raise

    def tell(self) -> int:
        return self.seek(0, 1)

    def truncate(self, size: int | None = None) -> int:
        at = self.tell() if size is None else size
        self._process.fds[self._fd].truncate(at)
        return at
