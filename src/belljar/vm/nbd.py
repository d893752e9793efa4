"""The NBD protocol (fixed newstyle), a server's side, as bytes: what a client says is bounded and checked here."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

GREETING: Final = b"NBDMAGICIHAVEOPT" + struct.pack(">H", 3)
"""FIXED_NEWSTYLE and NO_ZEROES."""
OPTION_HEAD, REQUEST_HEAD = 16, 28
OPTION_MAX: Final = 8192
LENGTH_MAX: Final = 32 << 20
_OPTION_MAGIC: Final = 0x49484156454F5054
_REPLY_MAGIC: Final = 0x3E889045565A9
_REQUEST_MAGIC, _ANSWER_MAGIC = 0x25609513, 0x67446698
_EXPORT_NAME, _ABORT, _INFO, _GO = 1, 2, 6, 7
_ACK, _REP_INFO, _UNSUPPORTED = 1, 3, 0x80000001
_INFO_EXPORT, _INFO_BLOCK_SIZE = 0, 3
_HAS_FLAGS, _READ_ONLY, _SEND_FLUSH, _SEND_FUA = 1, 2, 4, 8
FUA: Final = 1


class NbdError(Exception):
    """The client broke the protocol: the connection ends."""


class Command(IntEnum):
    READ = 0
    WRITE = 1
    DISCONNECT = 2
    FLUSH = 3


class Request(NamedTuple):
    command: int
    flags: int
    cookie: int
    offset: int
    length: int


def parse_option(head: bytes) -> tuple[int, int]:
    """An option and the length of its data. NbdError."""
    magic, option, length = struct.unpack(">QII", head)
    if magic != _OPTION_MAGIC or length > OPTION_MAX:
        raise NbdError("an option that makes no sense")
    return option, length


def answer_option(option: int, size: int, *, read_only: bool) -> tuple[bytes, bool]:
    """What to say to an option, and whether requests follow. NbdError: the client wants to end."""
    flags = _HAS_FLAGS | _SEND_FLUSH | _SEND_FUA | (_READ_ONLY if read_only else 0)
    if option == _EXPORT_NAME:
        return struct.pack(">QH", size, flags), True
    if option in (_INFO, _GO):
        export = struct.pack(">HQH", _INFO_EXPORT, size, flags)
        blocks = struct.pack(">HIII", _INFO_BLOCK_SIZE, 512, 4096, LENGTH_MAX)
        parts = ((_REP_INFO, export), (_REP_INFO, blocks), (_ACK, b""))
        return b"".join(_reply(option, kind, data) for kind, data in parts), option == _GO
    if option == _ABORT:
        raise NbdError("the client ended it")
    return _reply(option, _UNSUPPORTED, b""), False


def _reply(option: int, kind: int, data: bytes) -> bytes:
    return struct.pack(">QIII", _REPLY_MAGIC, option, kind, len(data)) + data


def parse_request(head: bytes) -> Request:
    """NbdError."""
    magic, flags, command, cookie, offset, length = struct.unpack(">IHHQQI", head)
    if magic != _REQUEST_MAGIC or (command in (Command.READ, Command.WRITE) and length > LENGTH_MAX):
        raise NbdError("a request that makes no sense")
    return Request(command, flags, cookie, offset, length)


def answer(cookie: int, errno: int) -> bytes:
    return struct.pack(">IIQ", _ANSWER_MAGIC, errno, cookie)
