"""Build hook of the wheel: carries the JavaScript addon if one was built for it (`make wheel`)."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    """With $BELLJAR_WHEEL_ADDON, the path of an addon, the wheel holds it and is one for this platform only."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        addon = os.environ.get("BELLJAR_WHEEL_ADDON")
        if self.target_name != "wheel" or version == "editable" or not addon:
            return
        build_data["force_include"][addon] = f"belljar/engines/js/{Path(addon).name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


def platform_tag() -> str:
    """This machine's, by PEP 600: what was linked here needs at least this C library."""
    library, version = platform.libc_ver()
    kind = f"manylinux_{version.replace('.', '_')}" if library == "glibc" else "linux"
    return f"{kind}_{platform.machine()}"
