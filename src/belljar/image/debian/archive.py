"""A Debian archive's `Release` file, and the members of a package (deb(5))."""

from __future__ import annotations

import re
from calendar import timegm
from time import strptime
from typing import Final

from msgspec import Struct

from belljar.abi.errors import ImageError
from belljar.image.debian.control import parse_paragraph

_SHA256: Final = re.compile(r"([0-9a-f]{64})\s+(\d+)\s+(\S+)")
_MAGIC: Final = b"!<arch>\n"
_HEADER: Final = 60
_CLEARSIGNED: Final = re.compile(
    r"\A-----BEGIN PGP SIGNED MESSAGE-----\r?\n(?:[^\n]+\n)*\r?\n(.*?)^-----BEGIN PGP SIGNATURE-----",
    re.DOTALL | re.MULTILINE,
)


class Release(Struct, frozen=True):
    """What an archive says of itself: the digests and sizes of its lists."""

    files: dict[str, tuple[str, int]]
    by_hash: bool


def parse_release(text: str, suite: str, now: float) -> Release:
    """ImageError for a file that is not this suite's, or out of date."""
    fields = parse_paragraph(text)
    names = {fields.get("suite"), fields.get("codename")}
    if suite not in names:
        raise ImageError(f"the archive is not of {suite!r}, but of {', '.join(sorted(filter(None, names)))[:100]}")
    if (until := fields.get("valid-until")) is not None and _seconds(until) < now:
        raise ImageError(
            f"the archive's Release file of {suite} was valid until {until[:50]}: the mirror is out of date"
        )
    files = {name: (digest, int(size)) for digest, size, name in _SHA256.findall(fields.get("sha256", ""))}
    return Release(files, fields.get("acquire-by-hash") == "yes")


def signed_text(text: str) -> str:
    """The text of a clearsigned file, whose signature is not looked at. ImageError."""
    found = _CLEARSIGNED.match(text)
    if found is None:
        raise ImageError("the archive's InRelease is not signed text")
    return re.sub(r"^- ", "", found[1], flags=re.MULTILINE)


def split_package(data: bytes, name: str) -> tuple[bytes, bytes]:
    """The archives of control files and of files in a package, each maybe compressed. ImageError."""
    found: dict[bytes, bytes] = {}
    at = len(_MAGIC)
    while data.startswith(_MAGIC) and at + _HEADER <= len(data):
        header = data[at : at + _HEADER]
        size = header[48:58].strip()
        if header[58:] != b"`\n" or not size.isdigit() or at + _HEADER + int(size) > len(data):
            break
        member = header[:16].strip().rstrip(b"/").partition(b".")[0]
        found.setdefault(member, data[at + _HEADER : at + _HEADER + int(size)])
        at += _HEADER + int(size) + int(size) % 2
    if not found.get(b"debian-binary", b"").startswith(b"2.") or not {b"control", b"data"} <= found.keys():
        raise ImageError(f"{name} is no Debian package")
    return found[b"control"], found[b"data"]


def _seconds(date: str) -> int:
    try:
        return timegm(strptime(date.removesuffix(" UTC").removesuffix(" GMT"), "%a, %d %b %Y %H:%M:%S"))
    except ValueError:
        raise ImageError(f"the archive's Release file has the date {date[:50]!r}") from None
