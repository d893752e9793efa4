"""A sandbox as the server remembers it."""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from typing import Any, Final, Literal

from msgspec import Struct

from belljar.server.egress import Egress, Wanted
from belljar.server.guest import USER, Guest, Log

_LOGGED: Final = 1000
State = Literal["running", "pausing", "paused", "killed"]


class Record(Struct):
    """What is kept of a sandbox in the server's file."""

    id: str
    tenant: str
    template: str
    created: float
    end_at: float
    timeout: float
    metadata: dict[str, str] = {}
    pause_on_timeout: bool = False
    auto_resume: bool = False
    wanted: Wanted = Wanted()
    ref: str | None = None
    """The snapshot of the store that it was paused to, or began with."""
    remote: bool = False
    """Whether a client of our own has it: its network and tools are that client's."""
    file_metadata: dict[str, dict[str, str]] = {}
    """Metadata that clients gave to files, by path."""
    size: int = 0
    """Bytes of its files, as they were measured last."""
    start: str = ""
    ready: str = ""
    """The command of its template that runs whenever it does, and the one that tells when that is ready."""
    user: str = USER
    cwd: str = ""
    """Who commands run as, and where, unless told otherwise; "": at home."""
    volumes: dict[str, str] = {}
    """Names of volumes, by where they are mounted."""


class Held:
    """A sandbox of the server: its record, and what runs if anything does."""

    def __init__(self, record: Record, state: State, egress: Egress, guest: Guest | None = None) -> None:
        self.record = record
        self.state: State = state
        self.egress = egress
        self.guest = guest
        self.lock = asyncio.Lock()
        """Held by whoever changes the state."""
        self.deadline = inf
        """When it is to end, by the clock that nobody sets."""
        self.log: Log = deque(maxlen=_LOGGED)
        self.checkpoint: str | None = None
        """The last snapshot that was made of it for the case that the server crashes."""

    @property
    def shown_state(self) -> str:
        """As the protocol names it."""
        return "paused" if self.state in ("paused", "pausing") else "running"

    def describe(self) -> dict[str, Any]:
        return {"sandbox": self.record.id, "state": self.state}
