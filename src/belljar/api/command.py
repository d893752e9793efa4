"""A command under way, as both fronts know it: its state, and what can be said to it; how to wait is their business."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from belljar.abi.limits import Limits
from belljar.abi.signals import parse_signal
from belljar.abi.wire import CHUNK_MAX, Credit, Input, Resize, Signal
from belljar.api.core import Conversation, OnChunk, Running
from belljar.api.errors import SandboxError
from belljar.api.request import check_command, check_environment, limits_for_exec, raise_failure

Send = Callable[[bytes], None]


class ExecRequest(Struct, frozen=True):
    """An exec on its way: what to send, what comes back, and how long that may take."""

    number: int
    running: Running
    frame: bytes
    wall_seconds: float

    def kill(self, conversation: Conversation) -> bytes:
        """The frame that ends everything the command started."""
        return conversation.message(Signal(self.number, 9, True))


def request_exec(conversation: Conversation, base: Limits, command: object, arguments: dict[str, Any]) -> ExecRequest:
    """Check the arguments of `exec` and turn them into a request. TypeError, ValueError."""
    limits, effective = limits_for_exec(base, arguments["limits"], arguments["timeout"])
    callbacks: dict[int, OnChunk] = {}
    if arguments["on_stdout"] is not None:
        callbacks[1] = arguments["on_stdout"]
    if arguments["on_stderr"] is not None:
        callbacks[2] = arguments["on_stderr"]
    number, running, frame = conversation.start(
        check_command(command),
        env=check_environment(arguments["env"]),
        cwd=arguments["cwd"],
        stdin=to_bytes(arguments["stdin"]),
        merge=arguments["merge_stderr"],
        live=bool(callbacks),
        limits=limits,
        allowed_output=effective.output_bytes,
        on_chunk=callbacks,
    )
    return ExecRequest(number, running, frame, effective.wall_seconds)


def to_bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


class Chunks:
    """What a stream brought and nobody has read yet."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()

    def put(self, data: bytes) -> None:
        self.waiting.append(data)


class Command:
    """A started command: `stdout` and `stderr` collect until read; reading grants the sandbox more room."""

    def __init__(self, conversation: Conversation, send: Send) -> None:
        self._conversation = conversation
        self._send = send
        self._number = 0
        self._running: Running | None = None
        self.chunks = {1: Chunks(), 2: Chunks()}

    def start(
        self,
        command: object,
        *,
        env: dict[str, str],
        cwd: str | None,
        stdin: str | bytes | None,
        limits: Limits,
        size: tuple[int, int] | None = None,
    ) -> Running:
        """Send it off. The front then waits for `started`."""
        self._number, self._running, frame = self._conversation.start(
            check_command(command),
            env=check_environment(env),
            cwd=cwd,
            stdin=None if stdin is None else to_bytes(stdin),
            merge=False,
            live=True,
            limits={},
            allowed_output=limits.output_bytes,
            on_chunk={1: self.chunks[1].put, 2: self.chunks[2].put},
            size=size,
        )
        self._running.granted_by_reader = True
        self._send(frame)
        return self._running

    @property
    def number(self) -> int:
        """What the sandbox knows it by."""
        return self._number

    @property
    def state(self) -> Running:
        assert self._running is not None
        return self._running

    @property
    def started(self) -> bool:
        return self.state.pid > 0 or self.state.done

    @property
    def exited(self) -> bool:
        return self.state.done

    def exit_code(self) -> int:
        """Once it has exited; raises what kept it from running."""
        raise_failure(self.state)
        exited = self.state.exited
        assert exited is not None
        return 128 + exited.signal if exited.signal else exited.code

    def has_news(self, stream: int) -> bool:
        return bool(self.chunks[stream].waiting) or self.state.done

    def take(self, stream: int) -> bytes:
        """What has come, b"" if nothing; the sandbox may then send as much again."""
        if isinstance(self.state.error, SandboxError):
            raise self.state.error
        waiting = self.chunks[stream].waiting
        if not waiting:
            return b""
        data = waiting.popleft()
        if not self.exited:
            self.state.granted[stream] += len(data)
            self._send(self._conversation.message(Credit(self._number, stream, len(data))))
        return data

    def type(self, data: str | bytes) -> None:
        """More standard input."""
        for piece in pieces(to_bytes(data)):
            if not self.exited:
                self._send(self._conversation.message(Input(self._number, piece)))

    def end_input(self) -> None:
        if not self.exited:
            self._send(self._conversation.message(Input(self._number, b"")))

    def resize(self, rows: int, columns: int) -> None:
        if not (0 < rows < 65536 and 0 < columns < 65536):
            raise ValueError(f"a terminal of {rows} rows and {columns} columns")
        if not self.exited:
            self._send(self._conversation.message(Resize(self._number, rows, columns)))

    def signal(self, signal: str | int) -> None:
        """By name or number, to the command's process group; nothing if it has ended."""
        number = parse_signal(str(signal))
        if number is None:
            raise ValueError(f"no such signal: {signal!r}")
        if not self.exited:
            self._send(self._conversation.message(Signal(self._number, number)))


def pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), CHUNK_MAX):
        yield data[start : start + CHUNK_MAX]
