"""The JavaScript interpreter of both fronts: what they do, as generators (`stepper.py`); `JsWaits` is how they wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from weakref import WeakSet

from belljar.abi.limits import Limits, RunLimits
from belljar.api.await_host import Threads
from belljar.api.bridge import HostFunction, check_globals
from belljar.api.clock_host import HOST_CLOCK
from belljar.api.command import Listening
from belljar.api.dialogue import AT_WORK, Mode, Run
from belljar.api.errors import EngineUnavailable, SandboxClosed, SandboxError
from belljar.api.interpreter_core import DEFAULT, Globals, Lock, PrefixError, check_code, check_limits, check_rebinding
from belljar.api.js_link_host import JsLink
from belljar.api.owner_host import Owner, owned
from belljar.api.runs import RunResult
from belljar.api.saved import SavedVariables, check_language, check_size, lost_from, saved_from
from belljar.api.stepper import Waits
from belljar.engines.errors import EngineUnavailable as NoEngine
from belljar.engines.owner.js_choice_host import check_wasm, expected
from belljar.engines.owner.js_prefix_host import PrefixProcess
from belljar.engines.owner.template_host import EngineProcess

if TYPE_CHECKING:
    from belljar.abi.clock import Clock
    from belljar.net.broker.gate_host import Gate

OUTPUT_BYTES: Final = Limits().output_bytes
_SURVIVED: Final = ("cpu_ms", "unsettled")
_NAME: Final = "JavaScript interpreter"
T = TypeVar("T")
Bound = tuple[Mapping[str, HostFunction], Mapping[str, Any]]


class JsWaits(Protocol):
    """Waits of a front, for the generators to yield: the value itself, or an awaitable."""

    def lock(self) -> Lock: ...

    def call(self, work: Callable[[], T], discard: Callable[[T], object]) -> Any:
        """The value of a function that may block. `discard` takes one that nobody waits for any more."""

    def drive(self, link: JsLink, run: Run, frame: bytes, seconds: float) -> Any:
        """See a run through."""


def engine_name() -> str:
    """The engine of this process's JavaScript. Raises EngineUnavailable."""
    try:
        return expected().engine
    except NoEngine as error:
        raise EngineUnavailable(str(error)) from error


def start_prefix(*, wasm: bool, sessions: bool) -> PrefixProcess:
    """The process of a prefix that has no code yet. Raises EngineUnavailable."""
    try:
        if wasm:
            check_wasm()
        return PrefixProcess(sessions=sessions)
    except NoEngine as error:
        raise EngineUnavailable(str(error)) from error


def _keeps_state(run: Run) -> bool:
    """Whether a session is as its run left it: it is not if the process was ended, or is out of memory."""
    return run.error is None or run.error.name in _SURVIVED or run.error.code in ("SYNTAX_ERROR", "RUNTIME_ERROR")


class JsProcesses(Protocol):
    """The place where JavaScript runs. Its methods block, and raise EngineUnavailable."""

    @property
    def engine(self) -> str: ...
    def start_prefix(self, *, wasm: bool, sessions: bool) -> PrefixProcess:
        """The process of a prefix that has no code yet."""

    def copy(self, process: EngineProcess) -> EngineProcess:
        """A copy of a session's process, which waits for its next run: of this place, wherever the other is."""


class OwnProcesses:
    """On this machine."""

    @property
    def engine(self) -> str:
        return engine_name()

    def start_prefix(self, *, wasm: bool, sessions: bool) -> PrefixProcess:
        return start_prefix(wasm=wasm, sessions=sessions)

    def take(self, prefix: PrefixProcess) -> EngineProcess:
        """A process in a prefix's exact state."""
        try:
            return prefix.take()
        except NoEngine as error:
            raise EngineUnavailable(str(error)) from error

    def copy(self, process: EngineProcess) -> EngineProcess:
        try:
            return process.copy()
        except NoEngine as error:
            raise EngineUnavailable(str(error)) from error


