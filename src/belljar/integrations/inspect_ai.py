"""Inspect: belljar as the sandbox environment of an evaluation, `Task(..., sandbox="belljar")`.

Each sample gets a sandbox of its own. `sandbox=("belljar", "belljar.toml")` names a file that may give what
`BelljarConfig` has: `cwd`, `env`, `user`, `hostname`, `mounts`, `allow_hosts` and a table of `limits`.
"""

from __future__ import annotations

import tomllib
from typing import Any, Final, Literal, cast, overload

from belljar.abi.limits import Limits
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.errors import FileError
from belljar.api.local_host import read_local
from belljar.api.mounts import Mount
from belljar.integrations.extras import needs
from belljar.net.network import Network
from belljar.remote.choice import PlacedOptions, make_async_sandbox

with needs("inspect"):
    from inspect_ai.util import (
        ExecResult,
        OutputLimitExceededError,
        SandboxEnvironment,
        SandboxEnvironmentLimits,
        SandboxUserUnsupportedError,
        sandboxenv,
    )
    from pydantic import BaseModel, Field

NOT_EXECUTABLE: Final = 126
_RETRIES: Final = (60, 30)
"""Seconds at most for each further try of a command that timed out, as Inspect's contract has it."""


class BelljarConfig(BaseModel, frozen=True, extra="forbid"):
    """A task's options of its sandboxes."""

    tier: str = "virtual"
    """Where sandboxes run: "virtual", or "native" for real programs."""
    image: str | None = None
    """The name or digest of an image."""
    cwd: str = "/workspace"
    env: dict[str, str] = Field(default_factory=dict)
    user: str = "agent"
    hostname: str = "belljar"
    mounts: dict[str, str] = Field(default_factory=dict)
    """Directories of the host by the path where they appear. What a sample changes there stays in its sandbox."""
    allow_hosts: list[str] = Field(default_factory=list)
    """Hosts that the network may reach; none by default."""
    limits: dict[str, int | float] = Field(default_factory=dict)
    url: str | None = None
    """A server that sandboxes are to be on, with the key that BELLJAR_KEY has; then `tier` is the server's."""

    def __hash__(self) -> int:
        return hash(self.model_dump_json())  # Inspect tells samples with the same configuration by it

    def options(self) -> PlacedOptions:
        return PlacedOptions(
            url=self.url,
            tier=self.tier,
            image=self.image,
            cwd=self.cwd,
            env=self.env,
            user=self.user,
            hostname=self.hostname,
            mounts={path: Mount.overlay(Mount.host(source)) for path, source in self.mounts.items()},
            network=Network.allow(*self.allow_hosts) if self.allow_hosts else Network.deny(),
            limits=Limits(**self.limits),  # type: ignore[arg-type]
        )


@sandboxenv(name="belljar")
class BelljarSandboxEnvironment(SandboxEnvironment):
    def __init__(self, sandbox: AsyncSandbox, config: BelljarConfig) -> None:
        super().__init__()
        self._sandbox = sandbox
        self._config = config

    @classmethod
    def config_files(cls) -> list[str]:
        return ["belljar.toml"]

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        return BelljarConfig(**config)

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: dict[str, str]) -> dict[str, SandboxEnvironment]:
        if isinstance(config, str):
            config = BelljarConfig(**tomllib.loads(b"".join(read_local(config, "", 1 << 20)).decode()))
        settings = cast("BelljarConfig", config) if config is not None else BelljarConfig()
        return {"default": cls(await make_async_sandbox(settings.options()).start(), settings)}

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: Any, environments: dict[str, SandboxEnvironment], interrupted: bool
    ) -> None:
        for environment in environments.values():
            await environment.as_type(cls)._sandbox.close()

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        if user not in (None, self._config.user):
            raise SandboxUserUnsupportedError(
                f"commands of this sandbox run as {self._config.user!r}, not as {user!r}; "
                "say user = ... in the sandbox's configuration"
            )
        tries = [timeout]
        if timeout is not None and timeout_retry:
            tries += [min(timeout, seconds) for seconds in _RETRIES]
        for seconds in tries:
            result = await self._sandbox.exec(cmd, stdin=input, cwd=self._path(cwd), env=env, timeout=seconds)
            if not result.timed_out:
                break
        else:
            raise TimeoutError(f"the command took longer than {timeout} seconds and was killed")
        most = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        if result.truncated or max(len(result.stdout_bytes), len(result.stderr_bytes)) > most:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, result.stdout[:most])
        if result.exit_code == NOT_EXECUTABLE and result.stderr.startswith(f"belljar: {cmd[0]}: Permission denied"):
            raise PermissionError(result.stderr.strip())
        return ExecResult(result.exit_code == 0, result.exit_code, result.stdout, result.stderr)

    def _path(self, path: str | None) -> str | None:
        if path is None or path.startswith("/"):
            return path
        return f"{self._config.cwd.rstrip('/')}/{path}"

    async def write_file(self, file: str, contents: str | bytes) -> None:
        try:
            await self._sandbox.files.as_user().write(file, contents)
        except FileError as error:
            raise OSError(error.errno, error.strerror, file) from None

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        files = self._sandbox.files.as_user()
        try:
            if (await files.stat(file)).size > SandboxEnvironmentLimits.MAX_READ_FILE_SIZE:
                raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
            data = await files.read_bytes(file)
        except FileError as error:
            raise OSError(error.errno, error.strerror, file) from None
        return data.decode() if text else data
