"""/mnt/tools: the owner's functions as files, for programs that call them with values rather than with words.

Open the file of a function, write `{"args": [...], "kwargs": {...}}` and a line's end, and read a line back:
`{"value": ...}`, or `{"error": {"name": ..., "message": ...}}` if it raised. Values are as in `abi/values.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.abi.errno import EFBIG, EINVAL, ENOMEM
from belljar.abi.errors import SysError
from belljar.abi.flags import POLLIN, POLLOUT
from belljar.kernel.fs.synthetic import Device, Folder, SyntheticServer
from belljar.kernel.vfs.server import Handle

PATH: Final = "/mnt/tools"
CALL_MAX: Final = 16 << 20
"""Bytes of one call's arguments."""
HELD_MAX: Final = 64 << 20
"""Bytes of all calls that are being written."""
RDEV: Final = 10 << 8
Call = Callable[[str, bytes], bytes]


class ToolServer(SyntheticServer):
    """The tree; `call` brings a line to the owner's function of a name, and its answer back."""

    kind = "tools"

    def __init__(self, call: Call, now: Callable[[], int]) -> None:
        self._call = call
        self._tools: dict[str, Device] = {}
        self.held = 0
        super().__init__(Folder(lambda: self._tools, self._tools.get), now)

    def add(self, name: str) -> None:
        self._tools[name] = Device(lambda _flags: CallHandle(self, lambda line: self._call(name, line)), RDEV)


class CallHandle(Handle):
    """One caller: calls and answers in turn."""

    __slots__ = ("_answer", "_call", "_parts", "_server", "_size")
    seekable = False
    may_be_terminal = False

    def __init__(self, server: ToolServer, call: Callable[[bytes], bytes]) -> None:
        super().__init__()
        self._server = server
        self._call = call
        self._parts: list[bytes] = []
        self._size = 0
        self._answer = b""

    def write(self, offset: int | None, data: bytes) -> int:
        """EFBIG, ENOMEM; EINVAL for what follows a line's end. Returns when the call that it completes is answered."""
        line, end, rest = bytes(data).partition(b"\n")
        if rest:
            raise SysError(EINVAL)
        if self._size + len(line) > CALL_MAX:
            raise SysError(EFBIG)
        if self._server.held + len(line) > HELD_MAX:
            raise SysError(ENOMEM)
        self._hold(len(line))
        self._parts.append(line)
        if end:
            whole = b"".join(self._parts)
            self._let_go()
            self._answer = self._call(whole) + b"\n"
        return len(data)

    def _hold(self, size: int) -> None:
        self._size += size
        self._server.held += size

    def _let_go(self) -> None:
        self._server.held -= self._size
        self._parts, self._size = [], 0

    def read(self, offset: int, size: int) -> bytes:
        data, self._answer = self._answer[:size], self._answer[size:]
        return data

    def truncate(self, size: int) -> None:
        """Do nothing: nothing is stored."""

    def poll(self) -> int:
        return POLLIN | POLLOUT

    def size(self) -> int:
        return 0

    def close(self) -> None:
        self._let_go()