class PrefixCore:
    """A process that has evaluated a prefix; each run is a fork of it."""

    def __init__(
        self,
        process: PrefixProcess,
        functions: Mapping[str, HostFunction],
        values: frozenset[str],
        output_bytes: int,
        threads: Threads,
        waits: JsWaits,
        clock: Clock,
    ) -> None:
        self._process = process
        self._clock = clock
        self._functions = functions
        self._values = values
        self._output_bytes = output_bytes
        self._threads = threads
        self._waits = waits
        self._owner = Owner(_NAME)
        self._closed: SandboxClosed | None = None
        self._links: WeakSet[JsLink] = WeakSet()
        """Those of runs that are under way."""
        self._evaluating: JsLink | None = None
        owned.add(self)

    def run(
        self, code: str, limits: RunLimits | None, globals: Globals | None, listening: Listening | None
    ) -> Waits[RunResult]:
        self._owner.check()
        limits = check_limits(limits)
        check_code(code)
        bound = check_globals(globals)
        check_rebinding(globals, self._values.union(self._functions))
        began = self._clock.monotonic()
        link: JsLink = yield self._waits.call(self.open, JsLink.kill)
        self._links.add(link)
        try:
            self._check_open()  # it may have been closed meanwhile
            run, frame = link.dialogue.begin(
                code, "module", "run.mjs", *bound, limits, bound=self._functions, listening=listening
            )
            yield self._waits.drive(link, run, frame, limits.wall_ms / 1e3)
            return run.result(self._clock.monotonic() - began)
        finally:
            link.kill()

    def open(self) -> JsLink:
        """A link to a fork of it. Blocks until that is made. Raises SandboxError."""
        self._check_open()
        if not self._process.alive:
            raise SandboxError("the prefix is closed: precompile it again")
        try:
            process = self._process.take()
        except NoEngine as error:
            raise EngineUnavailable(str(error)) from error
        return JsLink(process, self._output_bytes, self._threads, self._clock)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise self._closed

    def close(self, error: SandboxClosed | None = None) -> None:
        """End it; runs that are under way raise `error`, or end as crashed."""
        if self._evaluating is None:
            self._process.kill()
        elif error is not None:
            self._evaluating.close(error)
        else:
            self._evaluating.kill()
        if error is not None:
            self._closed = error
            for link in list(self._links):
                link.close(error)

    disown = close

    def evaluate(self, begin: Callable[[JsLink], tuple[Run, bytes]]) -> Waits[None]:
        """Run the prefix's code. Raises PrefixError."""
        began = self._clock.monotonic()
        self._evaluating = link = JsLink(self._process, self._output_bytes, self._threads, self._clock)
        try:
            run, frame = begin(link)
            yield self._waits.drive(link, run, frame, DEFAULT.wall_ms / 1e3)
        finally:
            self._evaluating = None
        result = run.result(self._clock.monotonic() - began)
        if result.error is not None:
            raise PrefixError(result)
        self._process.expect_runs()

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            process.kill()


