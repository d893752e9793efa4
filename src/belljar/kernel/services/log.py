"""A log that is bounded: a file that is set aside when it is full, and a few older ones beside it."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_NOFOLLOW, O_RDONLY, O_WRONLY
from belljar.abi.paths import dirname
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.view import View

LOG_MAX: Final = 1 << 20
"""Bytes after which a log is set aside."""
OLDER: Final = 2
"""Logs that are kept beside the one that is written: NAME.log.1 is the latest of them."""


class Log:
    """Written by init with root's rights; a guest that removes or replaces it only loses its own log."""

    def __init__(self, view: View, path: str) -> None:
        self._view = view
        self.path = path
        self._file: OpenFile | None = None
        self._size = 0
        self.lost = 0
        """Bytes that could not be written: the disk is full."""

    def write(self, data: bytes) -> None:
        """Append. Never raises: a program must not fail because of its log."""
        try:
            file = self._open()
            if self.lost:
                note = b"[%d bytes of this log were lost: no room]\n" % self.lost
                self.lost = 0
                self._size += file.write(note)
            rest = data
            while rest:
                rest = rest[file.write(rest) :]
            self._size += len(data)
        except SysError:
            self.lost += len(data)
            self.close()

    def _open(self) -> OpenFile:
        if self._size >= LOG_MAX:
            self._rotate()
        if self._file is None:
            self._view.makedirs(dirname(self.path), 0o755)
            flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW
            self._file = self._view.open(self.path, flags, 0o644).retain()
            self._size = self._file.stat().size
        return self._file

    def _rotate(self) -> None:
        self.close()
        for number in range(OLDER, 0, -1):
            before = self.path if number == 1 else f"{self.path}.{number - 1}"
            with suppress(SysError):
                self._view.rename(before, f"{self.path}.{number}")

    def close(self) -> None:
        file, self._file, self._size = self._file, None, 0
        if file is not None:
            file.release()

    def remove(self) -> None:
        self.close()
        for path in (self.path, *(f"{self.path}.{number}" for number in range(1, OLDER + 1))):
            with suppress(SysError):
                self._view.unlink(path)


def read_log(view: View, path: str, lines: int | None = None) -> bytes:
    """What a log says, older ones first; with `lines`, the last so many lines. b"" if there is none."""
    parts: list[bytes] = []
    for name in (path, *(f"{path}.{number}" for number in range(1, OLDER + 1))):
        with suppress(SysError):
            parts.insert(0, _read(view, name))
        if lines is not None and sum(part.count(b"\n") for part in parts) > lines:
            break
    data = b"".join(parts)
    return data if lines is None else b"".join(data.splitlines(keepends=True)[-lines:] if lines else [])


def _read(view: View, path: str) -> bytes:
    file = view.open(path, O_RDONLY | O_NOFOLLOW).retain()
    try:
        parts: list[bytes] = []
        while len(parts) < 64 and (data := file.read(LOG_MAX)):
            parts.append(data)
        return b"".join(parts)[-2 * LOG_MAX :]
    finally:
        file.release()
