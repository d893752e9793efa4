"""Says which extra to install when an adapter's framework is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from belljar.abi.install import install_hint


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Wrap the imports of a framework."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.name} is missing; {install_hint(extra)}", name=error.name) from error