class JsCore:
    """One persistent interpreter: a run of a prefix without code that takes one thing after another."""

    def __init__(
        self,
        waits: JsWaits,
        tools: Globals,
        output_bytes: int,
        network: Callable[[], Gate] | None,
        processes: JsProcesses | None = None,
        clock: Clock = HOST_CLOCK,
    ) -> None:
        self._waits = waits
        self._clock = clock
        self.processes = OwnProcesses() if processes is None else processes
        self._tools: dict[str, HostFunction] = dict(tools)
        self._network = network
        self._output_bytes = output_bytes
        self._threads = Threads()
        self._lock = waits.lock()
        self._owner = Owner(_NAME)
        self._base: PrefixCore | None = None
        self._session: JsLink | None = None
        self.first: SavedVariables | None = None
        """The variables that it begins with, until its first run."""
        self._prefixes: WeakSet[PrefixCore] = WeakSet()
        self._others: WeakSet[JsCore] = WeakSet()
        self._closed: SandboxClosed | None = None
        self._lost = False
        """It was at work when this branch was made of its sandbox."""

    def branch_into(self, branch: JsCore) -> Waits[None]:
        """Its sandbox was forked: give the branch's interpreter a copy of what there is here. Raises SandboxError."""
        if self._lock.locked():
            branch._lost = True
            return
        yield self._lock.acquire()
        try:
            branch._lost, branch.first = self._lost, self.first
            session = self._session
            if session is not None:
                branch._bind_fetch()
                branch._session = yield self._waits.call(lambda: _branch(session, branch), JsLink.kill)
        finally:
            self._lock.release()

    def run(
        self, code: str, globals: Globals | None, limits: RunLimits | None, listening: Listening | None
    ) -> Waits[RunResult]:
        check_code(code)
        bound = check_globals(globals)
        return (yield from self._locked(self._run(code, "repl", bound, check_limits(limits), listening)))

    def _locked(self, waits: Waits[T]) -> Waits[T]:
        self._owner.check()
        yield self._lock.acquire()
        try:
            return (yield from waits)
        finally:
            self._lock.release()

    def _run(
        self, code: str, mode: Mode, bound: Bound, limits: RunLimits, listening: Listening | None = None
    ) -> Waits[RunResult]:
        if self._lost:
            raise SandboxError(AT_WORK)
        if self.first is not None:
            lost_from((yield from self._load(self.first, {})))
        began = self._clock.monotonic()
        link = self._session
        if link is None:
            if self._base is None:
                self._base = yield from self._precompile("", {}, {}, sessions=True)
            link = yield self._waits.call(self._base.open, JsLink.kill)
            self._session = link
        if self._closed is not None:  # meanwhile
            self.reset()
            raise self._closed
        run, frame = link.dialogue.begin(code, mode, "run.js", *bound, limits, bound=self._tools, listening=listening)
        try:
            yield self._waits.drive(link, run, frame, limits.wall_ms / 1e3)
        except BaseException:
            self.reset()
            raise
        if not _keeps_state(run):
            self.reset()
        return run.result(self._clock.monotonic() - began)

    def save(self, max_bytes: int, leave_out: Iterable[str]) -> Waits[SavedVariables]:
        values = {"max_bytes": check_size(max_bytes), "leave_out": sorted(leave_out)}
        if self.first is not None and not values["leave_out"]:
            return self.first
        result = yield from self._locked(self._run("", "save", ({}, values), DEFAULT))
        return saved_from(result, "javascript", max_bytes)

    def load(self, saved: SavedVariables, globals: Globals | None) -> Waits[dict[str, str]]:
        check_language(saved, "javascript")
        functions, _ = check_globals(globals)
        return lost_from((yield from self._locked(self._load(saved, functions))))

    def _load(self, saved: SavedVariables, functions: Mapping[str, HostFunction]) -> Waits[RunResult]:
        self.reset()
        result = yield from self._run("", "load", (functions, {"data": saved.data}), DEFAULT)
        if result.error is not None:
            self.reset()
        return result

    @property
    def started(self) -> bool:
        """Whether it has variables: it has run something, and was not ended since."""
        return self.first is not None or self._session is not None

    @property
    def lock(self) -> Lock:
        """Held during runs."""
        return self._lock

    def another(self) -> JsCore:
        other = JsCore(self._waits, self._tools, self._output_bytes, self._network, self.processes, self._clock)
        self._others.add(other)
        return other

    def precompile(self, code: str, globals: Globals | None, wasm: bool) -> Waits[PrefixCore]:
        self._owner.check()
        check_code(code)
        return (yield from self._precompile(code, *check_globals(globals), wasm=wasm))

    def _precompile(
        self,
        code: str,
        functions: Mapping[str, HostFunction],
        values: Mapping[str, Any],
        *,
        wasm: bool = False,
        sessions: bool = False,
    ) -> Waits[PrefixCore]:
        self._bind_fetch()
        functions = {**self._tools, **functions}
        if self._closed is not None:
            raise self._closed
        process: PrefixProcess = yield self._waits.call(
            lambda: self.processes.start_prefix(wasm=wasm, sessions=sessions), PrefixProcess.kill
        )
        prefix = PrefixCore(
            process, functions, frozenset(values), self._output_bytes, self._threads, self._waits, self._clock
        )
        self._prefixes.add(prefix)
        try:
            if self._closed is not None:  # meanwhile
                raise self._closed
            yield from prefix.evaluate(
                lambda link: link.dialogue.begin(code, "prefix", "prefix.js", functions, values, DEFAULT, wasm=wasm)
            )
        except BaseException:
            prefix.close()
            raise
        return prefix

    def _bind_fetch(self) -> None:
        """Give guests the network their sandbox was granted, as the function behind their `fetch`."""
        if self._network is not None and "fetch" not in self._tools:
            from belljar.net.broker.fetch_host import fetch_through  # who has no network need not wait for it

            self._tools["fetch"] = fetch_through(self._network)

    def reset(self) -> None:
        """Forget everything: the next run finds a new interpreter."""
        session, self._session = self._session, None
        self._lost, self.first = False, None
        if session is not None:
            session.kill()

    def close(self) -> None:
        """End the interpreter and all its prefixes; runs that are under way raise SandboxClosed. Idempotent."""
        if self._closed is None:
            self._closed = SandboxClosed("the interpreter was closed, with its sandbox")
        if self._session is not None:
            self._session.close(self._closed)
        self.reset()
        for prefix in list(self._prefixes):
            prefix.close(self._closed)
        for other in list(self._others):
            other.close()

    def __del__(self) -> None:
        session = getattr(self, "_session", None)
        if session is not None:
            session.kill()


def _branch(session: JsLink, branch: JsCore) -> JsLink:
    """A copy of a session that waits for its next run. Raises SandboxError."""
    try:
        return session.branch(branch.processes.copy, branch._threads)
    except EngineUnavailable as error:
        raise SandboxError(f"the sandbox could not be forked, because of its interpreter: {error}") from error
