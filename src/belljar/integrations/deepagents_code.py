"""Deep Agents Code: belljar as one of its sandbox providers, found by entry point (`--sandbox belljar`)."""

from __future__ import annotations

from typing import Any, Final

from deepagents_code.integrations.sandbox_provider import (
    SandboxInstallHint,
    SandboxNotFoundError,
    SandboxProvider,
    SandboxProviderMetadata,
)

from belljar.api.sandbox import Sandbox
from belljar.integrations.deepagents import BelljarSandbox
from belljar.remote.choice import make_sandbox

WORKING_DIR: Final = "/workspace"

_alive: Final[dict[str, Sandbox]] = {}
"""Sandboxes by id; they live in this process and end with it."""


class BelljarProvider(SandboxProvider):
    @property
    def metadata(self) -> SandboxProviderMetadata:
        return SandboxProviderMetadata(
            name="belljar", working_dir=WORKING_DIR, install=SandboxInstallHint(kind="package", name="belljar")
        )

    def get_or_create(self, *, sandbox_id: str | None = None, **kwargs: Any) -> BelljarSandbox:
        """A sandbox of this process by its id, or a new one made from `Sandbox`'s arguments, or `RemoteSandbox`'s."""
        if sandbox_id is None:
            sandbox = make_sandbox(kwargs)  # type: ignore[arg-type]
            _alive[sandbox.name] = sandbox
        elif sandbox_id in _alive:
            sandbox = _alive[sandbox_id]
        else:
            raise SandboxNotFoundError(f"no sandbox {sandbox_id!r} in this process; leave the id out for a new one")
        return BelljarSandbox(sandbox=sandbox)

    def delete(self, *, sandbox_id: str, **kwargs: Any) -> None:
        if (sandbox := _alive.pop(sandbox_id, None)) is not None:
            sandbox.close()
