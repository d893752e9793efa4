"""The Python interpreter of both fronts, as generators (`stepper.py`) over a link whose waits block or are awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Protocol, TypeVar

from belljar.abi.limits import Limits, RunLimits
from belljar.api.bridge import HostCall, check_globals
from belljar.api.command import Listening
from belljar.api.dialogue import AT_WORK, STARTING, Dialogue, Engine, ForkState, Mode
from belljar.api.errors import SandboxError
from belljar.api.owner_host import Owner
from belljar.api.request import GRACE
from belljar.api.runs import RunResult
from belljar.api.saved import SavedVariables, check_language, check_size, lost_from, saved_from
from belljar.api.stepper import Link, Waits

Globals = Mapping[str, Any]
DEFAULT: Final = RunLimits()
T = TypeVar("T")


class PrefixError(SandboxError):
    """The code of a prefix failed; `result` has what it said."""

    def __init__(self, result: RunResult) -> None:
        assert result.error is not None
        super().__init__(f"the prefix failed: {result.error}\n{result.error.stack}".rstrip())
        self.result = result


class Lock(Protocol):
    """A lock of `threading` or of asyncio, whose `acquire` is awaited."""

    def acquire(self) -> Any: ...
    def release(self) -> None: ...
    def locked(self) -> bool: ...


Caller = Callable[[Any], Callable[[Dialogue, HostCall], None]]
"""Gives, for a link, what calls host functions."""


class InterpreterCore:
    """One persistent interpreter."""

    def __init__(
        self, link: Callable[[], Any], engine: Engine, limits: Limits, tools: Globals, lock: Lock, caller: Caller
    ) -> None:
        self._link = link
        self.engine = engine
        self._limits = limits
        self._tools = tools
        self._lock = lock
        self._caller = caller
        self._owner = Owner("interpreter")
        self.dialogue: Dialogue | None = None
        self.first: SavedVariables | None = None
        """The variables that it begins with, until its first run."""
        self._lost = False
        """It was at work when this branch was made of its sandbox."""

    @property
    def lock(self) -> Any:
        """Held during runs."""
        return self._lock

    def fork_state(self) -> ForkState:
        """For a fork of the sandbox, with the lock held: the state that the branch's interpreter starts from."""
        dialogue = self.dialogue
        return ForkState(None if dialogue is None or dialogue.ended else dialogue, self._lost, self.first)

    def adopt(self, state: ForkState) -> None:
        """In a branch: be what the origin's is."""
        self._lost, self.first = state.at_work, state.first
        if state.dialogue is not None and not state.dialogue.ended:
            link = self._link()
            self.dialogue = state.dialogue.branch(link.conversation, link.send, self._caller(link))

    def _locked(self, waits: Waits[T]) -> Waits[T]:
        self._owner.check()
        yield self._lock.acquire()
        try:
            return (yield from waits)
        finally:
            self._lock.release()

    def run(
        self, code: str, globals: Globals | None, limits: RunLimits | None, listening: Listening | None
    ) -> Waits[RunResult]:
        check_code(code)
        limits = check_limits(limits)
        functions, values = check_globals(globals)
        return (yield from self._locked(self._run_session(code, "repl", functions, values, limits, listening)))

    def _run_session(
        self,
        code: str,
        mode: Mode,
        functions: Globals,
        values: Globals,
        limits: RunLimits,
        listening: Listening | None = None,
    ) -> Waits[RunResult]:
        if self._lost:
            raise SandboxError(AT_WORK)
        if self.first is not None:
            lost_from((yield from self._load(self.first, {})))
        if not self.started:
            functions = {**self._tools, **functions}
            self.dialogue = self.open(code)
        assert self.dialogue is not None
        return (yield from self.drive(self.dialogue, code, mode, (functions, values), limits, listening))

    def precompile(self, code: str, globals: Globals | None) -> Waits[PrefixCore]:
        functions, values = check_globals(globals)
        check_code(code)
        dialogue = self.open(code, prefix=True)
        result = yield from self.drive(dialogue, code, "prefix", ({**self._tools, **functions}, values), DEFAULT)
        if result.error is not None:
            dialogue.kill()
            raise PrefixError(result)
        return PrefixCore(self, dialogue, frozenset(values))

    @property
    def started(self) -> bool:
        """Whether it has variables: it has run something, and was not ended since."""
        return self.first is not None or (self.dialogue is not None and not self.dialogue.ended)

    def interrupt(self) -> None:
        if self.dialogue is not None:
            self.dialogue.interrupt()

    def reset(self) -> None:
        """Forget everything: the next run finds a new interpreter."""
        dialogue, self.dialogue = self.dialogue, None
        self._lost, self.first = False, None
        if dialogue is not None:
            dialogue.kill()

    def save(self, max_bytes: int, leave_out: Iterable[str]) -> Waits[SavedVariables]:
        values = {"max_bytes": check_size(max_bytes), "leave_out": sorted(leave_out)}
        if self.first is not None and not values["leave_out"]:
            return self.first
        result = yield from self._locked(self._run_session("", "save", {}, values, DEFAULT))
        return saved_from(result, "python", max_bytes)

    def load(self, saved: SavedVariables, globals: Globals | None) -> Waits[dict[str, str]]:
        check_language(saved, "python")
        functions, _ = check_globals(globals)
        return lost_from((yield from self._locked(self._load(saved, functions))))

    def _load(self, saved: SavedVariables, functions: Globals) -> Waits[RunResult]:
        self.reset()
        self.dialogue = dialogue = self.open(saved.begins_with)
        bound = ({**self._tools, **functions}, {"data": saved.data})
        result = yield from self.drive(dialogue, "", "load", bound, DEFAULT)
        if result.error is not None:
            self.reset()
        return result

    def open(self, code: str, forks: Dialogue | None = None, *, prefix: bool = False) -> Dialogue:
        """Start an interpreter, or a copy of one."""
        link = self._link()
        return Dialogue(
            link.conversation,
            link.send,
            self.engine,
            self._limits,
            self._caller(link),
            forks=forks,
            prefix=prefix,
            begins_with=code,
        )

    def drive(
        self,
        dialogue: Dialogue,
        code: str,
        mode: Mode,
        bound: tuple[Globals, Globals],
        limits: RunLimits,
        listening: Listening | None = None,
    ) -> Waits[RunResult]:
        """See a run through."""
        link: Link = self._link()
        began = link.clock.monotonic()
        run = dialogue.begin(code, mode, *bound, limits, listening)
        try:
            yield link.wait_until(lambda: dialogue.ready or run.done or dialogue.running.done, began + STARTING)
            dialogue.limit_processor_time()
            deadline = link.clock.monotonic() + dialogue.wall_seconds(limits)
            while (in_time := (yield link.wait_until(lambda: run.has_news or dialogue.running.done, deadline))) and (
                listening is not None and listening.waiting
            ):
                called = link.clock.monotonic()
                told = listening.tell()
                if isinstance(told, Awaitable):
                    yield told
                deadline += link.clock.monotonic() - called
            if not in_time:
                dialogue.over_time(run)
        except BaseException:  # ^C, or a cancellation
            if not link.closed:
                dialogue.kill()
            raise
        if dialogue.killed:
            yield link.expect(lambda: dialogue.running.done, link.clock.monotonic() + GRACE)
        dialogue.check_end(run)
        return run.result(link.clock.monotonic() - began)


