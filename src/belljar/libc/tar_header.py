"""tar's 512-byte headers: what they say, in the old, ustar, GNU and pax forms, read and written."""

from __future__ import annotations

import re
from typing import Final, Literal

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.records import NANO

BLOCK: Final = 512
RECORD: Final = 20 * BLOCK
Format = Literal["gnu", "ustar", "posix", "v7", "oldgnu"]

REGULAR = b"0"
HARD_LINK = b"1"
SYMLINK = b"2"
CHARACTER = b"3"
BLOCK_DEVICE = b"4"
DIRECTORY = b"5"
FIFO = b"6"
CONTIGUOUS = b"7"
SPARSE = b"S"
LONG_NAME = b"L"
LONG_LINK = b"K"
PAX = b"x"
PAX_GLOBAL = b"g"
MULTI_VOLUME = b"M"
LABEL = b"V"


class BadHeader(Exception):
    """A block that should be a header is none."""


@dataclass(slots=True)
class Member:
    """One entry of an archive."""

    name: str
    kind: bytes = REGULAR
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    size: int = 0
    """Bytes of data that follow in the archive."""
    mtime: int = 0
    """ns"""
    link: str = ""
    user: str = ""
    group: str = ""
    major: int = 0
    minor: int = 0
    sparse: list[tuple[int, int]] | None = None
    real_size: int = 0
    """Size of a sparse file, holes included."""

    @property
    def is_dir(self) -> bool:
        return self.kind == DIRECTORY or (self.kind in (REGULAR, b"\0") and self.name.endswith("/"))

    @property
    def is_regular(self) -> bool:
        return self.kind in (REGULAR, b"\0", CONTIGUOUS, SPARSE) and not self.is_dir

    @property
    def full_size(self) -> int:
        return self.real_size if self.sparse is not None else self.size

    @property
    def has_data(self) -> bool:
        return self.kind not in (HARD_LINK, SYMLINK, CHARACTER, BLOCK_DEVICE, DIRECTORY, FIFO)


def parse_number(data: bytes) -> int:
    """Octal text, or GNU's base 256."""
    if data[0] & 0x80:
        value = int.from_bytes(bytes([data[0] & 0x7F]) + data[1:], "big")
        return value - (1 << (8 * len(data) - 1)) if data[0] & 0x40 else value
    text = data.split(b"\0", 1)[0].strip(b" ")
    if not text:
        return 0
    if not re.fullmatch(rb"[0-7]+", text):
        raise BadHeader
    return int(text, 8)


def checksum(block: bytes) -> int:
    return sum(block[:148]) + 8 * 32 + sum(block[156:])


def parse_header(block: bytes) -> Member:
    """One header block, without what long-name and pax headers before it say. Raises BadHeader."""
    stored = parse_number(block[148:156])
    if checksum(block) != stored:
        signed = stored - sum(256 for byte in block[:148] + block[156:] if byte > 127)
        if checksum(block) != stored and signed != stored:
            raise BadHeader
    magic = block[257:265]
    name = _text(block[0:100])
    member = Member(
        name,
        block[156:157],
        parse_number(block[100:108]) & 0o7777,
        parse_number(block[108:116]),
        parse_number(block[116:124]),
        parse_number(block[124:136]),
        parse_number(block[136:148]) * NANO,
        _text(block[157:257]),
    )
    if member.size < 0:
        raise BadHeader
    if magic.startswith(b"ustar"):
        member.user, member.group = _text(block[265:297]), _text(block[297:329])
        if member.kind in (CHARACTER, BLOCK_DEVICE):
            member.major, member.minor = parse_number(block[329:337]), parse_number(block[337:345])
        if magic == b"ustar  \0":
            if member.kind == SPARSE:
                member.sparse = _sparse_pairs(block[386:482])
                member.real_size = parse_number(block[483:495])
        elif prefix := _text(block[345:500]):
            member.name = f"{prefix}/{name}"
    if not member.has_data:
        member.size = 0
    return member


def sparse_continues(block: bytes) -> bool:
    return block[482] != 0


def parse_sparse_block(block: bytes) -> tuple[list[tuple[int, int]], bool]:
    """A further block of a sparse map, and whether another follows."""
    return _sparse_pairs(block[:504]), block[504] != 0


def _sparse_pairs(data: bytes) -> list[tuple[int, int]]:
    pairs = []
    for start in range(0, len(data), 24):
        if not data[start]:
            break
        pairs.append((parse_number(data[start : start + 12]), parse_number(data[start + 12 : start + 24])))
    return pairs


def _text(data: bytes) -> str:
    return fsdecode(data.split(b"\0", 1)[0])


def parse_pax(data: bytes) -> dict[str, str]:
    """The records of an extended header. Raises BadHeader."""
    found: dict[str, str] = {}
    offsets: list[str] = []
    position = 0
    while position < len(data):
        match = re.compile(rb"(\d{1,9}) ([^=]+)=").match(data, position)
        if match is None:
            if not data[position:].strip(b"\0"):
                break
            raise BadHeader
        end = position + int(match[1])
        if end <= match.end() - 1 or end > len(data) or data[end - 1 : end] != b"\n":
            raise BadHeader
        key, value = fsdecode(match[2]), fsdecode(data[match.end() : end - 1])
        # Version 0.0 of GNU's sparse map repeats its two keys.
        if key in ("GNU.sparse.offset", "GNU.sparse.numbytes"):
            offsets.append(value)
        found[key] = value
        position = end
    if offsets:
        found["GNU.sparse.map"] = ",".join(offsets)
    return found


