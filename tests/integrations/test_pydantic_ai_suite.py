"""pydantic-ai's own conformance suite for workspace backends, on ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from belljar.integrations.pydantic_ai import BelljarWorkspace


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class TestBelljarWorkspace(WorkspaceBackendSuite):
    @pytest.fixture
    async def backend(self) -> AsyncIterator[WorkspaceBackend]:
        workspace = BelljarWorkspace()
        yield workspace
        await workspace.destroy()

    @pytest.fixture
    def fresh_backend(self) -> Callable[[], WorkspaceBackend]:
        return BelljarWorkspace

    @pytest.fixture
    def attach_backend(self) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        return lambda ref: BelljarWorkspace(ref=ref)

    @pytest.fixture
    def destroy_environment(self) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        async def destroy(backend: WorkspaceBackend) -> None:
            assert isinstance(backend, BelljarWorkspace)
            await backend.destroy()

        return destroy
