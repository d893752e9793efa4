"""What the frameworks' own suites expect of pytest: markers, and `async def` tests run."""

import asyncio
import inspect

import pytest


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
