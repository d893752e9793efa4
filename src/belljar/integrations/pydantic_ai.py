"""pydantic-ai: a belljar sandbox as the workspace that an agent works in.

>>> agent = Agent(model, capabilities=[...], workspace=BelljarWorkspace())
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from posixpath import basename, normpath
from typing import Any, Final, Unpack

from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.errors import FileError, SandboxClosed
from belljar.api.files import AsyncFiles
from belljar.api.results import Entry
from belljar.integrations.extras import needs
from belljar.remote.choice import PlacedOptions, make_async_sandbox

with needs("pydantic-ai"):
    from pydantic_ai.workspaces import (
        CommandResult,
        FileEntry,
        SupportsCommands,
        SupportsFilesystem,
        SupportsRealpath,
        WorkspaceBackend,
        WorkspaceCommand,
        WorkspaceOutputLimitError,
        WorkspaceRef,
        WorkspaceTimeoutError,
        WorkspaceUnavailableError,
    )
    from pydantic_ai.workspaces.protocol import validate_timeout

PROVIDER: Final = "belljar"
WORKING_DIR: Final = "/workspace"

_alive: Final[dict[str, AsyncSandbox]] = {}
"""The sandboxes that a ref can name: those of this process that nobody has destroyed."""


class BelljarWorkspace(WorkspaceBackend, SupportsCommands, SupportsFilesystem, SupportsRealpath):
    """Made from the arguments of `AsyncSandbox`; with `ref`, the sandbox that an earlier one made.

    The sandbox lives until `destroy`, or the end of this process: a ref can't be used in another one.
    """

    def __init__(self, *, ref: WorkspaceRef | None = None, **options: Unpack[PlacedOptions]) -> None:
        if ref is not None and options:
            raise TypeError("a ref names a sandbox that is there: its options can't be given again")
        self._ref = ref
        self._options = options
        self._working_dir = options.get("cwd") or WORKING_DIR
        self._creating: asyncio.Task[AsyncSandbox] | None = None

    @property
    def ref(self) -> WorkspaceRef | None:
        return self._ref

    async def _sandbox(self) -> AsyncSandbox:
        if self._ref is not None:
            sandbox = _alive.get(self._ref.id) if self._ref.provider == PROVIDER else None
            if sandbox is None:
                raise WorkspaceUnavailableError(f"the sandbox {self._ref.id!r} is gone; make a new workspace")
            return sandbox
        if self._creating is None:
            self._creating = asyncio.create_task(self._create())
        # Shielded: whoever is cancelled while it starts leaves it to the others, and to `ref`.
        return await asyncio.shield(self._creating)

    async def _create(self) -> AsyncSandbox:
        sandbox = await make_async_sandbox(self._options).start()
        _alive[sandbox.name] = sandbox
        self._ref = WorkspaceRef(provider=PROVIDER, id=sandbox.name)
        return sandbox

    async def destroy(self) -> None:
        """End the sandbox and everything in it."""
        if self._ref is not None and (sandbox := _alive.pop(self._ref.id, None)) is not None:
            await sandbox.close()

    async def working_dir(self) -> str:
        await self._sandbox()
        return self._working_dir

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        if isinstance(command, str) != shell:
            raise TypeError("a str is a shell command and needs shell=True; an argv sequence needs shell=False")
        validate_timeout(timeout)
        argv = command if isinstance(command, str) else list(command)
        async with self._use() as sandbox:
            result = await sandbox.exec(argv, env=env, timeout=timeout)
        if result.timed_out:
            raise WorkspaceTimeoutError(
                f"command timed out after {timeout:g}s and was killed", stdout=result.stdout, stderr=result.stderr
            )
        if result.truncated:
            limit = len(result.stdout_bytes) + len(result.stderr_bytes)
            raise WorkspaceOutputLimitError(
                f"command output exceeded {limit} bytes", limit=limit, stdout=result.stdout, stderr=result.stderr
            )
        return CommandResult(exit_code=result.exit_code, stdout=result.stdout, stderr=result.stderr)

    @asynccontextmanager
    async def _use(self) -> AsyncIterator[AsyncSandbox]:
        """The sandbox, with the errors that the protocol promises."""
        sandbox = await self._sandbox()
        try:
            yield sandbox
        except FileError as error:
            raise OSError(error.errno, error.strerror, error.path) from None
        except SandboxClosed as error:
            _alive.pop(sandbox.name, None)
            raise WorkspaceUnavailableError(str(error)) from error

    @asynccontextmanager
    async def _files(self) -> AsyncIterator[AsyncFiles]:
        async with self._use() as sandbox:
            yield sandbox.files.as_user()

    async def read_bytes(self, path: str) -> bytes:
        async with self._files() as files:
            await _check_regular(files, path)
            return await files.read_bytes(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        async with self._files() as files:
            if await files.exists(path):
                await _check_regular(files, path)
            await files.write(path, data)

    async def stat(self, path: str) -> FileEntry:
        async with self._files() as files:
            return _entry(path, await files.stat(path))

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        async with self._files() as files:
            entries = await files.list(path)
            return [
                _entry(entry.path, await _target(files, entry) if entry.kind == "symlink" else entry)
                for entry in entries
            ]

    async def make_dir(self, path: str) -> None:
        async with self._files() as files:
            await files.mkdir(path, parents=True)

    async def remove(self, path: str) -> None:
        async with self._files() as files:
            is_link = (await files.stat(path, follow=False)).kind == "symlink"
            real = normpath(path) if is_link else await self.realpath(path)
            if (self._working_dir + "/").startswith(real.rstrip("/") + "/"):
                raise ValueError("the working directory and what is above it can't be removed")
            await files.remove(path, recursive=True)

    async def exists(self, path: str) -> bool:
        async with self._files() as files:
            return await files.exists(path)

    async def realpath(self, path: str) -> str:
        result = await self.run(["realpath", "-m", "--", path])
        if result.exit_code != 0:
            raise OSError(result.stderr.strip())
        return result.stdout.removesuffix("\n")


async def _check_regular(files: AsyncFiles, path: str) -> None:
    """Refuse FIFOs and devices, on which the caller would block."""
    if (await files.stat(path)).kind == "other":
        raise OSError(f"not a regular file: {path!r}")


async def _target(files: AsyncFiles, link: Entry) -> Entry | None:
    """Return a link's target; None if it is dangling."""
    try:
        return await files.stat(link.path)
    except FileError:
        return None


def _entry(path: str, entry: Entry | None) -> FileEntry:
    is_dir = entry is not None and entry.is_dir
    size: Any = None if entry is None or is_dir else entry.size
    return FileEntry(name=basename(path.rstrip("/")), path=path, is_dir=is_dir, size=size)
