"""Build hook of the wheel: carries the JavaScript addon and the agent if they were built for it (`make wheel`)."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    """With the path of a file in one of these variables, the wheel holds it and is one for this platform only."""

    variables: Final = {"BELLJAR_WHEEL_ADDON": "belljar/engines/js", "BELLJAR_WHEEL_AGENT": "belljar/agent"}

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        given = {path: place for name, place in self.variables.items() if (path := os.environ.get(name))}
        if self.target_name != "wheel" or version == "editable" or not given:
            return
        for path, place in given.items():
            build_data["force_include"][path] = f"{place}/{Path(path).name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


def platform_tag() -> str:
    """This machine's, by PEP 600: what was linked here needs at least this C library."""
    library, version = platform.libc_ver()
    kind = f"manylinux_{version.replace('.', '_')}" if library == "glibc" else "linux"
    return f"{kind}_{platform.machine()}"
