"""Inspect's own conformance checks for sandbox environments, on ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from inspect_ai.util import SandboxEnvironment
from inspect_ai.util._sandbox import self_check

from belljar.integrations.inspect_ai import BelljarConfig, BelljarSandboxEnvironment

pytestmark = pytest.mark.slow  # its checks of timeouts wait for them

CHECKS = [name for name in dir(self_check) if name.startswith("test_")]
KNOWN = {"test_exec_as_user": "commands of one sandbox run as one user, chosen when it is made"}


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def environment(loop: asyncio.AbstractEventLoop, tier_options: dict[str, Any]) -> Iterator[SandboxEnvironment]:
    config = BelljarConfig(**tier_options)
    made = loop.run_until_complete(BelljarSandboxEnvironment.sample_init("checks", config, {}))
    yield made["default"]
    loop.run_until_complete(BelljarSandboxEnvironment.sample_cleanup("checks", None, made, False))


@pytest.mark.battery(sample=14)
@pytest.mark.parametrize("name", CHECKS)
def test_self_check(
    name: str, loop: asyncio.AbstractEventLoop, environment: SandboxEnvironment, request: pytest.FixtureRequest
) -> None:
    if name in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[name], strict=True))
    check: Any = getattr(self_check, name)
    loop.run_until_complete(asyncio.wait_for(check(environment), 120))


def test_the_suite_is_the_whole_suite() -> None:
    assert len(CHECKS) >= 40
