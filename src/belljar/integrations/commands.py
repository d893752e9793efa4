"""The plain command interface that many agent tools expect of a Docker sandbox, over a belljar sandbox.

>>> from belljar.integrations.commands import use_sandbox
>>> await use_sandbox(lambda sandbox: sandbox.execute_command("uname -a"))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Self, TypeVar, Unpack

from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.results import FileResult
from belljar.remote.choice import PlacedOptions, make_async_sandbox

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CommandResult:
    stdout: str
    stderr: str
    exit_code: int


class CommandSandbox:
    """`execute_command`, `read_file`, `write_files`, `dispose`."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self.sandbox = sandbox

    @classmethod
    async def create(cls, **options: Unpack[PlacedOptions]) -> Self:
        """Make a sandbox. SandboxCreationError (with its cause), IsolationUnavailable: all are SandboxErrors."""
        return cls(await make_async_sandbox(options).start())

    async def execute_command(self, command: str) -> CommandResult:
        result = await self.sandbox.exec(command)
        return CommandResult(result.stdout, result.stderr, result.exit_code)

    async def read_file(self, path: str) -> str:
        """Read a file. FileError."""
        return await self.sandbox.files.read(path)

    async def write_files(self, files: Iterable[tuple[str, str | bytes]]) -> list[FileResult]:
        """Write files; return a result for each, in order. One that fails does not stop the others."""
        return await self.sandbox.files.write_many(files)

    async def dispose(self) -> None:
        await self.sandbox.close()


async def use_sandbox(use: Callable[[CommandSandbox], Awaitable[T]], **options: Unpack[PlacedOptions]) -> T:
    """Make a sandbox, use it, and dispose of it, whatever happens meanwhile."""
    sandbox = await CommandSandbox.create(**options)
    try:
        return await use(sandbox)
    finally:
        await sandbox.dispose()
