"""The owner's side of the conversation with a worker: requests out, results in. No I/O, no threads, no loop.

Both fronts share it: they move the bytes and decide how to wait. Everything a worker sends is hostile until checked.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from contextvars import ContextVar
from dataclasses import fields
from typing import Any, Final, Protocol, Self

from belljar.abi.clock import Clock
from belljar.abi.limits import Limits, explain_limit
from belljar.abi.paths import fsencode
from belljar.abi.wire import (
    CONTROL_OUT,
    WINDOW,
    Ask,
    Call,
    Credit,
    Exited,
    Failure,
    HostMessage,
    Incident,
    Output,
    Plain,
    Ready,
    Reply,
    Start,
    Started,
    WireError,
    WorkerMessage,
    encode,
    worker_frames,
)
from belljar.api.clock_host import HOST_CLOCK
from belljar.api.errors import EndedError, SandboxClosed, SandboxError, printable

_ANSWERS: Final = (Exited, Output, Reply, Failure, Started)
_SLACK: Final = 1 << 20
_LIMITS: Final = frozenset(field.name for field in fields(Limits))
ASKS_PER_TURN: Final = 32
TURN_SECONDS: Final = 0.02
FRAMES_PER_TURN: Final = 4096
"""Questions, time for them, and frames of all kinds, that are taken of one worker before others have their turn."""
UNFORESEEN: Final = "its frame was not foreseen"
INCIDENTS_MAX: Final = 1000
"""Of one sandbox. An owner's log is not endless."""
_TRACE_LINES: Final = 60

RELAYED: Final = 1 << 32
"""Requests with numbers from here on are those of clients elsewhere, which a server hands on."""

OnChunk = Callable[[bytes], object]

telling: ContextVar[object] = ContextVar("belljar_telling", default=None)
"""The conversation whose owner is being told of something by whoever receives: it can't be asked anything meanwhile."""


class Relay(Protocol):
    """Clients elsewhere that take part in a conversation; see `server/relay.py`."""

    def take(self, message: WorkerMessage) -> bool:
        """Hand on what the worker said, if it is for a client: then True."""

    def waits_for(self, number: int) -> bool: ...

    def branch(self) -> Self:
        """That of a branch of the sandbox, without any client."""

    def use(self, send: Callable[[bytes, Sequence[int]], None]) -> None:
        """Send frames to the worker, with descriptors, by this function."""

    def end(self, error: EndedError) -> None: ...


class Pending:
    """A request that waits for its answer."""

    __slots__ = ("done", "error", "on_done", "value")

    def __init__(self) -> None:
        self.done = False
        self.error: EndedError | Failure | None = None
        self.value: Plain = None
        self.on_done: Callable[[], None] | None = None

    def finish(self) -> None:
        self.done = True
        if self.on_done is not None:
            self.on_done()


class Running(Pending):
    """A command that was started: collects its output, within what it may send."""

    __slots__ = (
        "_allowed",
        "_collects",
        "exited",
        "granted",
        "granted_by_reader",
        "merged",
        "on_chunk",
        "parts",
        "pid",
        "received",
    )

    def __init__(
        self, allowed: int, on_chunk: dict[int, OnChunk], *, control: bool = False, collects: bool = True
    ) -> None:
        super().__init__()
        self._collects = collects
        """Whether all output is kept here; else whoever hears of it keeps it."""
        self._allowed = allowed
        self.parts: dict[int, list[bytes | bytearray]] = {1: [], 2: []}
        self.on_chunk = on_chunk
        self.granted = {1: WINDOW, 2: WINDOW}
        if control:
            self.parts[CONTROL_OUT] = []
            self.granted[CONTROL_OUT] = WINDOW
        self.granted_by_reader = False
        """The reader of a stream grants more as it reads; else receiving is reading."""
        self.received = 0
        self.merged = False
        self.pid = 0
        self.exited: Exited | None = None

    def take(self, stream: int, data: bytes) -> None:
        if stream not in self.parts:
            raise WireError(f"output on stream {stream}")
        self.received += len(data)
        if self.received > self._allowed + _SLACK:
            raise WireError("more output than the limit allows")
        if not data:
            return
        callback = self.on_chunk.get(stream)
        if callback is not None:
            callback(data)
        if self._collects:
            join_small(self.parts[stream], data)


_PIECE: Final = 64 << 10


def join_small(pieces: MutableSequence[bytes | bytearray], data: bytes) -> None:
    """Append data, to the last piece if that is small: each piece takes some 50 bytes more than its length.

    Another thread may take the first piece meanwhile.
    """
    try:
        last = pieces.pop()
    except IndexError:
        last = b""
    if isinstance(last, bytearray) and len(last) + len(data) <= _PIECE:
        last += data
        pieces.append(last)
        return
    if last:
        pieces.append(last)
    pieces.append(bytearray(data) if len(data) < _PIECE else data)


