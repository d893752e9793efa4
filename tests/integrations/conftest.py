"""What the frameworks' own suites expect of pytest: markers, and `async def` tests run. They run on every tier."""

import asyncio
import inspect
import os
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.serving import Server

TIERS: dict[str, dict[str, Any]] = {"virtual": {}, "native": {"tier": "native"}, "remote": {}}
SAMPLED = 8
"""`make test` runs one in so many of the tests on another tier than the virtual one, `make tiers` all."""


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server, whose key is in the environment."""
    server = Server(tmp_path_factory.mktemp("server"))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BELLJAR_KEY", server.key)
            yield server.url
    finally:
        server.stop()


@pytest.fixture(scope="session", params=TIERS)
def tier_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The arguments that make a sandbox of the tier."""
    return {"url": request.getfixturevalue("server_url")} if request.param == "remote" else TIERS[request.param]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = [item for item in items if _is_chosen(item)]
    config.hook.pytest_deselected(items=[item for item in items if not _is_chosen(item)])
    items[:] = chosen


def _is_chosen(item: pytest.Item) -> bool:
    tier = item.callspec.params.get("tier_options", "virtual") if hasattr(item, "callspec") else "virtual"
    return tier == "virtual" or bool(os.environ.get("BELLJAR_WHOLE")) or zlib.crc32(item.nodeid.encode()) % SAMPLED == 0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj) or pyfuncitem.get_closest_marker("anyio"):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


def pytest_configure(config: pytest.Config) -> None:
    for marker in ("asyncio", "benchmark", "vcr", "enable_socket"):
        config.addinivalue_line("markers", f"{marker}: used by a framework's suite for a plugin that we leave out")
