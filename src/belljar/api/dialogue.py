"""The owner's side of the conversation with an interpreter in a sandbox: runs out, calls and results in. No I/O.

An interpreter is a program with a control channel; lines of JSON go over it (`abi/values.py`):

    to it      {"op": "run", "run", "code", "mode", "file", "globals": [names], "values": {name: value}, "live"}
                                                                   live: somebody hears its lines as they come
               {"op": "branched"}                                  it is a copy, and draws its own random numbers
               {"op": "answer", "id", "value"}  or  {"op": "answer", "id", "error": {"name", "message"}}
    from it    {"op": "ready"}                                     it has started
               {"op": "call", "id", "name", "args", "kwargs"}      a host function is wanted
               {"op": "output", "mime", "data"}                    a figure or a table was shown
               {"op": "done", "ok", "exports", "unsent", "error"}  the run is over; it waits for the next

Each line from it begins with the number of the run that it belongs to, and a space; `ready` has the number 0. What
does not belong to the run that is under way is dropped: whatever an earlier one left behind can't answer for it.

Everything that comes from it is hostile until checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import copy_context
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal

from belljar.abi.limits import Limits, RunLimits
from belljar.abi.signals import Signal as SignalNumber
from belljar.abi.signals import signal_name
from belljar.abi.values import dumps
from belljar.abi.wire import CONTROL_IN, CONTROL_OUT, Input, Renew, Signal
from belljar.api.bridge import Bridge, BridgeLimit, HostCall, HostFunction, read_message
from belljar.api.clock_host import new_id
from belljar.api.command import Listening, pieces
from belljar.api.core import Conversation, OnChunk
from belljar.api.errors import EngineUnavailable, SandboxError, printable
from belljar.api.request import raise_failure
from belljar.api.results import decode
from belljar.api.runs import ErrorCode, Exports, Output, RunError, RunResult
from belljar.api.saved import SavedVariables

Mode = Literal["repl", "prefix", "module", "save", "load"]
"""The last two write an interpreter's variables down, and take them from there: see `saved.py`."""

_WITHOUT_END: Final = 1 << 60
_NOTHING: Final = '"globals":[],"values":{}'
"""Globals and values of most runs: none."""
_LINE_MAX: Final = 64 << 20
_READY: Final = b'0 {"op":"ready"}'
_GUEST_CODES: Final[tuple[ErrorCode, ...]] = ("SYNTAX_ERROR", "RUNTIME_ERROR", "MEMORY_LIMIT")
_LIMIT_CODES: Final[dict[str, ErrorCode]] = {
    "cpu_seconds": "CPU_LIMIT",
    "steps": "CPU_LIMIT",
    "wall_seconds": "WALL_LIMIT",
    "memory_bytes": "MEMORY_LIMIT",
    "output_bytes": "OUTPUT_LIMIT",
}
_NOT_STARTED: Final = (126, 127)
_OUTPUT_COST: Final = 200
"""Bytes that an output takes besides its own."""
STARTING: Final = 900.0
"""Seconds that an interpreter may take to start: the first of a machine is compiled."""
BEGINNING: Final = 4096
"""Characters of the first code that the program is told when it starts, so that it can begin with what that uses."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A kind of interpreter."""

    name: str
    argv: tuple[str, ...]
    prefix: tuple[str, ...]
    """Its command, and that of one that runs are copied from."""
    file: str
    """File name of a run's code in tracebacks, with its number."""
    run: tuple[str, ...] = ()
    """The command of a run of a prefix, where the tier can't copy a process: each command is then given a name, by
    which the run finds its prefix, and each run the limits that it keeps itself."""
    missing: str = ""
    """What to do where there is none."""


@dataclass(frozen=True, slots=True)
class ForkState:
    """State from which the interpreter of a branch goes on."""

    dialogue: Dialogue | None = None
    """It waits for its next run, and is copied."""
    at_work: bool = False
    """A run is under way: there will be none in the branch."""
    first: SavedVariables | None = None
    """The variables that it begins with."""

    @property
    def jobs(self) -> list[int]:
        return [self.dialogue.number] if self.dialogue is not None else []


AT_WORK: Final = (
    "the interpreter was at work when the sandbox was forked, so this branch has no copy of it; "
    "reset() starts a new one"
)

PYTHON: Final = Engine("python", ("python3", "--belljar-session"), ("python3", "--belljar-prefix"), "<run {}>")


