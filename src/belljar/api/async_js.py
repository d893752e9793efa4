"""`AsyncSandbox.js` and `belljar.async_js()`: the interpreters of `js.py`, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from belljar.abi.limits import RunLimits
from belljar.api.await_host import in_thread
from belljar.api.clock_host import HOST_CLOCK
from belljar.api.command import check_listeners
from belljar.api.core import OnChunk
from belljar.api.interpreter_core import Globals
from belljar.api.js_core import OUTPUT_BYTES, JsCore, JsProcesses
from belljar.api.js_link_host import JsLink
from belljar.api.owner_host import refuse_copy
from belljar.api.prefix import AsyncPrefix
from belljar.api.runs import RunResult
from belljar.api.saved import MAX_BYTES, SavedVariables
from belljar.api.stepper import finish_async

if TYPE_CHECKING:
    from belljar.abi.clock import Clock
    from belljar.net.broker.gate_host import Gate


class _Waits:
    """Await."""

    lock = asyncio.Lock
    call = staticmethod(in_thread)
    drive = staticmethod(JsLink.drive_async)


def async_js() -> AsyncJsInterpreter:
    """A JavaScript interpreter without a sandbox around it, for asyncio programs."""
    return AsyncJsInterpreter()


class AsyncJsInterpreter:
    """One persistent interpreter. See `JsInterpreter`. Cancelling a run ends it; the next finds a new one."""

    def __init__(
        self,
        *,
        tools: Globals = MappingProxyType({}),
        output_bytes: int = OUTPUT_BYTES,
        network: Callable[[], Gate] | None = None,
        processes: JsProcesses | None = None,
        clock: Clock = HOST_CLOCK,
    ) -> None:
        self.core = JsCore(_Waits(), tools, output_bytes, network, processes, clock)

    async def branch_into(self, branch: AsyncJsInterpreter) -> None:
        """Its sandbox was forked: give the branch's interpreter a copy of what there is here. Raises SandboxError."""
        await finish_async(self.core.branch_into(branch.core))

    async def run(
        self,
        code: str,
        *,
        globals: Globals | None = None,
        limits: RunLimits | None = None,
        on_stdout: OnChunk | None = None,
        on_stderr: OnChunk | None = None,
    ) -> RunResult:
        """Run code in the interpreter; its value is that of the last expression. Never raises for what the code did."""
        listening = check_listeners(on_stdout, on_stderr, awaited=True)
        return await finish_async(self.core.run(code, globals, limits, listening))

    async def save(self, *, max_bytes: int = MAX_BYTES, leave_out: Iterable[str] = ()) -> SavedVariables:
        """The variables, for an interpreter elsewhere or later. See `JsInterpreter.save`."""
        return await finish_async(self.core.save(max_bytes, leave_out))

    async def load(self, saved: SavedVariables, *, globals: Globals | None = None) -> dict[str, str]:
        """Start afresh with saved variables; gives those that can't be had back. See `JsInterpreter.load`."""
        return await finish_async(self.core.load(saved, globals))

    @property
    def started(self) -> bool:
        """Whether it has variables: it has run something, and was not ended since."""
        return self.core.started

    def another(self) -> AsyncJsInterpreter:
        """A further interpreter with the same tools and network, and variables of its own; `close` ends it."""
        other = AsyncJsInterpreter.__new__(AsyncJsInterpreter)
        other.core = self.core.another()
        return other

    @property
    def engine(self) -> str:
        """The engine that runs its code: see `JsInterpreter.engine`."""
        return self.core.processes.engine

    async def precompile(self, code: str = "", globals: Globals | None = None, *, wasm: bool = False) -> AsyncPrefix:
        """Evaluate `code` once; each `prefix.run` then starts from exactly there. Raises `PrefixError` if it fails."""
        return AsyncPrefix(await finish_async(self.core.precompile(code, globals, wasm)))

    async def reset(self) -> None:
        """Forget everything: the next run finds a new interpreter."""
        self.core.reset()

    async def close(self) -> None:
        """End the interpreter and all its prefixes. A run that is under way raises SandboxClosed. Idempotent."""
        self.core.close()

    __reduce__ = refuse_copy

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