class Conversation:
    """Numbers requests, matches answers, and refuses what fits nothing."""

    def __init__(self, first: int = 1, clock: Clock = HOST_CLOCK) -> None:
        self._clock = clock
        self._frames = worker_frames()
        self._next = self._first = first
        """Numbers below the first are an origin's, in its branches: nobody here wants to hear of them."""
        self._waiting: dict[int, Pending] = {}
        self.ready: Ready | None = None
        self._incidents = 0
        self.bug: str | None = None
        """Where in our own code the worker failed, if it had the time to say so."""
        self.outbox: list[bytes] = []
        """Frames to send because of what was received (credits)."""
        self.on_ask: Callable[[Ask], None] | None = None
        self.congested: Callable[[], bool] | None = None
        """Tells whether so many answers wait for the worker to take them that no more of its questions are taken."""
        self.on_left: Callable[[], None] | None = None
        """Told when a command has ended and others go on without it."""
        self.left = False
        """Whether that was ever so, or services were started."""
        self.review: Callable[[Exited], Exited] | None = None
        """Adds what only this side knows of why a command ended."""
        self.observe: Callable[[str, dict[str, Any]], None] | None = None
        """Told of what happens, kind and details, if the owner wants to know."""
        self.relay: Relay | None = None
        """On a server: clients that take part."""

    def branch(self) -> Conversation:
        """The conversation with a branch of the worker, which may still speak of what was asked of its origin."""
        branch = Conversation(self._next, self._clock)
        branch.left = self.left
        if self.relay is not None:
            branch.relay = self.relay.branch()
        return branch

    def adopt(self, number: int, allowed_output: int, on_chunk: dict[int, OnChunk]) -> Running:
        """In a branch: go on with a command with a control channel that was started in the origin."""
        running = Running(allowed_output, on_chunk, control=True, collects=False)
        self._waiting[number] = running
        return running

    def call(self, name: str, *arguments: Plain, fds: int = 0) -> tuple[Pending, bytes]:
        pending = Pending()
        return pending, encode(Call(self._register(pending), name, list(arguments), fds))

    def start(
        self,
        argv: list[str],
        *,
        env: dict[str, str],
        cwd: str | None,
        stdin: bytes | None,
        merge: bool,
        live: bool,
        limits: dict[str, int | float],
        allowed_output: int,
        on_chunk: dict[int, OnChunk],
        size: tuple[int, int] | None = None,
        control: bool = False,
        forks: int = 0,
        follows: bool = False,
        collects: bool = True,
    ) -> tuple[int, Running, bytes]:
        running = Running(allowed_output, on_chunk, control=control, collects=collects)
        running.merged = merge or size is not None
        number = self._register(running)
        if self.observe is not None:
            self.observe("exec", {"action": "start", "id": number, "argv": argv, "cwd": cwd})
        message = Start(
            number,
            [fsencode(arg) for arg in argv],
            {fsencode(k): fsencode(v) for k, v in env.items()} if env else {},
            None if cwd is None else fsencode(cwd),
            stdin,
            merge,
            live,
            limits,
            size,
            control,
            forks,
            follows,
        )
        return number, running, encode(message)

    def message(self, message: HostMessage) -> bytes:
        return encode(message)

    def _register(self, pending: Pending) -> int:
        if telling.get() is self:
            raise SandboxError(
                "on_event is called while the sandbox is listened to, and can't ask it for anything: "
                "note what happened, and see to it on another thread or after the call"
            )
        number, self._next = self._next, self._next + 1
        self._waiting[number] = pending
        return number

    def feed(self, data: bytes) -> bool:
        """Take in what the worker sent. Raises WireError when it broke the rules.

        A worker that asks much is answered in turns. True: there may be more to take; send what it was answered, see
        who else waits, and then call it again, with nothing.
        """
        asked = 0
        ends = self._clock.monotonic() + TURN_SECONDS
        for taken, message in enumerate(self._frames.feed(data), 1):
            try:
                self._take(message)
            except (WireError, SandboxError):
                raise
            except Exception as error:
                import logging  # only now: most programs never need it

                logging.getLogger("belljar").exception("a bug in belljar: a worker's frame raised")
                raise WireError(f"{UNFORESEEN} ({type(error).__name__}; the log has more)") from error
            if isinstance(message, Ask):
                asked += 1
                if asked == ASKS_PER_TURN or self._clock.monotonic() > ends or self._is_congested():
                    return True
            if taken == FRAMES_PER_TURN:
                return True
        return False

    def _is_congested(self) -> bool:
        return self.congested is not None and self.congested()

    def _take(self, message: WorkerMessage) -> None:
        if self.review is not None and isinstance(message, Exited):
            message = self.review(message)
        if self.relay is not None and self.relay.take(message):
            return
        if self._first > 1 and isinstance(message, _ANSWERS) and self._is_origins(message.id):
            return
        match message:
            case Exited(id=number):
                running = self._running(number)
                del self._waiting[number]
                running.take(1, message.stdout)
                running.take(2, message.stderr)
                if message.allowed and message.limit in _LIMITS:
                    running.take(1 if running.merged else 2, explain_limit(message.limit, message.allowed).encode())
                running.exited = message
                if message.left:
                    self.left = True
                    if self.on_left is not None:
                        self.on_left()
                if self.observe is not None:
                    self._observe_end(message)
                running.finish()
            case Output(id=number, stream=stream, data=piece):
                running = self._running(number)
                if not piece:
                    raise WireError("a piece of output with nothing in it")
                running.take(stream, piece)
                running.granted[stream] -= len(piece)
                if running.granted[stream] < 0:
                    raise WireError("output beyond what was granted")
                if running.granted[stream] < WINDOW // 2 and not running.granted_by_reader:
                    count = WINDOW - running.granted[stream]
                    running.granted[stream] = WINDOW
                    self.outbox.append(encode(Credit(number, stream, count)))
            case Reply(id=number, value=value):
                pending = self._pop(number)
                if isinstance(pending, Running):
                    raise WireError(f"a reply to a command ({number})")
                pending.value = value
                pending.finish()
            case Failure(id=number):
                pending = self._pop(number)
                pending.error = message
                pending.finish()
            case Started(id=number, pid=pid):
                running = self._running(number)
                if running.pid or pid <= 0:
                    raise WireError(f"started twice ({number})")
                running.pid = pid
            case Ready():
                if self.ready is not None:
                    raise WireError("ready twice")
                self.ready = message
            case Incident(trace=trace, fatal=True):
                self.bug = trace.decode("utf-8", "replace")
            case Incident():
                self._tell_incident(message)
            case Ask():
                if self.on_ask is None:
                    raise WireError("asked for something that was never offered")
                self.on_ask(message)

    def waits_for(self, number: int) -> bool:
        """Whether a request is not answered yet."""
        return number in self._waiting or (self.relay is not None and self.relay.waits_for(number))

    def _is_origins(self, number: int) -> bool:
        """Whether it was asked of the worker's origin, by somebody who did not go on with it here."""
        return 0 < number < self._first and number not in self._waiting

    def _tell_incident(self, incident: Incident) -> None:
        """Tell the owner of a bug of ours that ended one process: by an event, or else by the log."""
        name, command = (printable(text.decode("utf-8", "replace")) for text in (incident.id, incident.command))
        trace = _shown_trace(incident.trace.decode("utf-8", "replace"))
        self._incidents += 1
        if self._incidents > INCIDENTS_MAX:
            raise WireError(f"more than {INCIDENTS_MAX} incidents")
        if self.observe is not None:
            self.observe("incident", {"id": name, "command": command, "trace": trace})
        else:
            import logging  # only now: most programs never need it

            logging.getLogger("belljar").error("incident %s: a bug in belljar ended %s:\n%s", name, command, trace)

    def _observe_end(self, exited: Exited) -> None:
        assert self.observe is not None
        code = 128 + exited.signal if exited.signal else exited.code
        if exited.limit is not None:
            self.observe("limit", {"limit": exited.limit, "id": exited.id})
        self.observe("exec", {"action": "end", "id": exited.id, "exit_code": code, "limit": exited.limit})

    def _running(self, number: int) -> Running:
        pending = self._waiting.get(number)
        if not isinstance(pending, Running):
            raise WireError(f"news of a command that was never started ({number})")
        return pending

    def _pop(self, number: int) -> Pending:
        pending = self._waiting.pop(number, None)
        if pending is None:
            raise WireError(f"an answer to nothing ({number})")
        return pending

    def end_of_worker(self) -> EndedError:
        """Why the connection ended, as far as we can tell."""
        if self.bug is not None:
            return SandboxClosed(f"a bug in belljar ended the sandbox; please report it:\n{_shown_trace(self.bug)}")
        return SandboxClosed(
            "the sandbox's worker ended unexpectedly: it crashed, was killed, or ran out of memory. "
            "Make a new sandbox; raise Limits(memory_bytes=...) if it needs more."
        )

    def fail(self, error: EndedError) -> None:
        """The worker is gone: every request ends with the reason."""
        if self.relay is not None:
            self.relay.end(error)
        waiting, self._waiting = self._waiting, {}
        for pending in waiting.values():
            pending.error = error
            pending.finish()


def _shown_trace(text: str) -> str:
    return "\n".join(map(printable, text.splitlines()[-_TRACE_LINES:]))
