"""OpenAI Agents: belljar sandboxes for `SandboxAgent`, by a client of their own.

>>> run_config = RunConfig(sandbox=SandboxRunConfig(client=BelljarSandboxClient()))
"""

from __future__ import annotations

import io
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack, cast

from belljar.abi.errors import SysError
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.clock_host import new_id
from belljar.api.errors import FileError, SandboxError
from belljar.integrations.extras import needs
from belljar.remote.choice import PlacedOptions, make_async_sandbox

with needs("openai-agents"):
    from agents.sandbox.errors import (
        ExecTimeoutError,
        ExecTransportError,
        WorkspaceArchiveReadError,
        WorkspaceArchiveWriteError,
        WorkspaceReadNotFoundError,
    )
    from agents.sandbox.manifest import Manifest
    from agents.sandbox.session import BaseSandboxClient, BaseSandboxSession, SandboxSession, SandboxSessionState
    from agents.sandbox.session.sandbox_client import BaseSandboxClientOptions
    from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot
    from agents.sandbox.types import ExecResult
    from agents.sandbox.workspace_paths import posix_path_for_error, sandbox_path_str

if TYPE_CHECKING:
    from agents.sandbox.types import User

_ARCHIVE: Final = "/tmp/.belljar-workspace.tar"


class BelljarSessionState(SandboxSessionState):
    type: Literal["belljar"] = "belljar"


class BelljarClientOptions(BaseSandboxClientOptions):
    type: Literal["belljar"] = "belljar"


class BelljarSandboxSession(BaseSandboxSession):
    """A session whose commands and files are those of one sandbox."""

    state: BelljarSessionState

    def __init__(self, state: BelljarSessionState, options: PlacedOptions) -> None:
        self.state = state
        self._options = options
        self._sandbox: AsyncSandbox | None = None

    async def _use(self) -> AsyncSandbox:
        if self._sandbox is None:
            self._sandbox = await make_async_sandbox(self._options).start()
            await self._sandbox.files.mkdir(self.state.manifest.root, parents=True)
        return self._sandbox

    async def close(self) -> None:
        if self._sandbox is not None:
            await self._sandbox.close()
            self._sandbox = None

    async def _exec_internal(self, *command: str | PurePath, timeout: float | None = None) -> ExecResult:
        sandbox, words = await self._use(), [str(word) for word in command]
        try:
            environment = await self.state.manifest.environment.resolve()
            result = await sandbox.exec(words, cwd=self.state.manifest.root, env=environment, timeout=timeout)
        except SandboxError as error:
            raise ExecTransportError(command=words, cause=error) from error
        if result.timed_out:
            raise ExecTimeoutError(command=words, timeout_s=timeout)
        return ExecResult(stdout=result.stdout_bytes, stderr=result.stderr_bytes, exit_code=result.exit_code)

    async def read(self, path: PurePath, *, user: str | User | None = None) -> io.IOBase:
        sandbox = await self._use()
        name, shown = sandbox_path_str(await self._validate_path_access(str(path))), posix_path_for_error(path)
        try:
            return io.BytesIO(await sandbox.files.as_user().read_bytes(name))
        except FileError as error:
            if SysError(error.errno).name == "ENOENT":
                raise WorkspaceReadNotFoundError(path=shown, cause=error) from error
            raise WorkspaceArchiveReadError(path=shown, cause=error) from error

    async def write(self, path: PurePath, data: io.IOBase, *, user: str | User | None = None) -> None:
        sandbox = await self._use()
        name = sandbox_path_str(await self._validate_path_access(str(path), for_write=True))
        shown = posix_path_for_error(path)
        content = cast("str | bytes", data.read())
        try:
            await sandbox.files.as_user().write(name, content)
        except FileError as error:
            raise WorkspaceArchiveWriteError(path=shown, cause=error) from error

    async def running(self) -> bool:
        return self._sandbox is not None

    async def persist_workspace(self) -> io.IOBase:
        root = self.state.manifest.root
        skip = [f"--exclude=./{sandbox_path_str(name)}" for name in self._persist_workspace_skip_relpaths()]
        data = await self._archive(["tar", "-C", root, *skip, "-cf", _ARCHIVE, "."], None)
        return io.BytesIO(data)

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        root = self.state.manifest.root
        await self._archive(["tar", "-C", root, "-xf", _ARCHIVE], cast("bytes", data.read()))

    async def _archive(self, command: list[str], data: bytes | None) -> bytes:
        """Run tar, inside, over an archive that is put there first or taken from there afterwards."""
        sandbox = await self._use()
        root = posix_path_for_error(self.state.manifest.root)
        failure = WorkspaceArchiveReadError if data is None else WorkspaceArchiveWriteError
        files = sandbox.files
        try:
            if data is not None:
                await files.write(_ARCHIVE, data)
            (await sandbox.exec(command)).check()
            return await files.read_bytes(_ARCHIVE) if data is None else b""
        except SandboxError as error:
            raise failure(path=root, cause=error) from error
        finally:
            if await files.exists(_ARCHIVE):
                await files.remove(_ARCHIVE)


class BelljarSandboxClient(BaseSandboxClient[BelljarClientOptions | None]):
    """Makes sessions from the arguments of `AsyncSandbox`."""

    backend_id = "belljar"
    supports_default_options = True

    def __init__(self, **options: Unpack[PlacedOptions]) -> None:
        self._options = options

    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: BelljarClientOptions | None = None,
    ) -> SandboxSession:
        manifest = self._validate_manifest_for_create(manifest if manifest is not None else Manifest())
        state = BelljarSessionState(manifest=manifest, snapshot=resolve_snapshot(snapshot, new_id()))
        return self._wrap_session(BelljarSandboxSession(state, self._options))

    async def delete(self, session: SandboxSession) -> SandboxSession:
        inner = session._inner
        if not isinstance(inner, BelljarSandboxSession):
            raise TypeError("this session is not of a BelljarSandboxClient")
        await inner.close()
        return session

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """A new sandbox, filled from the state's snapshot: the old one ended with its process."""
        if not isinstance(state, BelljarSessionState):
            raise TypeError("this state is not of a BelljarSandboxClient")
        state.workspace_root_ready = False
        return self._wrap_session(BelljarSandboxSession(state, self._options))

    def deserialize_session_state(self, payload: dict[str, Any]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, BelljarSessionState)
