"""/proc/net: the sandbox's TCP sockets in Linux's format."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from ipaddress import IPv4Address, ip_address
from typing import Final, NamedTuple

ESTABLISHED: Final = 0x01
LISTEN: Final = 0x0A
_TITLE: Final = "  sl  local_address {}rem_address   {}st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


class TcpSocket(NamedTuple):
    """A listener or a connection."""

    local: tuple[str, int]
    remote: tuple[str, int]
    state: int
    inode: int
    uid: int = 1000


def tcp_table(sockets: Iterable[TcpSocket], version: int) -> bytes:
    """`/proc/net/tcp` (version 4) or `tcp6`."""
    lines = [_TITLE.format("", "") if version == 4 else _TITLE.format(" " * 24, " " * 24)]
    mine = [each for each in sockets if ip_address(each.local[0]).version == version]
    for number, each in enumerate(mine):
        lines.append(
            f"{number:4}: {_hex(*each.local)} {_hex(*each.remote)} {each.state:02X} 00000000:00000000 00:00000000 "
            f"00000000 {each.uid:5}        0 {each.inode} 1 0000000000000000 100 0 0 10 0\n"
        )
    return "".join(lines).encode()


def _hex(address: str, port: int) -> str:
    """An address as the kernel prints its memory: words of four bytes, each in the machine's order."""
    packed = ip_address(address).packed
    words = (packed[start : start + 4] for start in range(0, len(packed), 4))
    swapped = (word[::-1] if sys.byteorder == "little" else word for word in words)
    return f"{b''.join(swapped).hex().upper()}:{port:04X}"


def any_address(like: str) -> str:
    return "0.0.0.0" if isinstance(ip_address(like), IPv4Address) else "::"  # noqa: S104 - a guest's words
