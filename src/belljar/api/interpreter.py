"""`sandbox.python` and `sandbox.js`: a persistent interpreter, and prefixes from whose exact state runs start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self

from belljar.abi.limits import Limits, RunLimits
from belljar.api.await_host import exclusive
from belljar.api.bridge import HostCall, check_globals
from belljar.api.clock_host import monotonic
from belljar.api.dialogue import AT_WORK, STARTING, Dialogue, Engine, Mode, Run, Stem
from belljar.api.errors import SandboxError
from belljar.api.link_host import Link
from belljar.api.owner_host import Owner, refuse_copy
from belljar.api.request import GRACE
from belljar.api.runs import RunResult
from belljar.api.saved import MAX_BYTES, SavedVariables, check_language, check_size, lost_from, saved_from

Globals = Mapping[str, Any]
DEFAULT: Final = RunLimits()


class PrefixError(SandboxError):
    """The code of a prefix failed; `result` has what it said."""

    def __init__(self, result: RunResult) -> None:
        assert result.error is not None
        super().__init__(f"the prefix failed: {result.error}\n{result.error.stack}".rstrip())
        self.result = result


class Interpreter:
    """One persistent interpreter. It starts with its first run and keeps its variables until `reset`, or until a run
    is ended by a limit: the next run then finds a new one.

    >>> sandbox.python.run("x = 41")
    >>> sandbox.python.run("x + 1").value
    42
    """

    def __init__(self, link: Callable[[], Link], engine: Engine, limits: Limits, *, tools: Globals) -> None:
        self._link = link
        self._engine = engine
        self._limits = limits
        self._tools = tools
        self._dialogue: Dialogue | None = None
        self._lock = exclusive()
        self._owner = Owner("interpreter")
        self._lost = False
        """It was at work when this branch was made of its sandbox."""

    @contextmanager
    def at_rest(self) -> Iterator[Stem]:
        """For a fork of the sandbox: no run begins meanwhile."""
        if not self._lock.acquire(blocking=False):
            yield Stem(at_work=True)
            return
        try:
            dialogue = self._dialogue
            yield Stem(None if dialogue is None or dialogue.ended else dialogue, at_work=self._lost)
        finally:
            self._lock.release()

    def grow(self, stem: Stem) -> None:
        """In a branch: be what the origin's is."""
        self._lost = stem.at_work
        if stem.dialogue is not None and not stem.dialogue.ended:
            link = self._link()
            self._dialogue = stem.dialogue.branch(link.conversation, link.send, _caller(link))

    def run(self, code: str, *, globals: Globals | None = None, limits: RunLimits | None = None) -> RunResult:
        """Run code in the interpreter. Never raises for what the code did: see `ok` and `error`.

        `globals` binds names before it runs: host functions, and plain data. They stay bound.
        """
        self._owner.check()
        check_code(code)
        limits = check_limits(limits)
        functions, values = check_globals(globals)
        with self._lock:
            if self._lost:
                raise SandboxError(AT_WORK)
            dialogue = self._dialogue
            if dialogue is None or dialogue.ended:
                functions = {**self._tools, **functions}
                self._dialogue = dialogue = self._open(code)
            return self._run(dialogue, code, "repl", (functions, values), limits)

    def precompile(self, code: str = "", globals: Globals | None = None) -> Prefix:
        """Run `code` once, in an interpreter of its own; each `prefix.run` then starts from exactly there.

        Raises `PrefixError` if it fails.
        """
        functions, values = check_globals(globals)
        check_code(code)
        dialogue = self._open(code, prefix=True)
        result = self._run(dialogue, code, "prefix", ({**self._tools, **functions}, values), DEFAULT)
        if result.error is not None:
            dialogue.kill()
            raise PrefixError(result)
        return Prefix(self, dialogue, frozenset(values))

    @property
    def started(self) -> bool:
        """Whether it has variables: it has run something, and was not ended since."""
        return self._dialogue is not None and not self._dialogue.ended

    def interrupt(self) -> None:
        """What ^C does to the run under way, from another thread: it ends with KeyboardInterrupt."""
        if self._dialogue is not None:
            self._dialogue.interrupt()

    def reset(self) -> None:
        """Forget everything: the next run finds a new interpreter."""
        dialogue, self._dialogue = self._dialogue, None
        self._lost = False
        if dialogue is not None:
            dialogue.kill()

    def save(self, *, max_bytes: int = MAX_BYTES, leave_out: Iterable[str] = ()) -> SavedVariables:
        """The variables, for an interpreter elsewhere or later: data, functions and classes by value, modules by name.

        What can't be saved is named in `left_out`, with the reason. Files are the sandbox's and not among them.
        Raises SnapshotError if nothing could be saved.

        >>> saved = sandbox.python.save()
        >>> another_sandbox.python.load(saved)
        """
        self._owner.check()
        values = {"max_bytes": check_size(max_bytes), "leave_out": sorted(leave_out)}
        with self._lock:
            if self._lost:
                raise SandboxError(AT_WORK)
            if self._dialogue is None or self._dialogue.ended:
                self._dialogue = self._open("")
            result = self._run(self._dialogue, "", "save", ({}, values), DEFAULT)
        return saved_from(result, "python", max_bytes)

    def load(self, saved: SavedVariables, *, globals: Globals | None = None) -> dict[str, str]:
        """Start afresh with saved variables; gives the names of those that can't be had back, with the reason.

        `globals` binds host functions that the variables may refer to. Raises SnapshotError, and is then empty.
        """
        self._owner.check()
        check_language(saved, "python")
        functions, _ = check_globals(globals)
        with self._lock:
            self.reset()
            self._dialogue = dialogue = self._open(saved.begins_with)
            bound = ({**self._tools, **functions}, {"data": saved.data})
            result = self._run(dialogue, "", "load", bound, DEFAULT)
            if result.error is not None:
                self.reset()
        return lost_from(result)

    def another(self) -> Interpreter:
        """A further interpreter in the same sandbox, with variables of its own; `reset` ends it."""
        return Interpreter(self._link, self._engine, self._limits, tools=self._tools)

    __reduce__ = refuse_copy

    def _open(self, code: str, forks: Dialogue | None = None, *, prefix: bool = False) -> Dialogue:
        link = self._link()
        return Dialogue(
            link.conversation,
            link.send,
            self._engine,
            self._limits,
            _caller(link),
            forks=forks,
            prefix=prefix,
            begins_with=code,
        )

    def _run(
        self, dialogue: Dialogue, code: str, mode: Mode, bound: tuple[Globals, Globals], limits: RunLimits
    ) -> RunResult:
        link, began = self._link(), monotonic()
        run = dialogue.begin(code, mode, *bound, limits)
        try:
            link.wait_until(lambda: dialogue.ready or run.done or dialogue.running.done, began + STARTING)
            deadline = monotonic() + dialogue.wall_seconds(limits)
            if not link.wait_until(lambda: run.done or dialogue.running.done, deadline):
                dialogue.over_time(run)
        except KeyboardInterrupt:
            dialogue.kill()
            raise
        if dialogue.killed:
            link.expect(lambda: dialogue.running.done, monotonic() + GRACE)
        dialogue.check_end(run)
        return run.result(monotonic() - began)


