"""QEMU's monitor (QMP): commands and answers, one JSON text a line, over a socket that QEMU was started with."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Any, Final

import msgspec

LINE_MAX: Final = 1 << 20
_SECONDS: Final = 60.0
_CANCEL_SECONDS: Final = 10.0
_LOOK: Final = 0.002


class MonitorError(RuntimeError):
    """QEMU refused a command, or has ended."""


class Monitor:
    """The owner's end. QEMU may be a guest's by now: what it says is bounded, and checked where it is used."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.settimeout(_SECONDS)
        self._buffer = b""
        self._lock = threading.Lock()
        self._greeted = False

    def call(self, command: str, fd: int | None = None, **arguments: Any) -> Any:
        """What a command gives; a descriptor may go with it. MonitorError."""
        with self._lock:
            if not self._greeted:
                self._greeted = True
                self._line()
                self._call("qmp_capabilities", None, {})
            return self._call(command, fd, {name.replace("_", "-"): value for name, value in arguments.items()})

    def _call(self, command: str, fd: int | None, arguments: dict[str, Any]) -> Any:
        message = msgspec.json.encode({"execute": command, "arguments": arguments})
        try:
            if fd is None:
                self._connection.sendall(message)
            else:
                socket.send_fds(self._connection, [message], [fd])
        except OSError as error:
            raise MonitorError(f"QEMU has ended: {error}") from None
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            answer = self._line()
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise MonitorError(f"{command}: {str(answer['error'])[:300]}")
        raise MonitorError(f"{command}: QEMU does not answer")

    def _line(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            try:
                data = self._connection.recv(65536)
            except OSError as error:
                raise MonitorError(f"QEMU does not answer: {error}") from None
            if not data or len(self._buffer) > LINE_MAX:
                raise MonitorError("QEMU has ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.MsgspecError:
            raise MonitorError("QEMU does not speak QMP") from None

    def save(self, fd: int, *, without_memory: bool, seconds: float = _SECONDS) -> None:
        """Write the state of the stopped machine to a descriptor. MonitorError."""
        self.begin_saving(fd, without_memory=without_memory)
        self.finish_saving(seconds)

    def begin_saving(self, fd: int, *, without_memory: bool) -> None:
        """Have the state written. MonitorError."""
        self._capability(without_memory)
        self.call("migrate-set-parameters", max_bandwidth=1 << 40, downtime_limit=2000)
        self.call("getfd", fd, fdname="state")
        self.call("migrate", uri="fd:state")

    def finish_saving(self, seconds: float = _SECONDS) -> None:
        """Wait until the state is written. MonitorError."""
        self._wait(seconds)

    def cancel_saving(self) -> None:
        """Have a state that is being written given up; the machine can go on then. MonitorError."""
        self.call("migrate_cancel")
        with suppress(MonitorError):  # most often that it was cancelled
            self._wait(_CANCEL_SECONDS)

    def load(self, fd: int, *, without_memory: bool, seconds: float = _SECONDS) -> None:
        """Take over a saved state; the machine is stopped then. MonitorError."""
        self._capability(without_memory)
        self.call("getfd", fd, fdname="state")
        self.call("migrate-incoming", uri="fd:state")
        self._wait(seconds)

    def _capability(self, without_memory: bool) -> None:
        self.call("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": without_memory}])

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            found = self.call("query-migrate")
            status = found.get("status") if isinstance(found, dict) else None
            if status == "completed":
                return
            if status in ("failed", "cancelled"):
                raise MonitorError(f"the machine's state could not be moved: {str(found.get('error-desc'))[:300]}")
            if time.monotonic() > deadline:
                raise MonitorError(f"the machine's state was not moved within {seconds:g} s")
            time.sleep(_LOOK)

    def close(self) -> None:
        self._connection.close()
