"""A command that runs while you talk to it: `sandbox.spawn`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from belljar.abi.signals import parse_signal
from belljar.abi.wire import CHUNK_MAX, Credit, Input, Resize, Signal
from belljar.api.clock_host import monotonic
from belljar.api.core import Running
from belljar.api.errors import SandboxError
from belljar.api.link_host import Link
from belljar.api.request import raise_failure


class Stream:
    """Output as it comes: iterate over chunks. What you do not read stays in the sandbox, which then waits."""

    def __init__(self, process: Process, number: int) -> None:
        self._process = process
        self._number = number
        self._chunks: deque[bytes] = deque()

    def put(self, data: bytes) -> None:
        self._chunks.append(data)

    def __iter__(self) -> Iterator[bytes]:
        while data := self.next_chunk():
            yield data

    def next_chunk(self, deadline: float | None = None) -> bytes:
        """The next piece; b"" at the end, or once the (monotonic) deadline has passed."""
        self._process.wait_output(lambda: bool(self._chunks), deadline)
        if not self._chunks:
            return b""
        data = self._chunks.popleft()
        self._process.grant(self._number, len(data))
        return data

    def read(self) -> bytes:
        """Everything to the end."""
        return b"".join(self)


class Stdin:
    """The command's standard input."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._closed = False

    def write(self, data: str | bytes) -> None:
        if self._closed:
            raise ValueError("stdin is closed")
        raw = data.encode() if isinstance(data, str) else data
        for start in range(0, len(raw), CHUNK_MAX):
            self._process.send_input(raw[start : start + CHUNK_MAX])

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._process.send_input(b"")


class Process:
    """A started command. `wait` gives its exit code; `kill` signals it."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._number = 0
        self._running: Running | None = None
        self.stdout = Stream(self, 1)
        self.stderr = Stream(self, 2)
        self.stdin = Stdin(self)

    def start(
        self,
        argv: list[str],
        *,
        env: dict[str, str],
        cwd: str | None,
        stdin: bytes | None,
        allowed: int,
        size: tuple[int, int] | None = None,
    ) -> None:
        self._number, self._running, frame = self._link.conversation.start(
            argv,
            env=env,
            cwd=cwd,
            stdin=stdin,
            merge=False,
            live=True,
            limits={},
            allowed_output=allowed,
            on_chunk={1: self.stdout.put, 2: self.stderr.put},
            size=size,
        )
        running = self._running
        running.granted_by_reader = True
        self._link.send(frame)
        self._link.wait_until(lambda: running.pid > 0 or running.done)
        raise_failure(running)
        self._link.serve_in_background()

    @property
    def _state(self) -> Running:
        assert self._running is not None
        return self._running

    @property
    def pid(self) -> int:
        """Its pid inside the sandbox."""
        return self._state.pid

    @property
    def exited(self) -> bool:
        return self._state.done

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit code, or None if `timeout` seconds passed first."""
        if not self._link.wait(self._state, None if timeout is None else monotonic() + timeout):
            return None
        raise_failure(self._state)
        exited = self._state.exited
        assert exited is not None
        return 128 + exited.signal if exited.signal else exited.code

    def kill(self, signal: str | int = "TERM") -> None:
        """Send a signal, by name or number, to the command's process group; nothing if it has ended."""
        number = parse_signal(str(signal))
        if number is None:
            raise ValueError(f"no such signal: {signal!r}")
        if not self.exited:
            self._link.send(self._link.conversation.message(Signal(self._number, number)))

    # For its streams.

    def wait_output(self, ready: Callable[[], bool], deadline: float | None = None) -> None:
        self._link.wait_until(lambda: ready() or self._state.done, deadline)
        if isinstance(self._state.error, SandboxError):
            raise self._state.error

    def grant(self, stream: int, count: int) -> None:
        if not self.exited:
            self._state.granted[stream] += count
            self._link.send(self._link.conversation.message(Credit(self._number, stream, count)))

    def send_input(self, data: bytes) -> None:
        if not self.exited:
            self._link.send(self._link.conversation.message(Input(self._number, data)))

    def send_resize(self, rows: int, columns: int) -> None:
        if not self.exited:
            self._link.send(self._link.conversation.message(Resize(self._number, rows, columns)))


class Terminal:
    """A command on a terminal: `sandbox.pty`. What you write is typed, what you read is shown."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def read(self, timeout: float | None = None) -> bytes:
        """What is shown next; b"" at the end, or when `timeout` seconds brought nothing."""
        return self._process.stdout.next_chunk(None if timeout is None else monotonic() + timeout)

    def write(self, data: str | bytes) -> None:
        self._process.stdin.write(data)

    def resize(self, rows: int, cols: int) -> None:
        if not (0 < rows < 65536 and 0 < cols < 65536):
            raise ValueError(f"a terminal of {rows} rows and {cols} columns")
        self._process.send_resize(rows, cols)

    def wait(self, timeout: float | None = None) -> int | None:
        return self._process.wait(timeout)

    def kill(self, signal: str | int = "HUP") -> None:
        self._process.kill(signal)

    @property
    def exited(self) -> bool:
        return self._process.exited
