"""Native sandboxes for tests: this machine's own programs."""

from __future__ import annotations

import socket
from typing import Any

from belljar import Image, Sandbox


def native_sandbox(**settings: Any) -> Sandbox:
    """A sandbox of real programs; `network` and the other settings are those of `Sandbox`."""
    return Sandbox(**{"tier": "native", "image": Image.host(), **settings})


def outward_address() -> str:
    """The address from which this machine speaks to others; nobody is asked for its name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
        try:
            unsent.connect(("192.0.2.1", 9))
        except OSError:  # it speaks to nobody
            return "127.0.1.1"
        return str(unsent.getsockname()[0])
