"""Which Python packages are for, and where that looks for them; needs none of what pip itself does."""

from __future__ import annotations

from typing import Final

from belljar.abi.base import PYTHON_VERSION

PYTHON: Final = (3, 15)
PREFIX: Final = "/usr/local"
PIP_VERSION: Final = "26.0"
"""The pip whose command line and words ours are."""


def site_of(prefix: str) -> str:
    return f"{prefix}/lib/python{PYTHON_VERSION}/site-packages"
