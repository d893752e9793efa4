"""A command under way, as both fronts know it: its state, and what can be said to it; how to wait is their business."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any, Final, TypedDict

from msgspec import Struct

from belljar.abi.limits import Limits
from belljar.abi.paths import join
from belljar.abi.signals import parse_signal
from belljar.abi.wire import CHUNK_MAX, Credit, Input, Resize, Signal
from belljar.api.core import Conversation, OnChunk, Pending, Running, join_small
from belljar.api.errors import SandboxError
from belljar.api.owner_host import refuse_copy
from belljar.api.request import (
    GRACE,
    AnyPath,
    Data,
    check_command,
    check_environment,
    check_path,
    exec_result,
    limits_for_exec,
    raise_failure,
    to_bytes,
)
from belljar.api.results import ExecResult
from belljar.api.stepper import Link, Waits

Send = Callable[[bytes], None]

PIPE: Final = -1
DEVNULL: Final = -3
"""`subprocess.PIPE` and `subprocess.DEVNULL`, without loading that."""
AT_ONCE: Final = 16 << 20
"""Input that goes along with a command; more follows in pieces."""
_COROUTINE: Final = 0x80
"""`inspect.CO_COROUTINE`, without loading that."""


class Listening:
    """Output of a command that functions of the owner's are to hear, in order.

    They are called by whoever waits for the command, not by whoever receives, which may be another call's thread: so
    they may use the sandbox, and what they raise is raised where they were given.
    """

    def __init__(self, functions: dict[int, OnChunk]) -> None:
        self._functions = functions
        self.waiting: deque[tuple[OnChunk, bytes]] = deque()
        self.stopped = False

    def hear(self, stream: int, data: bytes) -> None:
        function = self._functions.get(stream)
        if function is None or self.stopped:
            return
        with suppress(IndexError):
            heard, last = self.waiting.pop()
            if heard is not function or len(last) + len(data) > CHUNK_MAX:
                self.waiting.append((heard, last))
            else:
                data = last + data
        self.waiting.append((function, data))

    def tell(self) -> object:
        """Call the next function that is to hear something; gives its result."""
        function, data = self.waiting.popleft()
        return function(data)

    def stop(self) -> None:
        self.stopped = True
        self.waiting.clear()


def check_listeners(on_stdout: object, on_stderr: object, *, awaited: bool = False) -> Listening | None:
    """None if nobody listens. `awaited`: the functions may be async. TypeError for what can't hear."""
    functions: dict[int, OnChunk] = {}
    for stream, what, function in ((1, "on_stdout", on_stdout), (2, "on_stderr", on_stderr)):
        if function is None:
            continue
        if not callable(function):
            raise TypeError(f"{what} must be a function of bytes, not {type(function).__name__}")
        code = getattr(function, "__code__", None)
        if not awaited and code is not None and code.co_flags & _COROUTINE:
            raise TypeError(f"{what} must be a plain function: an async one needs an AsyncSandbox")
        functions[stream] = function
    return Listening(functions) if functions else None


class StartOptions(TypedDict, total=False):
    """The arguments that `exec` and `spawn` share."""

    cwd: AnyPath | None
    env: Mapping[str, str] | None
    timeout: float | None
    limits: Limits | None
    merge_stderr: bool


class ExecOptions(StartOptions, total=False):
    """The arguments of `exec`, for its two kinds of result."""

    stdin: Data | None
    on_stdout: OnChunk | None
    on_stderr: OnChunk | None
    check: bool
    input: Data | None


class SpawnOptions(StartOptions, total=False):
    """The arguments of `spawn`, for its two kinds of process."""

    stdin: Data | int | None


class ExecRequest(Struct, frozen=True):
    """An exec on its way: what to send, what comes back, and how long that may take."""

    number: int
    running: Running
    frame: bytes
    wall_seconds: float
    listening: Listening | None

    def has_news(self) -> bool:
        """Whether it has ended, or has output that a function of the owner's is to hear."""
        return self.running.done or (self.listening is not None and bool(self.listening.waiting))

    def kill(self, conversation: Conversation) -> bytes:
        """The frame that ends everything the command started; nobody listens any more."""
        if self.listening is not None:
            self.listening.stop()
        return conversation.message(Signal(self.number, 9, True))


