"""Ports for servers that begin later, or begin again where they were."""

from __future__ import annotations

import random
import socket
from contextlib import suppress


def free_port() -> int:
    """One below those that the system gives out: nobody gets it before it is served, which takes a while."""
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
