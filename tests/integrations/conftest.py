"""What the frameworks' own suites expect of pytest: markers, and `async def` tests run. They run on every tier."""

import asyncio
import inspect
import os
import zlib
from typing import Any

import pytest

TIERS: dict[str, dict[str, Any]] = {"virtual": {}, "native": {"tier": "native"}}
SAMPLED = 8
"""`make test` runs one in so many of the tests on another tier than the virtual one, `make tiers` all."""


@pytest.fixture(scope="session", params=TIERS)
def tier_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The arguments that make a sandbox of the tier."""
    return TIERS[request.param]


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
