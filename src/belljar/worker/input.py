"""One input of a command: what its owner gives, written in the order in which it came."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from belljar.abi.errors import SysError
from belljar.kernel.fiber import Hub
from belljar.kernel.pipe import PipeEnd
from belljar.kernel.vfs.openfile import OpenFile

OnTaken = Callable[[bool], None]
"""Called with True when a piece was written, with False if nobody will ever read it."""


class InputQueue:
    """Pieces on their way into a pipe or terminal. One fiber at a time writes, so none overtakes another."""

    __slots__ = ("_ending", "_file", "_hub", "_pieces", "_writing", "closed")

    def __init__(self, hub: Hub, file: OpenFile) -> None:
        """`file`: the end to write to, which is released at the end of the input."""
        self._hub = hub
        self._file = file
        self._pieces: deque[tuple[bytes, OnTaken | None]] = deque()
        self._writing = False
        self._ending = False
        self.closed = False

    def put(self, data: bytes, on_taken: OnTaken | None = None) -> None:
        """Queue a piece. Never waits: the reader may be slower."""
        if self.closed or self._ending:
            if on_taken is not None:
                on_taken(False)
        elif not self._writing and isinstance(self._file.handle, PipeEnd) and self._file.handle.has_room:
            self._write(data, on_taken)
        else:
            self._pieces.append((data, on_taken))
            self._start()

    def end(self) -> None:
        """Close the input after what was queued."""
        self._ending = True
        if not self._writing:
            self.close()

    def close(self) -> None:
        """Close the input now; what is still queued is lost."""
        if self.closed:
            return
        self.closed = True
        self._file.release()
        while self._pieces:
            _, on_taken = self._pieces.popleft()
            if on_taken is not None:
                on_taken(False)

    def _start(self) -> None:
        if not self._writing:
            self._writing = True
            self._hub.spawn(self._run)

    def _run(self) -> None:
        while self._pieces:
            self._write(*self._pieces.popleft())
        self._writing = False
        if self._ending:
            self.close()

    def _write(self, data: bytes, on_taken: OnTaken | None) -> None:
        try:
            self._file.write(data)
        except SysError:  # nobody reads, or the terminal is gone
            taken = False
        else:
            taken = not self.closed
        if on_taken is not None:
            on_taken(taken)
        if not taken:
            self.close()
