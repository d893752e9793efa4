"""`AsyncSandbox.js` and `belljar.async_js()`: the interpreters of `js.py`, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from belljar.abi.limits import RunLimits
from belljar.api.bridge import HostFunction, check_globals
from belljar.api.clock_host import monotonic
from belljar.api.dialogue import AT_WORK, Mode
from belljar.api.errors import SandboxClosed, SandboxError
from belljar.api.interpreter import DEFAULT, Globals, PrefixError, check_code, check_limits
from belljar.api.js import (
    OUTPUT_BYTES,
    Bound,
    JsPrefix,
    bind_fetch,
    branch_session,
    engine_name,
    keeps_state,
    start_prefix,
)
from belljar.api.js_link_host import JsLink
from belljar.api.runs import RunResult
from belljar.api.saved import MAX_BYTES, SavedVariables, check_language, check_size, lost_from, saved_from

if TYPE_CHECKING:
    from belljar.net.broker.gate_host import Gate


def async_js() -> AsyncJsInterpreter:
    """A JavaScript interpreter without a sandbox around it, for asyncio programs."""
    return AsyncJsInterpreter()


class AsyncJsPrefix:
    """A state to start runs from. See `JsPrefix`. Cancelling a run ends it."""

    def __init__(self, prefix: JsPrefix) -> None:
        self._prefix = prefix

    async def run(self, code: str, *, limits: RunLimits | None = None, globals: Globals | None = None) -> RunResult:
        """Run a module from the prefix's exact state; `globals` gives existing names another value for this run."""
        limits = check_limits(limits)
        bound = self._prefix._check(code, globals)
        began = monotonic()
        link = await asyncio.to_thread(self._prefix._open)
        try:
            run, frame = link.dialogue.begin(code, "module", "run.mjs", *bound, limits, bound=self._prefix._functions)
            await link.drive_async(run, frame, limits.wall_ms / 1e3)
            return run.result(monotonic() - began)
        finally:
            link.kill()

    async def close(self) -> None:
        """Let the prefix go, and with it every run that is under way. Idempotent."""
        self._prefix.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncJsInterpreter:
    """One persistent interpreter. See `JsInterpreter`. Cancelling a run ends it; the next finds a new one."""

    def __init__(
        self,
        *,
        tools: Globals = MappingProxyType({}),
        output_bytes: int = OUTPUT_BYTES,
        network: Callable[[], Gate] | None = None,
    ) -> None:
        self._tools: dict[str, HostFunction] = dict(tools)
        self._network = network
        self._output_bytes = output_bytes
        self._lock = asyncio.Lock()
        self._base: AsyncJsPrefix | None = None
        self._session: JsLink | None = None
        self._prefixes: WeakSet[JsPrefix] = WeakSet()
        self._others: WeakSet[AsyncJsInterpreter] = WeakSet()
        self._closed = False
        self._lost = False
        """It was at work when this branch was made of its sandbox."""

    async def branch_into(self, branch: AsyncJsInterpreter) -> None:
        """Its sandbox was forked: give the branch's interpreter a copy of what there is here. Raises SandboxError."""
        if self._lock.locked():
            branch._lost = True
            return
        async with self._lock:
            branch._lost = self._lost
            if self._session is not None:
                bind_fetch(branch._tools, branch._network)
                branch._session = await asyncio.to_thread(branch_session, self._session)

    async def run(self, code: str, *, globals: Globals | None = None, limits: RunLimits | None = None) -> RunResult:
        """Run code in the interpreter; its value is that of the last expression. Never raises for what the code did."""
        check_code(code)
        bound = check_globals(globals)
        async with self._lock:
            return await self._run(code, "repl", bound, check_limits(limits))

    async def _run(self, code: str, mode: Mode, bound: Bound, limits: RunLimits) -> RunResult:
        if self._lost:
            raise SandboxError(AT_WORK)
        began = monotonic()
        link = self._session
        if link is None:
            if self._base is None:
                self._base = await self._precompile("", {}, {}, sessions=True)
            self._session = link = await asyncio.to_thread(self._base._prefix._open)
        run, frame = link.dialogue.begin(code, mode, "run.js", *bound, limits, bound=self._tools)
        try:
            await link.drive_async(run, frame, limits.wall_ms / 1e3)
        except BaseException:
            await self.reset()
            raise
        if not keeps_state(run):
            await self.reset()
        return run.result(monotonic() - began)

    async def save(self, *, max_bytes: int = MAX_BYTES, leave_out: Iterable[str] = ()) -> SavedVariables:
        """The variables, for an interpreter elsewhere or later. See `JsInterpreter.save`."""
        values = {"max_bytes": check_size(max_bytes), "leave_out": sorted(leave_out)}
        async with self._lock:
            return saved_from(await self._run("", "save", ({}, values), DEFAULT), "javascript", max_bytes)

    async def load(self, saved: SavedVariables, *, globals: Globals | None = None) -> dict[str, str]:
        """Start afresh with saved variables; gives those that can't be had back. See `JsInterpreter.load`."""
        check_language(saved, "javascript")
        functions, _ = check_globals(globals)
        async with self._lock:
            await self.reset()
            result = await self._run("", "load", (functions, {"data": saved.data}), DEFAULT)
            if result.error is not None:
                await self.reset()
        return lost_from(result)

    @property
    def started(self) -> bool:
        """Whether it has variables: it has run something, and was not ended since."""
        return self._session is not None

    def another(self) -> AsyncJsInterpreter:
        """A further interpreter with the same tools and network, and variables of its own; `close` ends it."""
        other = AsyncJsInterpreter(tools=self._tools, output_bytes=self._output_bytes, network=self._network)
        self._others.add(other)
        return other

    @property
    def engine(self) -> str:
        """What runs its code: see `JsInterpreter.engine`."""
        return engine_name()

    async def precompile(self, code: str = "", globals: Globals | None = None, *, wasm: bool = False) -> AsyncJsPrefix:
        """Evaluate `code` once; each `prefix.run` then starts from exactly there. Raises `PrefixError` if it fails."""
        check_code(code)
        return await self._precompile(code, *check_globals(globals), wasm=wasm)

    async def _precompile(
        self,
        code: str,
        functions: Mapping[str, HostFunction],
        values: Mapping[str, Any],
        *,
        wasm: bool = False,
        sessions: bool = False,
    ) -> AsyncJsPrefix:
        bind_fetch(self._tools, self._network)
        bound: Mapping[str, HostFunction] = {**self._tools, **functions}
        if self._closed:
            raise SandboxClosed("the interpreter is closed, with its sandbox")
        process = await asyncio.to_thread(start_prefix, wasm=wasm, sessions=sessions)
        began = monotonic()
        link = JsLink(None, process.connection, self._output_bytes)
        try:
            run, frame = link.dialogue.begin(code, "prefix", "prefix.js", bound, values, DEFAULT, wasm=wasm)
            await link.drive_async(run, frame, DEFAULT.wall_ms / 1e3)
            result = run.result(monotonic() - began)
            if result.error is not None:
                raise PrefixError(result)
            process.expect_runs()
        except BaseException:
            process.close()
            raise
        prefix = JsPrefix(process, bound, frozenset(values), self._output_bytes)
        self._prefixes.add(prefix)
        return AsyncJsPrefix(prefix)

    async def reset(self) -> None:
        """Forget everything: the next run finds a new interpreter."""
        session, self._session = self._session, None
        self._lost = False
        if session is not None:
            session.kill()

    async def close(self) -> None:
        """End the interpreter and all its prefixes. Idempotent."""
        self._closed = True
        await self.reset()
        for prefix in list(self._prefixes):
            prefix.close()
        for other in list(self._others):
            await other.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
