"""`AsyncSandbox.python` and `.js`: the interpreters of `interpreter.py`, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Self

from belljar.abi.limits import Limits, RunLimits
from belljar.api.async_link_host import AsyncLink
from belljar.api.bridge import HostCall, check_globals
from belljar.api.clock_host import monotonic
from belljar.api.dialogue import AT_WORK, STARTING, Dialogue, Engine, Mode, Run, Stem
from belljar.api.errors import SandboxError
from belljar.api.interpreter import DEFAULT, Globals, PrefixError, check_code, check_limits, check_rebinding
from belljar.api.owner_host import refuse_copy
from belljar.api.request import GRACE
from belljar.api.runs import RunResult
from belljar.api.saved import MAX_BYTES, SavedVariables, check_language, check_size, lost_from, saved_from


class AsyncInterpreter:
    """One persistent interpreter. See `Interpreter`. Cancelling a run ends it; the next finds a new one."""

    def __init__(self, link: Callable[[], AsyncLink], engine: Engine, limits: Limits, *, tools: Globals) -> None:
        self._link = link
        self._engine = engine
        self._limits = limits
        self._tools = tools
        self._dialogue: Dialogue | None = None
        self._lock = asyncio.Lock()
        self._lost = False
        """It was at work when this branch was made of its sandbox."""

    @asynccontextmanager
    async def at_rest(self) -> AsyncIterator[Stem]:
        """For a fork of the sandbox: no run begins meanwhile."""
        if self._lock.locked():
            yield Stem(at_work=True)
            return
        async with self._lock:
            dialogue = self._dialogue
            yield Stem(None if dialogue is None or dialogue.ended else dialogue, at_work=self._lost)

    def grow(self, stem: Stem) -> None:
        """In a branch: be what the origin's is."""
        self._lost = stem.at_work
        if stem.dialogue is not None and not stem.dialogue.ended:
            link = self._link()
            self._dialogue = stem.dialogue.branch(link.conversation, link.send, self._caller(link))

    async def run(self, code: str, *, globals: Globals | None = None, limits: RunLimits | None = None) -> RunResult:
        """Run code in the interpreter. Never raises for what the code did: see `ok` and `error`."""
        check_code(code)
        limits = check_limits(limits)
        functions, values = check_globals(globals)
        async with self._lock:
            if self._lost:
                raise SandboxError(AT_WORK)
            dialogue = self._dialogue
            if dialogue is None or dialogue.ended:
                functions = {**self._tools, **functions}
                self._dialogue = dialogue = self._open(code)
            return await self._run(dialogue, code, "repl", (functions, values), limits)

    async def precompile(self, code: str = "", globals: Globals | None = None) -> AsyncPrefix:
        """Run `code` once; each `prefix.run` then starts from exactly there. Raises `PrefixError` if it fails."""
        functions, values = check_globals(globals)
        check_code(code)
        dialogue = self._open(code, prefix=True)
        result = await self._run(dialogue, code, "prefix", ({**self._tools, **functions}, values), DEFAULT)
        if result.error is not None:
            dialogue.kill()
            raise PrefixError(result)
        return AsyncPrefix(self, dialogue, frozenset(values))

    @property
    def started(self) -> bool:
        """Whether it has variables: it has run something, and was not ended since."""
        return self._dialogue is not None and not self._dialogue.ended

    async def interrupt(self) -> None:
        """What ^C does to the run under way: it ends with KeyboardInterrupt, the variables stay."""
        if self._dialogue is not None:
            self._dialogue.interrupt()

    async def reset(self) -> None:
        """Forget everything: the next run finds a new interpreter."""
        dialogue, self._dialogue = self._dialogue, None
        self._lost = False
        if dialogue is not None:
            dialogue.kill()

    async def save(self, *, max_bytes: int = MAX_BYTES, leave_out: Iterable[str] = ()) -> SavedVariables:
        """The variables, for an interpreter elsewhere or later. See `Interpreter.save`."""
        values = {"max_bytes": check_size(max_bytes), "leave_out": sorted(leave_out)}
        async with self._lock:
            if self._lost:
                raise SandboxError(AT_WORK)
            if self._dialogue is None or self._dialogue.ended:
                self._dialogue = self._open("")
            result = await self._run(self._dialogue, "", "save", ({}, values), DEFAULT)
        return saved_from(result, "python", max_bytes)

    async def load(self, saved: SavedVariables, *, globals: Globals | None = None) -> dict[str, str]:
        """Start afresh with saved variables; gives those that can't be had back. See `Interpreter.load`."""
        check_language(saved, "python")
        functions, _ = check_globals(globals)
        async with self._lock:
            await self.reset()
            self._dialogue = dialogue = self._open(saved.begins_with)
            bound = ({**self._tools, **functions}, {"data": saved.data})
            result = await self._run(dialogue, "", "load", bound, DEFAULT)
            if result.error is not None:
                await self.reset()
        return lost_from(result)

    def another(self) -> AsyncInterpreter:
        """A further interpreter in the same sandbox, with variables of its own; `reset` ends it."""
        return AsyncInterpreter(self._link, self._engine, self._limits, tools=self._tools)

    __reduce__ = refuse_copy

    def _open(self, code: str, forks: Dialogue | None = None, *, prefix: bool = False) -> Dialogue:
        link = self._link()
        return Dialogue(
            link.conversation,
            link.send,
            self._engine,
            self._limits,
            self._caller(link),
            forks=forks,
            prefix=prefix,
            begins_with=code,
        )

    def _caller(self, link: AsyncLink) -> Callable[[Dialogue, HostCall], None]:
        """What calls host functions."""
        tasks: set[asyncio.Task[None]] = set()

        def call(dialogue: Dialogue, wanted: HostCall) -> None:
            run = dialogue.run
            assert run is not None
            task = asyncio.get_running_loop().create_task(_answer(link, dialogue, run, wanted))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        return call

    async def _run(
        self, dialogue: Dialogue, code: str, mode: Mode, bound: tuple[Globals, Globals], limits: RunLimits
    ) -> RunResult:
        link, began = self._link(), monotonic()
        run = dialogue.begin(code, mode, *bound, limits)
        try:
            await link.wait_until(lambda: dialogue.ready or run.done or dialogue.running.done, began + STARTING)
            deadline = monotonic() + dialogue.wall_seconds(limits)
            if not await link.wait_until(lambda: run.done or dialogue.running.done, deadline):
                dialogue.over_time(run)
        except asyncio.CancelledError:
            if not link.closed:
                dialogue.kill()
            raise
        if dialogue.killed:
            await link.expect(lambda: dialogue.running.done, monotonic() + GRACE)
        dialogue.check_end(run)
        return run.result(monotonic() - began)


class AsyncPrefix:
    """A state to start runs from. See `Prefix`."""

    __reduce__ = refuse_copy

    def __init__(self, interpreter: AsyncInterpreter, dialogue: Dialogue, values: frozenset[str]) -> None:
        self._interpreter = interpreter
        self._dialogue = dialogue
        self._values = values

    async def run(self, code: str, *, limits: RunLimits | None = None, globals: Globals | None = None) -> RunResult:
        """Run code from the prefix's exact state; `globals` rebinds existing names for this run."""
        check_code(code)
        limits = check_limits(limits)
        bound = check_globals(globals)
        check_rebinding(globals, self._dialogue.names | self._values)
        if self._dialogue.ended:
            raise SandboxError("the prefix is closed: precompile it again")
        dialogue = self._interpreter._open(code, self._dialogue)
        try:
            return await self._interpreter._run(dialogue, code, "module", bound, limits)
        finally:
            dialogue.kill()

    async def close(self) -> None:
        """Let the prefix go. Idempotent."""
        self._dialogue.kill()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _answer(link: AsyncLink, dialogue: Dialogue, run: Run, call: HostCall) -> None:
    line = await call.run_async(link.threads.start)
    if not link.closed:
        dialogue.answer(run, line)