def apply_pax(member: Member, records: dict[str, str]) -> None:
    """Let extended records override the header's fields. Raises BadHeader."""
    try:
        for key, value in records.items():
            match key:
                case "path":
                    member.name = value
                case "linkpath":
                    member.link = value
                case "size":
                    member.size = int(value) if member.has_data else 0
                case "uid":
                    member.uid = int(value)
                case "gid":
                    member.gid = int(value)
                case "uname":
                    member.user = value
                case "gname":
                    member.group = value
                case "mtime":
                    member.mtime = _nanoseconds(value)
                case "GNU.sparse.name":
                    member.name = value
                case "GNU.sparse.realsize" | "GNU.sparse.size":
                    member.real_size = int(value)
        if "GNU.sparse.map" in records:
            numbers = [int(part) for part in records["GNU.sparse.map"].split(",") if part]
            member.sparse = list(zip(numbers[::2], numbers[1::2], strict=False))
    except ValueError:
        raise BadHeader from None
    if "GNU.sparse.name" in records:
        member.name = records["GNU.sparse.name"]
    if member.size < 0:
        raise BadHeader


def _nanoseconds(text: str) -> int:
    whole, _, part = text.partition(".")
    fraction = int((part + "000000000")[:9])
    return int(whole) * NANO + (-fraction if text.startswith("-") else fraction)


# Writing.


def encode(member: Member, format: Format) -> bytes:
    """The header of a member, with the extended ones it needs before it."""
    name, link = fsencode(member.name), fsencode(member.link)
    before = b""
    prefix = b""
    if format == "posix":
        before = _encode_pax(member, name, link)
        if len(name) > 100 and (split := _split(name)):
            prefix, name = split
    elif format in ("gnu", "oldgnu"):
        for kind, text in ((LONG_LINK, link), (LONG_NAME, name)):
            if len(text) > 100:
                before += _encode_long(kind, text)
    elif len(name) > 100:
        split = _split(name) if format == "ustar" else None
        if split is None:
            raise ValueError("file name is too long (cannot be split); not dumped")
        prefix, name = split
    if format in ("ustar", "v7") and len(link) > 100:
        raise ValueError("link name is too long; not dumped")
    return before + _block(member, name[:100], link[:100], prefix, format)


def _split(name: bytes) -> tuple[bytes, bytes] | None:
    """A long name as ustar's prefix and name."""
    at = name.find(b"/", max(0, len(name) - 101))
    while at != -1 and at == len(name) - 1:
        return None
    return (name[:at], name[at + 1 :]) if 0 < at <= 155 else None


def _number(value: int, width: int, format: Format) -> bytes:
    if 0 <= value < 8 ** (width - 1):
        return b"%0*o\0" % (width - 1, value)
    if format in ("gnu", "oldgnu"):
        return (value % (1 << (8 * width)) | 1 << (8 * width - 1)).to_bytes(width, "big")
    return b"%0*o\0" % (width - 1, max(0, value) % 8 ** (width - 1))


def _block(member: Member, name: bytes, link: bytes, prefix: bytes, format: Format) -> bytes:
    gnu = format in ("gnu", "oldgnu")
    device = member.kind in (CHARACTER, BLOCK_DEVICE)
    fields = [
        name.ljust(100, b"\0"),
        _number(member.mode & 0o7777, 8, format),
        _number(member.uid, 8, format),
        _number(member.gid, 8, format),
        _number(member.size, 12, format),
        _number(member.mtime // NANO, 12, format),
        b" " * 8,
        member.kind if format != "v7" or member.kind in (HARD_LINK, SYMLINK) else b"\0",
        link.ljust(100, b"\0"),
    ]
    if format != "v7":
        fields += [
            b"ustar  \0" if gnu else b"ustar\x0000",
            fsencode(member.user)[:31].ljust(32, b"\0"),
            fsencode(member.group)[:31].ljust(32, b"\0"),
            (_number(member.major, 8, format) + _number(member.minor, 8, format)) if device or not gnu else b"\0" * 16,
            prefix.ljust(155, b"\0"),
        ]
    else:
        fields += [b"\0" * 72, _number(member.major, 8, format), _number(member.minor, 8, format)]
    block = b"".join(fields).ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def _encode_long(kind: bytes, text: bytes) -> bytes:
    data = text + b"\0"
    header = Member("././@LongLink", kind, 0o644, 0, 0, len(data), user="root", group="root")
    return _block(header, b"././@LongLink", b"", b"", "gnu") + pad(data)


def _encode_pax(member: Member, name: bytes, link: bytes) -> bytes:
    records: list[tuple[str, bytes]] = []
    if len(name) > 100 or any(byte > 127 for byte in name):
        records.append(("path", name))
    if len(link) > 100 or any(byte > 127 for byte in link):
        records.append(("linkpath", link))
    if member.size >= 8**11:
        records.append(("size", b"%d" % member.size))
    for key, number in (("uid", member.uid), ("gid", member.gid)):
        if number >= 8**7:
            records.append((key, b"%d" % number))
    if member.mtime % NANO or member.mtime < 0:
        whole, part = divmod(abs(member.mtime), NANO)
        sign = "-" if member.mtime < 0 else ""
        records.append(("mtime", f"{sign}{whole}.{part:09d}".rstrip("0").rstrip(".").encode()))
    if not records:
        return b""
    data = b"".join(_record(key, value) for key, value in records)
    base = name.rstrip(b"/").rpartition(b"/")
    header_name = ((base[0] or b".") + b"/PaxHeaders/" + base[2])[:100]
    header = Member("", PAX, 0o644, 0, 0, len(data), member.mtime)
    return _block(header, header_name, b"", b"", "posix") + pad(data)


def _record(key: str, value: bytes) -> bytes:
    rest = b" " + fsencode(key) + b"=" + value + b"\n"
    size = len(rest)
    while len(str(size)) + len(rest) != size:
        size = len(str(size)) + len(rest)
    return b"%d" % size + rest


def pad(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % BLOCK)
