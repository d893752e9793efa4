"""Which tools are prepared on this machine: asked by every process that makes sandboxes, so it only looks for files."""

from __future__ import annotations

import os
from collections.abc import Sequence

from belljar.abi.cache_host import cache_directories
from belljar.engines.wire.tools import TOOLS, Tool

READY = "ready"
"""The file in a tool's directory that is written last."""


def place_of(tool: Tool, directories: Sequence[str] | None = None) -> str | None:
    """The directory of a prepared tool's files, in one of the caches; None if it is not prepared."""
    for directory in cache_directories() if directories is None else directories:
        path = f"{directory}/{tool.place}"
        if os.path.exists(f"{path}/{READY}"):
            return path
    return None


def prepared(directories: Sequence[str] | None = None) -> tuple[str, ...]:
    """The kinds that are prepared."""
    return tuple(kind for kind, tool in TOOLS.items() if place_of(tool, directories) is not None)


def prepared_beside(archive: str) -> tuple[str, ...]:
    """The kinds that are prepared in the cache that has the archive of modules: its owner's, whatever our HOME is."""
    return prepared([os.path.dirname(archive)] if archive else [])