def request_exec(
    conversation: Conversation, base: Limits, command: object, arguments: dict[str, Any], *, awaited: bool = False
) -> ExecRequest:
    """Check the arguments of `exec` and turn them into a request. TypeError, ValueError.

    `awaited`: functions that hear its output may be async.
    """
    argv = check_command(command)
    limits, effective = limits_for_exec(base, arguments["limits"], arguments["timeout"])
    listening = check_listeners(arguments["on_stdout"], arguments["on_stderr"], awaited=awaited)
    stdin = check_input(arguments["stdin"], open_ended=False)
    number, running, frame = conversation.start(
        argv,
        env=check_environment(arguments["env"]),
        cwd=arguments["cwd"],
        stdin=stdin.first,
        follows=stdin.follows,
        merge=bool(arguments["merge_stderr"]),
        live=listening is not None,
        limits=limits,
        allowed_output=effective.output_bytes,
        on_chunk={} if listening is None else {1: partial(listening.hear, 1), 2: partial(listening.hear, 2)},
    )
    if stdin.rest:
        sender = InputSender(conversation, number)
        frame += sender.put(stdin.rest) + sender.end()
    return ExecRequest(number, running, frame, effective.wall_seconds, listening)


def run_exec(
    link: Link, base: Limits, home: str, command: object, arguments: dict[str, Any], *, awaited: bool = False
) -> Waits[ExecResult]:
    """Run a command to its end, and until all that it said was heard. TypeError, ValueError, SandboxError.

    The worker itself should have ended it by the deadline: one that did not is ended. Whoever gives up ends it.
    """
    began = link.clock.monotonic()
    request = request_exec(link.conversation, base, command, arguments, awaited=awaited)
    deadline, listening = began + request.wall_seconds + GRACE + link.worker.grace, request.listening
    try:
        yield link.deliver(request.frame, deadline)
        while True:
            yield link.expect(request.has_news, deadline)
            if listening is None or not listening.waiting:
                break
            called = link.clock.monotonic()
            heard = listening.tell()
            if awaited and isinstance(heard, Awaitable):
                yield heard
            # Nobody may have received meanwhile: that is not the sandbox's silence.
            deadline += link.clock.monotonic() - called
    except BaseException:  # it was cancelled, too
        if not link.closed and not request.running.done:
            link.send(request.kill(link.conversation))
        raise
    raise_failure(request.running, home)
    result = exec_result(request.running, request.running.parts, link.clock.monotonic() - began, arguments["timeout"])
    return result.check() if arguments["check"] else result


def one_input(stdin: Data | None, given: Data | None) -> Data | None:
    """Standard input as `exec` was given it, by either name. TypeError for both."""
    if stdin is not None and given is not None:
        raise TypeError("stdin and input are the same: give one of them")
    return given if stdin is None else stdin


def background_input(stdin: object, *, check: bool, heard: bool) -> Any:
    """Standard input of a command in the background. TypeError for what only makes sense while `exec` waits."""
    if heard:
        raise TypeError("nobody calls on_stdout or on_stderr of a command in the background: iterate over its .stdout")
    if check:
        raise TypeError("a command in the background has not ended yet: check it by process.result().check()")
    return DEVNULL if stdin is None else stdin


def spawn_limits(base: Limits, limits: Limits | None, timeout: float | None) -> Limits:
    """The limits of a started command. TypeError, ValueError."""
    return limits_for_exec(base, limits, timeout)[1]


def start_from(base: str, cwd: object) -> str | None:
    """Where a command starts, if it was said: a relative path is one from the sandbox's own directory. TypeError."""
    return None if cwd is None else join(base, check_path(cwd, "cwd"))


class Chunks:
    """Unread pieces of a stream."""

    def __init__(self) -> None:
        self.waiting: deque[bytes | bytearray] = deque()

    def put(self, data: bytes) -> None:
        join_small(self.waiting, data)


