"""Prefixes: states of an interpreter that runs start from, of Python and JavaScript, in both fronts."""

from __future__ import annotations

from typing import Protocol, Self

from belljar.abi.limits import RunLimits
from belljar.api.command import Listening, check_listeners
from belljar.api.core import OnChunk
from belljar.api.interpreter_core import Globals
from belljar.api.owner_host import refuse_copy
from belljar.api.runs import RunResult
from belljar.api.stepper import Waits, finish, finish_async


class PrefixCore(Protocol):
    """The part that depends on the language."""

    def run(
        self, code: str, limits: RunLimits | None, globals: Globals | None, listening: Listening | None
    ) -> Waits[RunResult]: ...
    def close(self) -> None: ...


class Prefix:
    """A state to start runs from. They are independent of each other, and may be parallel (from several threads)."""

    __reduce__ = refuse_copy

    def __init__(self, core: PrefixCore) -> None:
        self._core = core

    def run(
        self,
        code: str,
        *,
        limits: RunLimits | None = None,
        globals: Globals | None = None,
        on_stdout: OnChunk | None = None,
        on_stderr: OnChunk | None = None,
    ) -> RunResult:
        """Run code (JavaScript: a module) from the prefix's exact state.

        `globals` gives existing names another value for this run. Never raises for what the code did: see `ok` and
        `error`.
        """
        return finish(self._core.run(code, limits, globals, check_listeners(on_stdout, on_stderr)))

    def close(self) -> None:
        """Let the prefix go; of JavaScript, with it every run that is under way. Idempotent."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncPrefix:
    """A state to start runs from. See `Prefix`. Cancelling a run ends it."""

    __reduce__ = refuse_copy

    def __init__(self, core: PrefixCore) -> None:
        self._core = core

    async def run(
        self,
        code: str,
        *,
        limits: RunLimits | None = None,
        globals: Globals | None = None,
        on_stdout: OnChunk | None = None,
        on_stderr: OnChunk | None = None,
    ) -> RunResult:
        """Run code from the prefix's exact state. See `Prefix.run`."""
        listening = check_listeners(on_stdout, on_stderr, awaited=True)
        return await finish_async(self._core.run(code, limits, globals, listening))

    async def close(self) -> None:
        """Let the prefix go. Idempotent."""
        self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
