"""Zig's C compiler, of the package `ziglang`: for WebAssembly, and for static programs of any Linux."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, distribution
from typing import Literal

from belljar.abi.cache_host import cache_directory


class NoCompiler(RuntimeError):
    """The package is not installed."""


def zig_compiler(driver: Literal["cc", "c++"], target: str, scratch: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and its environment. What it caches goes to our cache, or `scratch`. Raises NoCompiler."""
    try:
        distribution("ziglang")
    except PackageNotFoundError:
        raise NoCompiler("Zig's compiler is not installed") from None
    cache = os.path.join(cache_directory() or scratch, "zig")
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
    return [sys.executable, "-I", "-m", "ziglang", driver, "-target", target], environment
