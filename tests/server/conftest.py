"""One server for all tests that do not end it, and the stock SDKs told of it by their own variables."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.server.serving import Server


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server that the test may end."""
    server = Server(tmp_path)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def steady(tmp_path: Path) -> Iterator[Server]:
    """A server that the test may end, and start again at the same address."""
    server = Server(tmp_path, port=free_port())
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def sdk(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server that the SDKs find."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return server
