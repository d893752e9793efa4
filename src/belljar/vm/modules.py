"""Which modules of a kernel a machine needs, and in which order they are loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

FIRST: Final = ("virtio_mmio", "virtio_console", "fuse", "overlay", "crc32c_generic")
DRIVERS: Final = ("virtio_blk", "virtio_net")
"""These get their devices when a sandbox starts: a driver knows things about its device that another sandbox's has
not."""
ALL: Final = (*FIRST, *DRIVERS)
_DEPENDS: Final = re.compile(rb"\0depends=([^\0]*)\0")


def needed(name: str, module: bytes) -> list[str]:
    """Modules that one says it needs."""
    found = _DEPENDS.search(module)
    return [] if found is None else [each.replace("-", "_") for each in found[1].decode().split(",") if each]


def load_order(wanted: Sequence[str], modules: Mapping[str, bytes]) -> list[str]:
    """Names in an order in which each comes after what it needs. What is not among the modules is built in."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in modules or name in order:
            return
        for other in needed(name, modules[name]):
            visit(other)
        order.append(name)

    for name in wanted:
        visit(name)
    return order
