"""`sandbox.js` and `belljar.js()`: a persistent JavaScript interpreter, and prefixes that many runs start from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakSet

from belljar.abi.limits import Limits, RunLimits
from belljar.api.await_host import exclusive
from belljar.api.bridge import HostFunction, check_globals
from belljar.api.clock_host import monotonic
from belljar.api.dialogue import AT_WORK, Mode, Run
from belljar.api.errors import EngineUnavailable, SandboxClosed, SandboxError
from belljar.api.interpreter import DEFAULT, Globals, PrefixError, check_code, check_limits, check_rebinding
from belljar.api.js_link_host import JsLink
from belljar.api.runs import RunResult
from belljar.api.saved import MAX_BYTES, SavedVariables, check_language, check_size, lost_from, saved_from
from belljar.engines.js.prefix_host import PrefixProcess
from belljar.engines.quickjs.choice_host import check_wasm, expected
from belljar.engines.template_host import EngineUnavailable as NoEngine

if TYPE_CHECKING:
    from belljar.net.broker.gate_host import Gate

OUTPUT_BYTES: Final = Limits().output_bytes
_SURVIVED: Final = ("cpu_ms", "unsettled")
Bound = tuple[Mapping[str, HostFunction], Mapping[str, Any]]


def bind_fetch(tools: dict[str, HostFunction], network: Callable[[], Gate] | None) -> None:
    """Give guests the network their sandbox was granted, as the function behind their `fetch`."""
    if network is not None and "fetch" not in tools:
        from belljar.net.broker.fetch_host import fetch_through  # who has no network need not wait for it

        tools["fetch"] = fetch_through(network)


def keeps_state(run: Run) -> bool:
    """Whether a session is as its run left it: it is not if the process was ended, or is out of memory."""
    return run.error is None or run.error.name in _SURVIVED or run.error.code in ("SYNTAX_ERROR", "RUNTIME_ERROR")


def branch_session(session: JsLink) -> JsLink:
    """A copy of a session that waits for its next run. Raises SandboxError."""
    try:
        return session.branch()
    except NoEngine as error:
        raise SandboxError(f"the sandbox could not be forked, because of its interpreter: {error}") from error


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


def js() -> JsInterpreter:
    """A JavaScript interpreter without a sandbox around it: as sealed, with no files, commands or network."""
    return JsInterpreter()


class JsPrefix:
    """A state to start runs from. They are independent of each other, and may be parallel (from several threads)."""

    def __init__(
        self,
        process: PrefixProcess,
        functions: Mapping[str, HostFunction],
        values: frozenset[str],
        output_bytes: int,
    ) -> None:
        self._process = process
        self._functions = functions
        self._values = values
        self._output_bytes = output_bytes

    def run(self, code: str, *, limits: RunLimits | None = None, globals: Globals | None = None) -> RunResult:
        """Run a module from the prefix's exact state. `globals` gives existing names another value for this run.

        Never raises for what the code did: see `ok` and `error`.
        """
        limits = check_limits(limits)
        bound = self._check(code, globals)
        began = monotonic()
        link = self._open()
        try:
            run, frame = link.dialogue.begin(code, "module", "run.mjs", *bound, limits, bound=self._functions)
            link.drive(run, frame, limits.wall_ms / 1e3)
            return run.result(monotonic() - began)
        finally:
            link.kill()

    def _check(self, code: str, globals: Globals | None) -> Bound:
        check_code(code)
        bound = check_globals(globals)
        check_rebinding(globals, self._values.union(self._functions))
        return bound

    def _open(self) -> JsLink:
        if not self._process.alive:
            raise SandboxError("the prefix is closed: precompile it again")
        try:
            process = self._process.take()
        except NoEngine as error:
            raise EngineUnavailable(str(error)) from error
        return JsLink(process, process.connection, self._output_bytes)

    def close(self) -> None:
        """Let the prefix go, and with it every run that is under way. Idempotent."""
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            process.close()


class JsInterpreter:
    """One persistent interpreter. It starts with its first run and keeps its variables until `reset`.

    >>> sandbox.js.run("let x = 41")
    >>> sandbox.js.run("x + 1").value
    42
    """

    def __init__(
        self,
        *,
        tools: Globals = MappingProxyType({}),
        output_bytes: int = OUTPUT_BYTES,
        network: Callable[[], Gate] | None = None,
    ) -> None:
        self._tools = dict(tools)
        self._network = network
        self._output_bytes = output_bytes
        self._lock = exclusive()
        self._base: JsPrefix | None = None
        self._session: JsLink | None = None
        self._prefixes: WeakSet[JsPrefix] = WeakSet()
        self._others: WeakSet[JsInterpreter] = WeakSet()
        self._closed = False
        self._lost = False
        """It was at work when this branch was made of its sandbox."""

    def branch_into(self, branch: JsInterpreter) -> None:
        """Its sandbox was forked: give the branch's interpreter a copy of what there is here. Raises SandboxError."""
        if not self._lock.acquire(blocking=False):
            branch._lost = True
            return
        try:
            branch._lost = self._lost
            if self._session is not None:
                bind_fetch(branch._tools, branch._network)
                branch._session = branch_session(self._session)
        finally:
            self._lock.release()

    def run(self, code: str, *, globals: Globals | None = None, limits: RunLimits | None = None) -> RunResult:
        """Run code in the interpreter; its value is that of the last expression. Never raises for what the code did.

        `globals` binds names before it runs: host functions, and plain data. They stay bound.
        """
        check_code(code)
        with self._lock:
            return self._run(code, "repl", check_globals(globals), check_limits(limits))

    def _run(self, code: str, mode: Mode, bound: Bound, limits: RunLimits) -> RunResult:
        if self._lost:
            raise SandboxError(AT_WORK)
        began = monotonic()
        link = self._session
        if link is None:
            if self._base is None:
                self._base = self._precompile("", {}, {}, sessions=True)
            self._session = link = self._base._open()
        run, frame = link.dialogue.begin(code, mode, "run.js", *bound, limits, bound=self._tools)
        try:
            link.drive(run, frame, limits.wall_ms / 1e3)
        except BaseException:
            self.reset()
            raise
        if not keeps_state(run):
            self.reset()
        return run.result(monotonic() - began)

    def save(self, *, max_bytes: int = MAX_BYTES, leave_out: Iterable[str] = ()) -> SavedVariables:
        """The variables, for an interpreter elsewhere or later: data by structure, functions and classes by source.

        What can't be saved is named in `left_out`, with the reason. Raises SnapshotError if nothing could be saved.
        """
        values = {"max_bytes": check_size(max_bytes), "leave_out": sorted(leave_out)}
        with self._lock:
            return saved_from(self._run("", "save", ({}, values), DEFAULT), "javascript", max_bytes)

    def load(self, saved: SavedVariables, *, globals: Globals | None = None) -> dict[str, str]:
        """Start afresh with saved variables; gives the names of those that can't be had back, with the reason.

        `globals` binds host functions that the variables may refer to. Raises SnapshotError, and is then empty.
        """
        check_language(saved, "javascript")
        functions, _ = check_globals(globals)
        with self._lock:
            self.reset()
            result = self._run("", "load", (functions, {"data": saved.data}), DEFAULT)
            if result.error is not None:
                self.reset()
        return lost_from(result)

    @property
    def started(self) -> bool:
        """Whether it has variables: it has run something, and was not ended since."""
        return self._session is not None

    def another(self) -> JsInterpreter:
        """A further interpreter with the same tools and network, and variables of its own; `close` ends it."""
        other = JsInterpreter(tools=self._tools, output_bytes=self._output_bytes, network=self._network)
        self._others.add(other)
        return other

    @property
    def engine(self) -> str:
        """What runs its code: "v8", or "quickjs" where V8 can't be had or is not wanted (docs/javascript.md)."""
        return engine_name()

    def precompile(self, code: str = "", globals: Globals | None = None, *, wasm: bool = False) -> JsPrefix:
        """Evaluate `code` once, in a process of its own; each `prefix.run` then starts from exactly there.

        `wasm` gives it and its runs WebAssembly (V8 only). Raises `PrefixError` if it fails.
        """
        check_code(code)
        return self._precompile(code, *check_globals(globals), wasm=wasm)

    def _precompile(
        self,
        code: str,
        functions: Mapping[str, HostFunction],
        values: Mapping[str, Any],
        *,
        wasm: bool = False,
        sessions: bool = False,
    ) -> JsPrefix:
        bind_fetch(self._tools, self._network)
        functions = {**self._tools, **functions}
        if self._closed:
            raise SandboxClosed("the interpreter is closed, with its sandbox")
        process = start_prefix(wasm=wasm, sessions=sessions)
        began = monotonic()
        link = JsLink(None, process.connection, self._output_bytes)
        try:
            run, frame = link.dialogue.begin(code, "prefix", "prefix.js", functions, values, DEFAULT, wasm=wasm)
            link.drive(run, frame, DEFAULT.wall_ms / 1e3)
            result = run.result(monotonic() - began)
            if result.error is not None:
                raise PrefixError(result)
            process.expect_runs()
        except BaseException:
            process.close()
            raise
        prefix = JsPrefix(process, functions, frozenset(values), self._output_bytes)
        self._prefixes.add(prefix)
        return prefix

    def reset(self) -> None:
        """Forget everything: the next run finds a new interpreter."""
        session, self._session = self._session, None
        self._lost = False
        if session is not None:
            session.kill()

    def close(self) -> None:
        """End the interpreter and all its prefixes. Idempotent."""
        self._closed = True
        self.reset()
        for prefix in list(self._prefixes):
            prefix.close()
        for other in list(self._others):
            other.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
