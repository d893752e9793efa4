"""A server with a little network, and the page signed in to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.console.build import build_page
from tests.server.console.client import Page
from tests.server.serving import Server


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    build_page()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("console"), "--allow-host", "allowed.example.org")
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def page(served: Server) -> Page:
    return Page(served)


@pytest.fixture(scope="module")
def sandbox(page: Page) -> str:
    """A sandbox that tests may write to, each in a place of its own."""
    return page.create(metadata={"name": "shared"})