class PrefixCore:
    """A state to start runs from."""

    def __init__(self, interpreter: InterpreterCore, dialogue: Dialogue, values: frozenset[str]) -> None:
        self._interpreter = interpreter
        self._dialogue = dialogue
        self._values = values

    def run(
        self, code: str, limits: RunLimits | None, globals: Globals | None, listening: Listening | None
    ) -> Waits[RunResult]:
        check_code(code)
        limits = check_limits(limits)
        bound = check_globals(globals)
        check_rebinding(globals, self._dialogue.names | self._values)
        if self._dialogue.ended:
            raise SandboxError("the prefix is closed: precompile it again")
        dialogue = self._interpreter.open(code, self._dialogue)
        try:
            return (yield from self._interpreter.drive(dialogue, code, "module", bound, limits, listening))
        finally:
            if not self._interpreter._link().closed:
                dialogue.kill()

    def close(self) -> None:
        """Let it go. Idempotent."""
        self._dialogue.kill()


def check_code(code: object) -> None:
    if not isinstance(code, str):
        raise TypeError(f"code is a str, not {type(code).__name__}")


def check_limits(limits: object) -> RunLimits:
    """Those of a run; the usual ones for None. TypeError."""
    if limits is None:
        return DEFAULT
    if not isinstance(limits, RunLimits):
        raise TypeError(f"a run's limits are RunLimits(...), not {type(limits).__name__}")
    return limits


def check_rebinding(given: Globals | None, known: frozenset[str]) -> None:
    """ValueError for a name that the prefix was not given."""
    unknown = sorted(set(given or {}) - known)
    if unknown:
        raise ValueError(
            f"globals: {', '.join(unknown)} not in the prefix, which has "
            f"{', '.join(sorted(known)) or 'none'}: a run rebinds existing names only"
        )
