"""The messages of 9P2000.L as bytes: a size, a type, a tag, and the fields that the type has. No I/O.

A message is a name ("Twalk", "Rwalk") and a tuple of values. `decode` takes nothing that is not exactly one message.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from belljar.abi.paths import fsdecode, fsencode

VERSION: Final = "9P2000.L"
HEADER: Final = struct.Struct("<IBH")
NOTAG: Final = 0xFFFF
NOFID: Final = 0xFFFFFFFF
NONUNAME: Final = 0xFFFFFFFF
"""The number of a user who is given by name."""
IOHDR: Final = 24
"""Bytes of a message that carries data, beside the data."""
LEAST_SIZE: Final = 4096
MOST_SIZE: Final = 1 << 20
"""Bounds of the size of messages that two sides agree on."""
WALK_MAX: Final = 16

QTDIR: Final = 0x80
QTSYMLINK: Final = 0x02

GETATTR_BASIC: Final = 0x7FF
SETATTR_MODE, SETATTR_UID, SETATTR_GID, SETATTR_SIZE = 1, 2, 4, 8
SETATTR_ATIME, SETATTR_MTIME, SETATTR_ATIME_SET, SETATTR_MTIME_SET = 16, 32, 128, 256
AT_REMOVEDIR: Final = 0x200


class Malformed(Exception):
    """Bytes that are no message."""


class Qid(NamedTuple):
    """A file's identity: the kind, a version, and a number that no other file has."""

    kind: int
    version: int
    path: int


class Message(NamedTuple):
    name: str
    tag: int
    values: tuple[Any, ...]


_STATFS: Final = "iiqqqqqqi"
_ATTRIBUTES: Final = "qQiii" + "q" * 15
"""Of Rgetattr: valid, qid, mode, uid, gid; nlink, rdev, size, blksize, blocks, 4 times in two parts, gen, version."""

# One letter for each field: b h i q are numbers of 1, 2, 4 and 8 bytes, s a text, Q a qid, S texts, X qids, d data.
_FIELDS: Final = {
    "Rlerror": (7, "i"), "Tstatfs": (8, "i"), "Rstatfs": (9, _STATFS), "Tlopen": (12, "ii"), "Rlopen": (13, "Qi"),
    "Tlcreate": (14, "isiii"), "Rlcreate": (15, "Qi"), "Tsymlink": (16, "issi"), "Rsymlink": (17, "Q"),
    "Tmknod": (18, "isiiii"), "Rmknod": (19, "Q"), "Trename": (20, "iis"), "Rrename": (21, ""),
    "Treadlink": (22, "i"), "Rreadlink": (23, "s"), "Tgetattr": (24, "iq"), "Rgetattr": (25, _ATTRIBUTES),
    "Tsetattr": (26, "iiiiiqqqqq"), "Rsetattr": (27, ""), "Txattrwalk": (30, "iis"), "Rxattrwalk": (31, "q"),
    "Txattrcreate": (32, "isqi"), "Rxattrcreate": (33, ""), "Treaddir": (40, "iqi"), "Rreaddir": (41, "d"),
    "Tfsync": (50, "ii"), "Rfsync": (51, ""), "Tlock": (52, "ibiqqis"), "Rlock": (53, "b"),
    "Tgetlock": (54, "ibqqis"), "Rgetlock": (55, "bqqis"), "Tlink": (70, "iis"), "Rlink": (71, ""),
    "Tmkdir": (72, "isii"), "Rmkdir": (73, "Q"), "Trenameat": (74, "isis"), "Rrenameat": (75, ""),
    "Tunlinkat": (76, "isi"), "Runlinkat": (77, ""), "Tversion": (100, "is"), "Rversion": (101, "is"),
    "Tauth": (102, "issi"), "Rauth": (103, "Q"), "Tattach": (104, "iissi"), "Rattach": (105, "Q"),
    "Tflush": (108, "h"), "Rflush": (109, ""), "Twalk": (110, "iiS"), "Rwalk": (111, "X"), "Tread": (116, "iqi"),
    "Rread": (117, "d"), "Twrite": (118, "iqd"), "Rwrite": (119, "i"), "Tclunk": (120, "i"), "Rclunk": (121, ""),
    "Tremove": (122, "i"), "Rremove": (123, ""),
}  # fmt: skip
_TYPES: Final = {number: (name, fields) for name, (number, fields) in _FIELDS.items()}
# Linux leaves the last field of Tfsync out, as older versions of the protocol did.
_SHORT: Final = {("Tfsync", "i")}
_NUMBERS: Final = {letter: struct.Struct("<" + code) for letter, code in zip("bhiq", "BHIQ", strict=True)}
_QID: Final = struct.Struct("<BIQ")
_ENTRY: Final = struct.Struct("<BIQQBH")


