"""The shape of one attack in data: what is tried, and what must come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["B", "L", "S"]


@dataclass(frozen=True, slots=True)
class Case:
    """One named attack on a sandbox. `{canary}` and `{port}` in the script are the host's file and TCP port to reach.

    B: blocked: the command fails, without a limit. L: limited: one of `limit` stops it, or the guest's system call
    fails. S: safe: it exits with 0. `out` is the exact standard output, `says` is in the standard error.
    """

    id: str
    verdict: Verdict
    script: str | list[str]
    out: str | None = None
    says: str = ""
    limit: str = ""
    """The limits of which one must stop it, apart by |; "" is none, "maybe" any or none."""
    exit: int | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    seconds: float | None = None
    """Must end within this, where that is less than the wall limit and two seconds."""
    dies: bool = False
    """It may cost the sandbox its life (out of memory): then the owner is told, and nothing else happens."""
    slow: bool = False

    @property
    def number(self) -> int:
        """The case of THREATS.md part 1 that it belongs to."""
        digits = self.id.split(" ")[0].rstrip("abcdefghijklmnopqrstuvwxyz")
        return int(digits)
