"""`belljar.python()`: a Python interpreter for its own sake, in a sealed sandbox that nobody else uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypedDict, Unpack

from belljar.abi.limits import RunLimits
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.core import OnChunk
from belljar.api.owner_host import refuse_copy
from belljar.api.prefix import AsyncPrefix, Prefix
from belljar.api.runs import RunResult
from belljar.api.sandbox import Sandbox
from belljar.api.settings import SandboxOptions


class RunOptions(TypedDict, total=False):
    """The arguments of `Interpreter.run`."""

    globals: Mapping[str, Any] | None
    limits: RunLimits | None
    on_stdout: OnChunk | None
    on_stderr: OnChunk | None


class OwnPython:
    """As `sandbox.python`; `close` (or leaving the `with`) ends it."""

    __reduce__ = refuse_copy

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        self._sandbox = Sandbox(**options)

    def run(self, code: str, **options: Unpack[RunOptions]) -> RunResult:
        """See `Interpreter.run`."""
        return self._sandbox.python.run(code, **options)

    def precompile(self, code: str = "", globals: Mapping[str, Any] | None = None) -> Prefix:
        """See `Interpreter.precompile`."""
        return self._sandbox.python.precompile(code, globals)

    def interrupt(self) -> None:
        """See `Interpreter.interrupt`."""
        self._sandbox.python.interrupt()

    def reset(self) -> None:
        """See `Interpreter.reset`."""
        self._sandbox.python.reset()

    def close(self) -> None:
        """Idempotent."""
        self._sandbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncOwnPython:
    """As `AsyncSandbox.python`; made with its first run."""

    __reduce__ = refuse_copy

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        self._sandbox = AsyncSandbox(**options)

    async def _start(self) -> AsyncSandbox:
        return await self._sandbox.start()

    async def run(self, code: str, **options: Unpack[RunOptions]) -> RunResult:
        """See `Interpreter.run`."""
        return await (await self._start()).python.run(code, **options)

    async def precompile(self, code: str = "", globals: Mapping[str, Any] | None = None) -> AsyncPrefix:
        """See `Interpreter.precompile`."""
        return await (await self._start()).python.precompile(code, globals)

    async def interrupt(self) -> None:
        """See `Interpreter.interrupt`."""
        await self._sandbox.python.interrupt()

    async def reset(self) -> None:
        """See `Interpreter.reset`."""
        await self._sandbox.python.reset()

    async def close(self) -> None:
        """Idempotent."""
        await self._sandbox.close()

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def python(**options: Unpack[SandboxOptions]) -> OwnPython:
    """A Python interpreter without a sandbox of yours around it: as sealed, with files only it sees.

    Takes what `Sandbox` takes.
    """
    return OwnPython(**options)


def async_python(**options: Unpack[SandboxOptions]) -> AsyncOwnPython:
    """The same for asyncio."""
    return AsyncOwnPython(**options)
