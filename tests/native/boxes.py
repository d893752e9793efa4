"""Native sandboxes for tests: this machine's own programs."""

from __future__ import annotations

from typing import Any

from belljar import Image, Sandbox


def native_sandbox(**settings: Any) -> Sandbox:
    """A sandbox of real programs; `network` and the other settings are those of `Sandbox`."""
    return Sandbox(**{"tier": "native", "image": Image.host(), **settings})
