"""What runs in a sandbox, read from its /proc: every tier has one."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.errors import FileError, printable

_MOST: Final = 256
_STAT_MAX: Final = 4096
_LINE_MAX: Final = 4096
_TICKS: Final = 100
"""Clock ticks a second, as Linux tells programs."""
_PAGE: Final = 4096


async def list_processes(sandbox: AsyncSandbox) -> list[dict[str, Any]]:
    """Processes by number; one that ends meanwhile is left out. FileError if there is no /proc."""
    entries = await sandbox.files.list("/proc")
    numbers = sorted(int(entry.name) for entry in entries if entry.name.isascii() and entry.name.isdigit())
    found = await asyncio.gather(*(_read(sandbox, number) for number in numbers[:_MOST]))
    return [each for each in found if each is not None]


async def _read(sandbox: AsyncSandbox, number: int) -> dict[str, Any] | None:
    try:
        stat = await sandbox.files.read_range(f"/proc/{number}/stat", 0, _STAT_MAX)
        line = await sandbox.files.read_range(f"/proc/{number}/cmdline", 0, _LINE_MAX)
    except FileError:
        return None
    return parse_process(number, stat, line)


def parse_process(number: int, stat: bytes, line: bytes) -> dict[str, Any] | None:
    """The words of /proc/N/stat and cmdline; None if they are not as Linux writes them: guests may mount anything."""
    head, _, rest = stat.decode("utf-8", "replace").rpartition(")")
    fields = rest.split()
    numbers = [fields[place] if place < len(fields) else "" for place in (1, 11, 12, 21)]
    if not head or not fields or not all(text.isascii() and text.isdigit() for text in numbers):
        return None
    parent, user, system, pages = (int(text[:18]) for text in numbers)
    words = line.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    return {
        "pid": number,
        "parent": parent,
        "state": printable(fields[0]),
        "cpu": (user + system) / _TICKS,
        "memory": pages * _PAGE,
        "command": printable(words or f"[{head.partition('(')[2]}]"),
    }