class StandardInput(Struct, frozen=True):
    """How a command's standard input begins. `first` None and nothing that follows: /dev/null."""

    first: bytes | None
    follows: bool = False
    rest: bytes = b""
    """The rest of the input, if it is known already."""


def check_input(stdin: object, *, open_ended: bool) -> StandardInput:
    """Standard input from what `exec` or (`open_ended`) `spawn` was given. TypeError.

    None is /dev/null for exec. For spawn it is open, and a socket: a program that reads a pipe unasked would wait.
    """
    if stdin is None or (isinstance(stdin, int) and stdin == DEVNULL):
        return StandardInput(None, follows=open_ended and stdin is None)
    if isinstance(stdin, int) and stdin == PIPE and open_ended:
        return StandardInput(b"", follows=True)
    data = to_bytes(stdin, "stdin")
    return StandardInput(data) if len(data) <= AT_ONCE else StandardInput(b"", True, data)


class InputSender:
    """A command's standard input on its way: one piece in flight, the next when the sandbox has written it.

    So neither side buffers more than a piece, and pieces can't overtake each other, whichever thread sends.
    """

    def __init__(self, conversation: Conversation, number: int) -> None:
        self._conversation = conversation
        self._number = number
        self._queue: deque[memoryview | None] = deque()
        """Pieces to send; None is the end."""
        self._permits = [True]
        """Taken by whoever sends, given back when that was written. `list.pop` is atomic: threads need no lock."""
        self._queued = 0
        self._written = 0
        self._refused = False

    def put(self, data: bytes) -> bytes:
        """Queue `data`. Gives the frame to send now: none while another is in flight."""
        if not data or self._refused:
            return b""
        self._queued += len(data)
        self._queue.append(memoryview(data))
        return self._next()

    def end(self) -> bytes:
        """Close the input after what was queued. Gives the frame to send now, as `put` does."""
        self._queue.append(None)
        return self._next()

    @property
    def position(self) -> int:
        """How many bytes were queued so far."""
        return self._queued

    def has_written(self, position: int) -> bool:
        """Whether everything up to `position` was written, or never will be."""
        return self._refused or self._written >= position

    def _next(self) -> bytes:
        while self._queue:
            try:
                self._permits.pop()
            except IndexError:
                return b""
            if self._queue:
                return self._take()
            self._permits.append(True)
        return b""

    def _take(self) -> bytes:
        """The next frame, by the holder of the permit."""
        if self._queue[0] is None:
            return self._conversation.message(Input(self._number, b""))  # the permit is kept: nothing follows the end
        parts: list[memoryview] = []
        room = CHUNK_MAX
        while room and self._queue and (view := self._queue[0]) is not None:
            if len(view) > room:
                self._queue[0], view = view[room:], view[:room]
            else:
                self._queue.popleft()
            parts.append(view)
            room -= len(view)
        data = b"".join(parts)
        pending, frame = self._conversation.call("input", self._number, data)
        pending.on_done = lambda: self._answered(pending, len(data))
        return frame

    def _answered(self, pending: Pending, size: int) -> None:
        self._written += size
        if pending.error is not None or pending.value is not True:
            self._refused = True
            self._queue.clear()
            return
        self._permits.append(True)
        if frame := self._next():
            self._conversation.outbox.append(frame)


