"""Packages of the host that guest Python brings with it, if they are installed."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

BUNDLED: Final = ("pytest", "iniconfig", "pluggy", "pygments", "requests", "urllib3", "idna", "certifi")
"""Packages of pure Python that guests find without installing them: those of belljar's own environment."""
_SHIPPED: Final = (".py", ".pem", ".typed", "/METADATA", "/entry_points.txt")


def bundled_packages() -> dict[str, bytes]:
    """The files of these packages by their names below site-packages; what is not installed is left out."""
    found: dict[str, bytes] = {}
    for name in BUNDLED:
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue
        for file in files:
            path = file.as_posix()
            if path.endswith(_SHIPPED) and not path.startswith(("..", "/")) and "__pycache__" not in path:
                with suppress(OSError):
                    found[path] = Path(str(file.locate())).read_bytes()
    return found
