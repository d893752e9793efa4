"""One sandbox for a module's tests of prepared tools (`make prepared` runs `belljar prepare toolchain`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belljar import Limits, Sandbox

LIMITS = Limits(cpu_seconds=300, wall_seconds=600)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=LIMITS) as made:
        assert made.exec("command -v cc perl ruby").exit_code == 0, "run: belljar prepare toolchain"
        yield made