class Command:
    """A started command: `stdout` and `stderr` collect until read; reading grants the sandbox more room."""

    def __init__(self, conversation: Conversation, send: Send, *, background: bool = False) -> None:
        self._conversation = conversation
        self._send = send
        self._background = background
        """Its output does not wait for a reader: as much is kept as its limit allows."""
        self._number = 0
        self._running: Running | None = None
        self.deadline: float | None = None
        """The (monotonic) time by which the sandbox must have ended it, by its limits."""
        self.chunks = {1: Chunks(), 2: Chunks()}

    def start(
        self,
        command: object,
        *,
        env: Mapping[str, str],
        cwd: str | None,
        stdin: Data | int | None,
        limits: Limits,
        size: tuple[int, int] | None = None,
        merge: bool = False,
    ) -> Running:
        """Send it off. The front then waits for `started`."""
        given = check_input(stdin, open_ended=True)
        self._number, self._running, frame = self._conversation.start(
            check_command(command),
            env=check_environment(env),
            cwd=cwd,
            stdin=given.first,
            follows=given.follows or size is not None,
            merge=merge,
            live=True,
            limits=asdict(limits),
            allowed_output=limits.output_bytes,
            on_chunk={1: self.chunks[1].put, 2: self.chunks[2].put},
            size=size,
            collects=False,
        )
        self._running.granted_by_reader = not self._background
        self._input = InputSender(self._conversation, self._number)
        if given.rest:
            frame += self._input.put(given.rest) + self._input.end()
        self._send(frame)
        return self._running

    def kill_all(self) -> None:
        """End it and everything it started: nobody will wait for it."""
        if not self.exited:
            self._send(self._conversation.message(Signal(self._number, 9, True)))

    @property
    def number(self) -> int:
        """The number by which the sandbox knows it."""
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

    @property
    def limit(self) -> str | None:
        """The budget that stopped it, if one did."""
        exited = self.state.exited
        return None if exited is None else exited.limit

    @property
    def truncated(self) -> bool:
        """Whether output was lost because there was too much."""
        exited = self.state.exited
        return exited is not None and exited.truncated

    def exit_code(self) -> int:
        """Once it has exited; raises what kept it from running."""
        raise_failure(self.state)
        exited = self.state.exited
        assert exited is not None
        return 128 + exited.signal if exited.signal else exited.code

    def has_news(self, stream: int) -> bool:
        return bool(self.chunks[stream].waiting) or self.state.done

    def take(self, stream: int) -> bytes:
        """The next unread piece, b"" if there is none; the sandbox may then send as much again."""
        if isinstance(self.state.error, SandboxError):
            raise self.state.error
        waiting = self.chunks[stream].waiting
        if not waiting:
            return b""
        data = bytes(waiting.popleft())
        if self.state.granted_by_reader and not self.exited:
            self.state.granted[stream] += len(data)
            self._send(self._conversation.message(Credit(self._number, stream, len(data))))
        return data

    def type(self, data: Data) -> int:
        """Queue more standard input. Gives its end, to ask `has_written` for."""
        raw = to_bytes(data)
        frame = b"" if self.exited else self._input.put(raw)
        if frame:
            self._send(frame)
        return self._input.position

    def has_written(self, position: int) -> bool:
        """Whether the input up to there was written to the command's pipe, or never will be."""
        return self.exited or self._input.has_written(position)

    def end_input(self) -> None:
        frame = b"" if self.exited else self._input.end()
        if frame:
            self._send(frame)

    def resize(self, rows: int, columns: int) -> None:
        size = check_size(rows, columns)
        if not self.exited:
            self._send(self._conversation.message(Resize(self._number, *size)))

    def signal(self, signal: str | int) -> None:
        """By name or number, to the command's process group; nothing if it has ended."""
        number = parse_signal(str(signal))
        if number is None:
            raise ValueError(f"no such signal: {signal!r}")
        if not self.exited:
            self._send(self._conversation.message(Signal(self._number, number)))


def check_size(rows: object, columns: object) -> tuple[int, int]:
    """TypeError, ValueError for what is no size of a terminal."""
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise TypeError(f"a terminal's rows and cols are ints, not {rows!r} and {columns!r}")
    if not (0 < rows < 65536 and 0 < columns < 65536):
        raise ValueError(f"a terminal can't have {rows} rows and {columns} columns: from 1 to 65535 of each")
    return rows, columns


def pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), CHUNK_MAX):
        yield data[start : start + CHUNK_MAX]


class OfCommand:
    """State of a started command, for both fronts."""

    __reduce__ = refuse_copy

    command: Command

    @property
    def pid(self) -> int:
        """Its pid inside the sandbox."""
        return self.command.state.pid

    @property
    def exited(self) -> bool:
        return self.command.exited

    @property
    def limit(self) -> str | None:
        """The budget that stopped it, if one did."""
        return self.command.limit

    @property
    def truncated(self) -> bool:
        """Whether output was lost because there was too much."""
        return self.command.truncated