class Prefix:
    """A state to start runs from. They are independent of each other, and may be parallel (from several threads)."""

    __reduce__ = refuse_copy

    def __init__(self, interpreter: Interpreter, dialogue: Dialogue, values: frozenset[str]) -> None:
        self._interpreter = interpreter
        self._dialogue = dialogue
        self._values = values

    def run(self, code: str, *, limits: RunLimits | None = None, globals: Globals | None = None) -> RunResult:
        """Run code from the prefix's exact state. `globals` gives existing names another value for this run.

        Never raises for what the code did: see `ok` and `error`.
        """
        check_code(code)
        limits = check_limits(limits)
        bound = check_globals(globals)
        check_rebinding(globals, self._dialogue.names | self._values)
        if self._dialogue.ended:
            raise SandboxError("the prefix is closed: precompile it again")
        dialogue = self._interpreter._open(code, self._dialogue)
        try:
            return self._interpreter._run(dialogue, code, "module", bound, limits)
        finally:
            dialogue.kill()

    def close(self) -> None:
        """Let the prefix go. Idempotent."""
        self._dialogue.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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


def _caller(link: Link) -> Callable[[Dialogue, HostCall], None]:
    """Calls host functions on the sandbox's threads: a run's time limit holds while they are at work."""

    def call(dialogue: Dialogue, wanted: HostCall) -> None:
        run = dialogue.run
        assert isinstance(run, Run)

        def work() -> None:
            line = wanted.run()
            try:
                dialogue.answer(run, line)
            except SandboxError:
                return  # the sandbox ended while its function was at work

        link.threads.start(lambda: run.context.copy().run(work))

    return call