class Run:
    """One run under way: what it has said so far, and how it ended."""

    def __init__(
        self,
        functions: Mapping[str, HostFunction],
        limits: RunLimits,
        output_bytes: int,
        listening: Listening | None = None,
    ) -> None:
        self.listening = listening
        self.bridge = Bridge(functions, limits)
        self.limits = limits
        self.memory = f"memory_mb={limits.memory_mb}"
        """The limit of memory that holds for it."""
        self.context = copy_context()
        """The context variables of whoever asked for it: another thread may hear of its calls."""
        self.done = False
        self.error: RunError | None = None
        self._room = output_bytes
        self._streams = {1: bytearray(), 2: bytearray()}
        self._outputs: list[Output] = []
        self._exports = Exports()

    def say(self, stream: int, data: bytes) -> None:
        self._charge(len(data))
        self._streams[stream] += data
        if self.listening is not None:
            self.listening.hear(stream, data)

    @property
    def has_news(self) -> bool:
        """Whether it has ended, or has output that a function of the owner's is to hear."""
        return self.done or (self.listening is not None and bool(self.listening.waiting))

    def show(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"mime": str(mime), "data": str() | bytes() as data}:
                self._charge(len(data) + len(mime) + _OUTPUT_COST)
                self._outputs.append(Output(printable(mime), data.encode() if isinstance(data, str) else data))
            case _:
                raise ValueError("an output without its parts")

    def _charge(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise Spent(RunError("OUTPUT_LIMIT", "output_bytes", "the run said more than its sandbox may"))

    def finish(self, message: Mapping[str, Any]) -> None:
        """The interpreter says the run is over. ValueError if it does not say how."""
        ok, exports, unsent = message.get("ok"), message.get("exports"), message.get("unsent")
        if ok is True and isinstance(exports, dict) and isinstance(unsent, dict):
            if set(map(type, (*exports, *unsent, *unsent.values()))) - {str}:
                raise ValueError("exports have names")
            self._exports = Exports(exports, unsent)
            self.done = True
            return
        match message:
            case {"ok": False, "error": {"code": code, "name": str(name), "message": str(text), "stack": str(stack)}}:
                if code not in _GUEST_CODES:
                    raise ValueError("an error without a code")
                if code == "MEMORY_LIMIT" and not text:
                    text = f"the run needed more memory than its limit lets it have ({self.memory})"
                self.error = RunError(code, name, text, stack)
            case _:
                raise ValueError("a run's end without its parts")
        self.done = True

    def fail(self, error: RunError) -> None:
        """End it from outside. The first reason counts."""
        if not self.done:
            self.error = error
            self.done = True

    def result(self, seconds: float) -> RunResult:
        return RunResult(
            ok=self.error is None,
            exports=self._exports,
            stdout=decode(bytes(self._streams[1])),
            stderr=decode(bytes(self._streams[2])),
            duration_ms=seconds * 1e3,
            error=self.error,
            outputs=self._outputs,
            bridge_calls=self.bridge.calls,
        )


class Spent(Exception):
    """A limit of the run that the owner keeps was reached."""

    def __init__(self, error: RunError) -> None:
        self.error = error


class Dialogue:
    """One interpreter. `call` is what to do with a host call: the fronts differ only in that, and in how they wait."""

    def __init__(
        self,
        conversation: Conversation,
        send: Callable[[bytes], None],
        engine: Engine,
        limits: Limits,
        call: Callable[[Dialogue, HostCall], None],
        *,
        forks: Dialogue | None = None,
        prefix: bool = False,
        begins_with: str = "",
    ) -> None:
        self._conversation = conversation
        self._send = send
        self._engine = engine
        self._limits = limits
        self._call = call
        self._functions: dict[str, HostFunction] = dict(forks._functions) if forks is not None else {}
        self._line = bytearray()
        self._skips = False
        """Whether the rest of a line is dropped."""
        self.dropped = 0
        """Lines that were not of the run under way."""
        self._runs: int = forks._runs if forks is not None else 0
        self._renewed: dict[str, int | float] | None = None
        """The limits of the last run."""
        self._starts = False
        """Whether the run under way began before the interpreter was ready."""
        self.number: int
        self.ready = False
        """It has spoken: from then on whatever becomes of it is the guest's doing."""
        self.run: Run | None = None
        self.killed = False
        argv = list(engine.prefix if prefix else engine.argv)
        self._name = ""
        if engine.run:
            self._name = new_id() if forks is None else forks._name
            argv = [*(argv if forks is None else engine.run), self._name]
        self.number, self.running, frame = conversation.start(
            [*argv, begins_with[:BEGINNING].replace("\0", " ")],
            env={},
            cwd=None,
            stdin=b"",
            merge=False,
            live=True,
            limits={},
            allowed_output=_WITHOUT_END,
            on_chunk=self._listeners(),
            control=True,
            collects=False,
            forks=forks.number if forks is not None and not engine.run else 0,
        )
        send(frame)

    def _listeners(self) -> dict[int, OnChunk]:
        return {1: lambda data: self._say(1, data), 2: lambda data: self._say(2, data), CONTROL_OUT: self._hear}

    def branch(
        self,
        conversation: Conversation,
        send: Callable[[bytes], None],
        call: Callable[[Dialogue, HostCall], None],
    ) -> Dialogue:
        """The same in a branch of the sandbox, which has a copy of the interpreter. Both wait for their next run."""
        twin = copy(self)
        twin._conversation, twin._send, twin._call = conversation, send, call
        twin._functions = dict(self._functions)
        twin._line = bytearray(self._line)
        twin.run = None
        twin.running = conversation.adopt(self.number, _WITHOUT_END, twin._listeners())
        twin._write('{"op":"branched"}')
        return twin

    @property
    def ended(self) -> bool:
        return self.running.done or self.killed

    @property
    def names(self) -> frozenset[str]:
        """The host functions it knows."""
        return frozenset(self._functions)

    def begin(
        self,
        code: str,
        mode: Mode,
        functions: Mapping[str, HostFunction],
        values: Mapping[str, Any],
        limits: RunLimits,
        listening: Listening | None = None,
    ) -> Run:
        """Send code to run; the front then waits until the run is done or the interpreter has ended."""
        self._functions.update(functions)
        self.run = run = Run(self._functions, limits, self._limits.output_bytes, listening)
        if self._limits.memory_bytes < limits.memory_mb << 20:
            run.memory = f"the sandbox's memory_bytes={self._limits.memory_bytes}"
        self._runs += 1
        given = _limits(self._limits, limits)
        # What the start of an image's own interpreter takes is not the run's: until then, the sandbox's limit holds.
        self._starts = bool(self._engine.run) and not self.ready
        at_first = {**given, "cpu_seconds": self._limits.cpu_seconds} if self._starts else given
        renewal = Renew(self.number, {} if at_first is self._renewed else at_first)
        self._renewed = given
        file = self._engine.file.format(self._runs)
        bound = _NOTHING
        if functions or values:
            bound = f'"globals":{dumps(list(functions))},"values":{dumps(dict(values))}'
        if listening is not None:
            bound += ',"live":true'
        if self._engine.run:
            bound += f',"limits":{{"memory":{given["memory_bytes"]},"cpu":{given["cpu_seconds"]}}}'
        line = f'{{"op":"run","run":{self._runs},"code":{dumps(code)},"mode":"{mode}","file":"{file}",{bound}}}'
        self._write(line, self._conversation.message(renewal))  # with the first piece: the worker is woken once
        return run

    def answer(self, run: Run, line: str) -> None:
        """A host call's answer. One that comes too late is dropped."""
        if run is not self.run or run.done or self.ended:
            return
        try:
            run.bridge.charge(len(line))
        except BridgeLimit as error:
            self._stop(run, RunError("BRIDGE_LIMIT", "BridgeLimit", str(error)))
        else:
            self._write(line)

    def limit_processor_time(self) -> None:
        """Have a run's limit count from now, if it had to wait for the interpreter's start."""
        if self._starts and self._renewed is not None and not self.ended:
            self._starts = False
            self._send(self._conversation.message(Renew(self.number, self._renewed)))

    def wall_seconds(self, limits: RunLimits) -> float:
        """How long a run may take."""
        return min(limits.wall_ms / 1e3, self._limits.wall_seconds)

    def interrupt(self) -> None:
        """Interrupt the run under way as ^C does; do nothing between runs."""
        if self.run is not None and not self.run.done and not self.ended:
            self._send(self._conversation.message(Signal(self.number, SignalNumber.INT)))

    def kill(self) -> None:
        if not self.ended:
            self.killed = True
            self._send(self._conversation.message(Signal(self.number, SignalNumber.KILL, True)))

    def close(self) -> None:
        """Nothing more will be run: the end of its input lets it go."""
        if not self.ended:
            self._send(self._conversation.message(Input(self.number, b"", CONTROL_IN)))

    def over_time(self, run: Run) -> None:
        milliseconds = self.wall_seconds(run.limits) * 1e3
        self._stop(run, RunError("WALL_LIMIT", "wall_ms", f"the run took longer than {milliseconds:.0f} ms"))

    def check_end(self, run: Run) -> None:
        """Once the front has waited: an interpreter that ended on its own is the run's end too. EngineUnavailable."""
        if not run.done and self.running.done:
            run.fail(self._cause(run))

    def _write(self, line: str, before: bytes = b"") -> None:
        """Send a line, with a frame that is to come first."""
        for piece in pieces(line.encode() + b"\n"):
            self._send(before + self._conversation.message(Input(self.number, piece, CONTROL_IN)))
            before = b""

    def _say(self, stream: int, data: bytes) -> None:
        self.running.received = 0  # counted by run instead: a session may go on for ever
        if self.run is None or self.run.done:
            return
        try:
            self.run.say(stream, data)
        except Spent as spent:
            self._stop(self.run, spent.error)

    def _hear(self, data: bytes) -> None:
        """A piece of the control channel."""
        self.running.received = 0
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._keep(end)
            line, self._line = bytes(self._line), bytearray()
            if self._skips:
                self._skips = False
                self.dropped += 1
            else:
                self._hear_line(line)
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        """Keep a part of a line, if there is a run that it may be for, or if it may be the word that it is ready: that
        may come before the first run is there, where another thread receives."""
        run = self.run
        under_way = run is not None and not run.done
        longest = _LINE_MAX if under_way else 0 if self.ready else len(_READY)
        if not self._skips:
            self._line += part
        if len(self._line) > longest:
            self._line.clear()
            self._skips = True
            if run is not None and under_way:
                self._stop(run, RunError("OUTPUT_LIMIT", "output_bytes", "a message too long to take"))

    def _hear_line(self, line: bytes) -> None:
        number, _, message = line.partition(b" ")
        if line == _READY:
            self.ready = True
        elif self.run is not None and not self.run.done and number == b"%d" % self._runs:
            self._take(self.run, message)
        else:
            self.dropped += 1

    def _take(self, run: Run, line: bytes) -> None:
        try:
            message = read_message(line)
            match message["op"]:
                case "call":
                    self._call(self, run.bridge.take(message, len(line)))
                case "output":
                    run.show(message)
                case "done":
                    run.finish(message)
                case op:
                    raise ValueError(f"no such op: {op[:40]!r}")
        except BridgeLimit as error:
            self._stop(run, RunError("BRIDGE_LIMIT", "BridgeLimit", str(error)))
        except Spent as spent:
            self._stop(run, spent.error)
        except ValueError as error:
            said = printable(str(error))
            self._stop(run, RunError("CRASHED", "ProtocolError", f"the interpreter said what makes no sense: {said}"))

    def _stop(self, run: Run, error: RunError) -> None:
        run.fail(error)
        self.kill()

    def _cause(self, run: Run) -> RunError:
        running = self.running
        exited = running.exited
        if exited is None:
            raise_failure(running)
            raise SandboxError("the interpreter ended without a word")
        said = printable(run.result(0).stderr.strip())
        if exited.limit is not None:
            code = _LIMIT_CODES.get(exited.limit, "CRASHED")
            return RunError(code, exited.limit, f"the run spent its {exited.limit.replace('_', ' ')}")
        if exited.signal in (SignalNumber.PROF, SignalNumber.XCPU):
            return RunError("CPU_LIMIT", "cpu_ms", f"the run used more than {run.limits.cpu_ms} ms of processor time")
        if exited.code in _NOT_STARTED and not self.ready:
            raise EngineUnavailable(
                ". ".join(filter(None, (said or f"there is no {self._engine.name} here", self._engine.missing)))
            )
        how = f"signal {signal_name(exited.signal)}" if exited.signal else f"exit code {exited.code}"
        return RunError("CRASHED", "Crashed", f"the interpreter ended with {how}" + (f": {said}" if said else ""))


@lru_cache(maxsize=32)
def _limits(limits: Limits, run: RunLimits) -> dict[str, int | float]:
    """A run's share of its sandbox's limits."""
    cpu, memory = min(limits.cpu_seconds, run.cpu_ms / 1e3), min(limits.memory_bytes, run.memory_mb << 20)
    return asdict(replace(limits, cpu_seconds=cpu, memory_bytes=memory))
