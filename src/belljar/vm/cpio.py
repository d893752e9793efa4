"""Writes cpio archives (newc), which kernels unpack into their first root."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

_TRAILER: Final = "TRAILER!!!"


class Member(Struct, frozen=True):
    """A file, directory, or device of an archive."""

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory(name: str) -> Member:
    return Member(name, stat.S_IFDIR | 0o755)


def file(name: str, data: bytes, mode: int = 0o644) -> Member:
    return Member(name, stat.S_IFREG | mode, data)


def pack_cpio(members: Iterable[Member]) -> bytes:
    """The archive. The same members give the same bytes."""
    parts = [_pack(number, member) for number, member in enumerate(members, 1)]
    return b"".join([*parts, _pack(0, Member(_TRAILER, 0))])


def _pack(number: int, member: Member) -> bytes:
    name = member.name.encode() + b"\0"
    fields = (number, member.mode, 0, 0, 1, 0, len(member.data), 0, 0, *member.device, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return head + bytes(-len(head) % 4) + member.data + bytes(-len(member.data) % 4)
