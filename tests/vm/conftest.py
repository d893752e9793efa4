"""Machines for tests: what `belljar prepare microvm` made, emulated so that every machine runs the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from belljar import Rootfs, Sandbox

MACHINE: dict[str, Any] = {"tier": "microvm", "accel": "tcg"}


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    """One sandbox for cases that leave it as it was."""
    with Sandbox(**MACHINE) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def debian() -> Rootfs:
    return Rootfs.builtin("debian:12")
