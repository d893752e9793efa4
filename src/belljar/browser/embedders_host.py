"""The origins whose pages may use a built page's sandboxes by its bridge: a file of the page."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from belljar.browser.errors import BuildError

EMBEDDERS: Final = "embedders.json"
_ORIGIN: Final = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")


def check_origins(given: Sequence[str]) -> list[str]:
    """Origins as browsers write them: they go into a header. BuildError for what is none."""
    for origin in given:
        if not _ORIGIN.fullmatch(origin):
            raise BuildError(f"{origin!r} is no origin: write it as https://app.example.com, without a path")
    return list(given)


def read_origins(directory: Path) -> list[str]:
    """The origins that a built page lets in; none if it has no such file, or a wrong one."""
    try:
        told = json.loads((directory / EMBEDDERS).read_text())
        return check_origins([str(origin) for origin in told["origins"]])
    except (OSError, ValueError, KeyError, TypeError, BuildError):
        return []