def encode(name: str, tag: int, *values: Any) -> bytes:
    number, fields = _FIELDS[name]
    parts = [b""]
    for letter, value in zip(fields, values, strict=True):
        parts.append(_pack(letter, value))
    size = HEADER.size + sum(map(len, parts))
    parts[0] = HEADER.pack(size, number, tag)
    return b"".join(parts)


def _pack(letter: str, value: Any) -> bytes:
    if letter in _NUMBERS:
        return _NUMBERS[letter].pack(value)
    if letter == "s":
        raw = fsencode(value)
        return _NUMBERS["h"].pack(len(raw)) + raw
    if letter == "d":
        return _NUMBERS["i"].pack(len(value)) + bytes(value)
    if letter == "Q":
        return _QID.pack(*value)
    each = "s" if letter == "S" else "Q"
    return _NUMBERS["h"].pack(len(value)) + b"".join(_pack(each, item) for item in value)


def decode(frame: bytes) -> Message:
    """Malformed."""
    if len(frame) < HEADER.size:
        raise Malformed("a message without a header")
    size, number, tag = HEADER.unpack_from(frame)
    if size != len(frame) or number not in _TYPES:
        raise Malformed(f"type {number}, {size} bytes in {len(frame)}")
    name, fields = _TYPES[number]
    if (name, fields[:1]) in _SHORT and len(frame) == HEADER.size + 4:
        fields = fields[:1]
    values: list[Any] = []
    at = HEADER.size
    try:
        for letter in fields:
            value, at = _unpack(letter, frame, at)
            values.append(value)
    except struct.error:
        raise Malformed(f"{name} is too short") from None
    if at != len(frame):
        raise Malformed(f"{name} is too long")
    return Message(name, tag, tuple(values))


def _unpack(letter: str, frame: bytes, at: int) -> tuple[Any, int]:
    if letter in _NUMBERS:
        number = _NUMBERS[letter]
        return number.unpack_from(frame, at)[0], at + number.size
    if letter == "Q":
        return Qid(*_QID.unpack_from(frame, at)), at + _QID.size
    if letter in "sd":
        length, at = _unpack("h" if letter == "s" else "i", frame, at)
        if at + length > len(frame):
            raise Malformed("a text longer than its message")
        raw = frame[at : at + length]
        return (fsdecode(raw) if letter == "s" else raw), at + length
    count, at = _unpack("h", frame, at)
    if count > WALK_MAX:
        raise Malformed("too many names")
    found = []
    for _ in range(count):
        item, at = _unpack("s" if letter == "S" else "Q", frame, at)
        found.append(item)
    return found, at


def pack_entry(qid: Qid, offset: int, kind: int, name: bytes) -> bytes:
    """One entry of a directory; `offset` is where to go on after it."""
    return _ENTRY.pack(*qid, offset, kind, len(name)) + name


def unpack_entries(data: bytes) -> list[tuple[Qid, int, int, bytes]]:
    """Malformed."""
    found = []
    at = 0
    while at < len(data):
        try:
            kind, version, path, offset, type_, length = _ENTRY.unpack_from(data, at)
        except struct.error:
            raise Malformed("an entry that is cut off") from None
        at += _ENTRY.size
        if at + length > len(data):
            raise Malformed("a name that is cut off")
        found.append((Qid(kind, version, path), offset, type_, data[at : at + length]))
        at += length
    return found


class Frames:
    """Cuts a stream into messages."""

    def __init__(self, most: int = MOST_SIZE) -> None:
        self.most = most
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete. Malformed for a size that makes no sense."""
        self._held += data
        found = []
        while len(self._held) >= 4:
            size = int.from_bytes(self._held[:4], "little")
            if not HEADER.size <= size <= self.most:
                raise Malformed(f"a message of {size} bytes")
            if len(self._held) < size:
                break
            found.append(bytes(self._held[:size]))
            del self._held[:size]
        return found
