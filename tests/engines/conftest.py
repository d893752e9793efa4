"""One sandbox for the tests that only look: guest Python is compiled once per machine, its templates start once."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from belljar import Sandbox


@pytest.fixture(scope="session")
def shared() -> Iterator[Sandbox]:
    if sys.platform != "linux":
        pytest.skip("workers are Linux's")
    with Sandbox() as sandbox:
        # The first use on a machine compiles: no test's own limit is to pay for that.
        sandbox.exec(["python3", "-c", "pass"], timeout=590).check()
        yield sandbox


@pytest.fixture
def box(shared: Sandbox) -> Sandbox:
    """The shared sandbox with an empty /workspace."""
    shared.exec("rm -rf /workspace/* /workspace/.[!.]*; cd /tmp && rm -rf ./*").check()
    return shared
