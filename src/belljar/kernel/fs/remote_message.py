"""Protocol of a remote file server: messages, their limits, and the checks of every value received."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from belljar.abi.flags import NAME_MAX, O_ACCMODE, O_APPEND, O_NONBLOCK, O_TRUNC
from belljar.abi.paths import fsdecode

Message = Mapping[str, object]
Call = Callable[[Message], Message]
Send = Callable[[Message], None]

CHUNK: Final = 1 << 20
"""The most data one message carries."""
READ_MAX: Final = 1 << 24
"""The most data one read returns, by several messages."""
PAGE: Final = 10_000
"""The most directory entries one message carries."""
SCAN_MAX: Final = PAGE
"""The most entries of a directory whose stats are sent with them."""
SCANS: Final = 64
"""The most directories listed by one message; their entries are SCAN_MAX at most, beside those of the first."""
SMALL: Final = 64 << 10
"""Files up to this long are read whole, several by one message."""
BATCH: Final = 128
"""The most files read by one message; their contents are CHUNK bytes at most, beside those of the first."""
DEPTH_MAX: Final = 2000
"""The most directories that one may be in."""
ENTRIES_MAX: Final = 1_000_000
LET_GO_MAX: Final = 1000
OPEN_FLAGS: Final = O_ACCMODE | O_TRUNC | O_APPEND | O_NONBLOCK
ID_MAX: Final = 1 << 53
ERRNO_MAX: Final = 133
U64: Final = (1 << 64) - 1
ATTRIBUTES: Final = ("mode", "uid", "gid", "size", "atime", "mtime")


class Malformed(Exception):
    """A malformed message."""


def check_int(value: object, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise Malformed
    return value


def check_text(value: object, limit: int) -> str:
    """Names and targets travel as bytes: not all of them are UTF-8."""
    if type(value) is not bytes or not 0 < len(value) <= limit or b"\0" in value:
        raise Malformed
    return fsdecode(value)


def check_file_name(value: object) -> str:
    name = check_text(value, NAME_MAX)
    if "/" in name or name in (".", ".."):
        raise Malformed
    return name


def check_data(value: object, limit: int) -> bytes:
    if type(value) is not bytes or len(value) > limit:
        raise Malformed
    return value


def check_list(value: object, limit: int) -> list[object]:
    if not isinstance(value, list | tuple) or len(value) > limit:
        raise Malformed
    return list(value)
