"""Formats known by their first bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from belljar.bin.file.verdict import Verdict

FEXTRA, FNAME = 4, 8
"""Flags of a gzip header (RFC 1952)."""

_SIMPLE: Final[tuple[tuple[int, bytes, str, str], ...]] = (
    (0, b"PK\x05\x06", "Zip archive data (empty)", "application/zip"),
    (0, b"\xfd7zXZ\x00", "XZ compressed data", "application/x-xz"),
    (0, b"(\xb5/\xfd", "Zstandard compressed data (v0.8+), Dictionary ID: None", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-zip archive data, version 0.4", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "RAR archive data", "application/x-rar"),
    (0, b"!<arch>\n", "current ar archive", "application/x-archive"),
    (0, b"070701", "ASCII cpio archive (SVR4 with no CRC)", "application/x-cpio"),
    (0, b"\x1f\x9d", "compress'd data", "application/x-compress"),
    (0, b"\x04\x22\x4d\x18", "LZ4 compressed data (v1.4+)", "application/x-lz4"),
    (0, b"\xca\xfe\xba\xbe", "compiled Java class data", "application/x-java-applet"),
    (0, b"\x00\x00\x01\x00", "MS Windows icon resource", "image/vnd.microsoft.icon"),
    (0, b"BM", "PC bitmap", "image/bmp"),
    (0, b"II*\x00", "TIFF image data, little-endian", "image/tiff"),
    (0, b"MM\x00*", "TIFF image data, big-endian", "image/tiff"),
    (0, b"OggS", "Ogg data", "application/ogg"),
    (0, b"fLaC", "FLAC audio bitstream data", "audio/flac"),
    (0, b"ID3", "Audio file with ID3 version 2", "audio/mpeg"),
    (0, b"wOFF", "Web Open Font Format", "font/woff"),
    (0, b"wOF2", "Web Open Font Format (Version 2)", "font/woff2"),
    (0, b"\x00\x01\x00\x00\x00", "TrueType Font data", "font/sfnt"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Composite Document File V2 Document", "application/x-ole-storage"),
    (0, b"PAR1", "Apache Parquet", "application/vnd.apache.parquet"),
    (0, b"\x80\x04\x95", "data", "application/octet-stream"),
    (4, b"ftyp", "ISO Media", "video/mp4"),
)


def recognize(data: bytes) -> Verdict | None:
    for prefix, describe in _DETAILED:
        if data.startswith(prefix):
            found = describe(data)
            if found is not None:
                return found
    for offset, mark, text, mime in _SIMPLE:
        if data.startswith(mark, offset):
            return Verdict(text, mime)
    return _tar(data)


def _png(data: bytes) -> Verdict | None:
    if len(data) < 29:
        return Verdict("PNG image data", "image/png")
    width, height, depth, color, _, _, interlace = struct.unpack(">IIBBBBB", data[16:29])
    kinds = {0: "grayscale", 2: "/color RGB", 3: " colormap", 4: " gray+alpha", 6: "/color RGBA"}
    kind = kinds.get(color, "")
    text = f"{depth}-bit{'' if kind[:1] in '/ ' else ' '}{kind}"
    lines = "interlaced" if interlace else "non-interlaced"
    return Verdict(f"PNG image data, {width} x {height}, {text}, {lines}", "image/png")


def _gif(data: bytes) -> Verdict | None:
    if len(data) < 10:
        return None
    width, height = struct.unpack("<HH", data[6:10])
    return Verdict(f"GIF image data, version {data[3:6].decode('latin-1')}, {width} x {height}", "image/gif")


def _jpeg(data: bytes) -> Verdict | None:
    text = "JPEG image data"
    if data[6:10] == b"JFIF" and len(data) >= 20:
        major, minor, unit, across, down = struct.unpack(">BBBHH", data[11:18])
        units = ("aspect ratio", "resolution (DPI)", "resolution (DPCM)")
        density = f"{units[min(unit, 2)]}, density {across}x{down}"
        length = struct.unpack(">H", data[4:6])[0]
        text += f", JFIF standard {major}.{minor:02d}, {density}, segment length {length}"
    return Verdict(text, "image/jpeg")


def _pdf(data: bytes) -> Verdict | None:
    return Verdict(f"PDF document, version {data[5:8].decode('latin-1')}", "application/pdf", "us-ascii")


def _gzip(data: bytes) -> Verdict | None:
    if len(data) < 10:
        return None
    flags, when = data[3], struct.unpack("<I", data[4:8])[0]
    text = "gzip compressed data"
    position = 10
    if flags & FEXTRA:
        position += 2 + int.from_bytes(data[position : position + 2], "little")
    if flags & FNAME:
        end = data.find(b"\0", position)
        text += f', was "{data[position:end].decode("utf-8", "replace")}"'
    if when:
        moment = datetime.fromtimestamp(when, UTC)
        text += f", last modified: {moment:%a %b} {moment.day:2d} {moment:%H:%M:%S %Y}"
    if data[8] in (2, 4):
        text += ", max compression" if data[8] == 2 else ", max speed"
    systems = {0: "FAT filesystem (MS-DOS, OS/2, NT)", 3: "Unix", 7: "Macintosh", 10: "NTFS filesystem (NT)"}
    if data[9] in systems:
        text += f", from {systems[data[9]]}"
    size = struct.unpack("<I", data[-4:])[0]
    return Verdict(f"{text}, original size modulo 2^32 {size}", "application/gzip")


def _bzip2(data: bytes) -> Verdict | None:
    return Verdict(f"bzip2 compressed data, block size = {chr(data[3])}00k", "application/x-bzip2")


def _xz(data: bytes) -> Verdict | None:
    checks = {0: "NONE", 1: "CRC32", 4: "CRC64", 10: "SHA-256"}
    check = checks.get(data[7] & 15) if len(data) > 7 else None
    return Verdict("XZ compressed data" + (f", checksum {check}" if check else ""), "application/x-xz")


def _zip(data: bytes) -> Verdict | None:
    if len(data) < 30:
        return None
    version, _, method = struct.unpack("<HHH", data[4:10])
    length = struct.unpack("<H", data[26:28])[0]
    name = data[30 : 30 + length]
    if name == b"mimetype":
        kind = data[38:120].partition(b"PK")[0].decode("latin-1")
        if kind.startswith("application/epub"):
            return Verdict("EPUB document", "application/epub+zip")
        if kind.startswith("application/vnd.oasis"):
            return Verdict("OpenDocument", kind)
    if name in (b"[Content_Types].xml", b"_rels/.rels"):
        for folder, text, mime in _OFFICE:
            if folder in data:
                return Verdict(text, f"application/vnd.openxmlformats-officedocument.{mime}")
    if name.startswith(b"META-INF/"):
        return Verdict("Java archive data (JAR)", "application/java-archive")
    methods = {0: "store", 8: "deflate", 12: "bzip2", 14: "lzma"}
    shown = methods.get(method, f"[{method:#x}]")
    text = f"Zip archive data, at least v{version / 10:.1f} to extract, compression method={shown}"
    return Verdict(text, "application/zip")


_OFFICE: Final = (
    (b"word/", "Microsoft Word 2007+", "wordprocessingml.document"),
    (b"xl/", "Microsoft Excel 2007+", "spreadsheetml.sheet"),
    (b"ppt/", "Microsoft PowerPoint 2007+", "presentationml.presentation"),
)


def _sqlite(data: bytes) -> Verdict | None:
    if len(data) < 100:
        return Verdict("SQLite 3.x database", "application/vnd.sqlite3")
    counter, pages = struct.unpack(">II", data[24:32])
    cookie, schema = struct.unpack(">II", data[40:48])
    encoding = struct.unpack(">I", data[56:60])[0]
    valid, version = struct.unpack(">II", data[92:100])
    encodings = {1: "UTF-8", 2: "UTF-16 little endian", 3: "UTF-16 big endian"}
    text = (
        f"SQLite 3.x database, last written using SQLite version {version}, file counter {counter}, "
        f"database pages {pages}, cookie {cookie:#x}, schema {schema}, {encodings.get(encoding, 'unknown encoding')}, "
        f"version-valid-for {valid}"
    )
    return Verdict(text, "application/vnd.sqlite3")


def _elf(data: bytes) -> Verdict | None:
    if len(data) < 20:
        return None
    bits = "64-bit" if data[4] == 2 else "32-bit"
    order, end = ("LSB", "<") if data[5] == 1 else ("MSB", ">")
    kind, machine = struct.unpack(end + "HH", data[16:20])
    kinds = {1: "relocatable", 2: "executable", 3: "shared object", 4: "core file"}
    machines = {3: "Intel 80386", 40: "ARM", 62: "x86-64", 183: "ARM aarch64", 243: "UCB RISC-V"}
    mimes = {1: "x-object", 2: "x-executable", 3: "x-sharedlib", 4: "x-coredump"}
    name = machines.get(machine, f"*unknown arch {machine:#x}*")
    text = f"ELF {bits} {order} {kinds.get(kind, 'unknown')}, {name}, version 1 (SYSV)"
    return Verdict(text, f"application/{mimes.get(kind, 'octet-stream')}")


def _wasm(data: bytes) -> Verdict | None:
    if len(data) < 8:
        return None
    version = struct.unpack("<I", data[4:8])[0]
    name = " (MVP)" if version == 1 else ""
    return Verdict(f"WebAssembly (wasm) binary module version {version:#x}{name}", "application/wasm")


def _riff(data: bytes) -> Verdict | None:
    kinds = {
        b"WAVE": ("WAVE audio", "audio/x-wav"),
        b"AVI ": ("AVI", "video/x-msvideo"),
        b"WEBP": ("Web/P image", "image/webp"),
    }
    found = kinds.get(data[8:12])
    text, mime = found or ("", "application/octet-stream")
    return Verdict("RIFF (little-endian) data" + (f", {text}" if text else ""), mime)


def _executable(data: bytes) -> Verdict | None:
    if len(data) < 64:
        return None
    offset = struct.unpack("<I", data[60:64])[0]
    if data[offset : offset + 4] == b"PE\0\0":
        return Verdict("PE32 executable for MS Windows", "application/vnd.microsoft.portable-executable")
    return Verdict("MS-DOS executable", "application/x-dosexec")


def _tar(data: bytes) -> Verdict | None:
    if data[257:262] != b"ustar":
        return None
    gnu = " (GNU)" if data[257:265] == b"ustar  \0" else ""
    return Verdict(f"POSIX tar archive{gnu}", "application/x-tar")


_DETAILED: Final[tuple[tuple[bytes, Callable[[bytes], Verdict | None]], ...]] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"GIF8", _gif),
    (b"\xff\xd8\xff", _jpeg),
    (b"%PDF-", _pdf),
    (b"\x1f\x8b", _gzip),
    (b"BZh", _bzip2),
    (b"\xfd7zXZ\x00", _xz),
    (b"PK\x03\x04", _zip),
    (b"SQLite format 3\0", _sqlite),
    (b"\x7fELF", _elf),
    (b"\0asm", _wasm),
    (b"RIFF", _riff),
    (b"MZ", _executable),
)
