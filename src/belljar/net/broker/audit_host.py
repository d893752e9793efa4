"""A JSONL file of what happened: for `Network(audit=...)`, or for `Sandbox(on_event=...)` with all that it tells."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any


class AuditLog:
    """Appends one line an event. Safe to share by threads and sandboxes; each line is written whole, or raises OSError.

    With `max_bytes` a file that has grown to that size is renamed to `path.1` (that one to `path.2` ...); the newest
    `keep` of these are kept.

    >>> log = AuditLog("audit.jsonl")                       # doctest: +SKIP
    >>> Sandbox(network=Network.allow("pypi.org", audit=log))  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str], *, max_bytes: int | None = None, keep: int = 5) -> None:
        if (max_bytes is not None and max_bytes <= 0) or keep < 1:
            raise ValueError("max_bytes and keep are at least 1")
        self.path = Path(path)
        self._max_bytes = max_bytes
        self._keep = keep
        self._lock = threading.Lock()
        self._torn = False
        """The file ends in the middle of a line."""
        self._fd = self._open()

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        return os.open(self.path, flags, 0o600)

    def __call__(self, event: Any) -> None:
        """Take an event of the network (a dict) or of a sandbox (kind, time, sandbox and data). OSError."""
        if not isinstance(event, dict):
            event = {"time": event.time, "sandbox": event.sandbox, "kind": event.kind, **event.data}
        line = json.dumps(event, ensure_ascii=True, default=repr, separators=(",", ":")) + "\n"
        with self._lock:
            if self._fd >= 0:
                if self._max_bytes is not None and os.fstat(self._fd).st_size + len(line) > self._max_bytes:
                    self._rotate()
                self._write(line.encode())

    def _write(self, line: bytes) -> None:
        """All of it. What a full disk cuts short is ended before the next line begins."""
        if self._torn:
            line = b"\n" + line
        view = memoryview(line)
        while view:
            written = os.write(self._fd, view)
            self._torn = True
            view = view[written:]
        self._torn = False

    def _rotate(self) -> None:
        if os.fstat(self._fd).st_size == 0:
            return  # a line larger than the limit has a file to itself
        for number in range(self._keep - 1, 0, -1):
            older = Path(f"{self.path}.{number}")
            if older.exists():
                os.replace(older, f"{self.path}.{number + 1}")
        os.replace(self.path, f"{self.path}.1")
        fresh = self._open()
        os.close(self._fd)
        self._fd = fresh
        self._torn = False

    def close(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()
