"""`AsyncSandbox.python`: the interpreters of `interpreter.py`, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from belljar.abi.limits import Limits, RunLimits
from belljar.api.async_link_host import AsyncLink
from belljar.api.bridge import HostCall
from belljar.api.command import check_listeners
from belljar.api.core import OnChunk
from belljar.api.dialogue import Dialogue, Engine, ForkState, Run
from belljar.api.interpreter_core import Globals, InterpreterCore
from belljar.api.owner_host import refuse_copy
from belljar.api.prefix import AsyncPrefix
from belljar.api.runs import RunResult
from belljar.api.saved import MAX_BYTES, SavedVariables
from belljar.api.stepper import finish_async


class AsyncInterpreter:
    """One persistent interpreter. See `Interpreter`. Cancelling a run ends it; the next finds a new one."""

    def __init__(self, link: Callable[[], AsyncLink], engine: Engine, limits: Limits, *, tools: Globals) -> None:
        self._given = link, engine, limits, tools
        self.core = InterpreterCore(*self._given, asyncio.Lock(), _caller)

    @asynccontextmanager
    async def quiesced(self) -> AsyncIterator[ForkState]:
        """For a fork of the sandbox: no run begins meanwhile."""
        if self.core.lock.locked():
            yield ForkState(at_work=True)
            return
        async with self.core.lock:
            yield self.core.fork_state()

    def adopt(self, state: ForkState) -> None:
        """In a branch: be what the origin's is."""
        self.core.adopt(state)

    async def run(
        self,
        code: str,
        *,
        globals: Globals | None = None,
        limits: RunLimits | None = None,
        on_stdout: OnChunk | None = None,
        on_stderr: OnChunk | None = None,
    ) -> RunResult:
        """Run code in the interpreter. Never raises for what the code did: see `ok` and `error`."""
        listening = check_listeners(on_stdout, on_stderr, awaited=True)
        return await finish_async(self.core.run(code, globals, limits, listening))

    async def precompile(self, code: str = "", globals: Globals | None = None) -> AsyncPrefix:
        """Run `code` once; each `prefix.run` then starts from exactly there. Raises `PrefixError` if it fails."""
        return AsyncPrefix(await finish_async(self.core.precompile(code, globals)))

    @property
    def started(self) -> bool:
        """Whether it has variables: it has run something, and was not ended since."""
        return self.core.started

    async def interrupt(self) -> None:
        """Interrupt the run under way as ^C does: it ends with KeyboardInterrupt, the variables stay."""
        self.core.interrupt()

    async def reset(self) -> None:
        """Forget everything: the next run finds a new interpreter."""
        self.core.reset()

    async def save(self, *, max_bytes: int = MAX_BYTES, leave_out: Iterable[str] = ()) -> SavedVariables:
        """The variables, for an interpreter elsewhere or later. See `Interpreter.save`."""
        return await finish_async(self.core.save(max_bytes, leave_out))

    async def load(self, saved: SavedVariables, *, globals: Globals | None = None) -> dict[str, str]:
        """Start afresh with saved variables; gives those that can't be had back. See `Interpreter.load`."""
        return await finish_async(self.core.load(saved, globals))

    def another(self) -> AsyncInterpreter:
        """A further interpreter in the same sandbox, with variables of its own; `reset` ends it."""
        link, _, limits, tools = self._given
        return AsyncInterpreter(link, self.core.engine, limits, tools=tools)

    __reduce__ = refuse_copy


def _caller(link: AsyncLink) -> Callable[[Dialogue, HostCall], None]:
    """Calls host functions in tasks."""
    tasks: set[asyncio.Task[None]] = set()

    def call(dialogue: Dialogue, wanted: HostCall) -> None:
        run = dialogue.run
        assert run is not None
        task = asyncio.get_running_loop().create_task(_answer(link, dialogue, run, wanted))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return call


async def _answer(link: AsyncLink, dialogue: Dialogue, run: Run, call: HostCall) -> None:
    line = await call.run_async(link.threads.start)
    if not link.closed:
        dialogue.answer(run, line)
