"""pydantic-ai's own conformance suite for workspace backends, on ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from belljar.integrations.pydantic_ai import BelljarWorkspace


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class TestBelljarWorkspace(WorkspaceBackendSuite):
    @pytest.fixture
    async def backend(self, tier_options: dict[str, Any]) -> AsyncIterator[WorkspaceBackend]:
        workspace = BelljarWorkspace(**tier_options)
        yield workspace
        await workspace.destroy()

    @pytest.fixture
    def fresh_backend(self, tier_options: dict[str, Any]) -> Callable[[], WorkspaceBackend]:
        return lambda: BelljarWorkspace(**tier_options)

    @pytest.fixture
    def attach_backend(self) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        return lambda ref: BelljarWorkspace(ref=ref)

    @pytest.fixture
    def destroy_environment(self) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        async def destroy(backend: WorkspaceBackend) -> None:
            assert isinstance(backend, BelljarWorkspace)
            await backend.destroy()

        return destroy
