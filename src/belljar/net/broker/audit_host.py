"""A JSONL file of what happened: for `Network(audit=...)`, or for `Sandbox(on_event=...)` with all that it tells."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any


class AuditLog:
    """Appends one line an event. Safe to share by threads and sandboxes; each line is written whole.

    >>> log = AuditLog("audit.jsonl")                       # doctest: +SKIP
    >>> Sandbox(network=Network.allow("pypi.org", audit=log))  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)

    def __call__(self, event: Any) -> None:
        """Take an event of the network (a dict) or of a sandbox (kind, time, sandbox and data)."""
        if not isinstance(event, dict):
            event = {"time": event.time, "sandbox": event.sandbox, "kind": event.kind, **event.data}
        line = json.dumps(event, ensure_ascii=True, default=repr, separators=(",", ":")) + "\n"
        with self._lock:
            if self._fd >= 0:
                os.write(self._fd, line.encode())

    def close(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()
