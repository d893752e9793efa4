"""Streaming compression formats: chunks of bytes in, chunks out, in bounded memory whatever the data says.

Every decoder asks its library for limited pieces and pays for them as they come, so a bomb ends at the budget.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

try:
    import zstandard
except ImportError:  # an optional package: the zstd tools say so
    zstandard = None  # type: ignore[assignment]

PIECE: Final = 1 << 18
_MEMORY: Final = 1 << 28
"""What a decoder's dictionary may take."""

Charge = Callable[[int], None]


class Corrupt(Exception):
    """The data is not what it should be. `kind`: magic, eof, crc, length, format; or garbage, after good data."""

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Codec:
    """One format."""

    name: str
    magics: tuple[bytes, ...]
    decode: Callable[[Iterable[bytes], Charge], Iterator[bytes]]
    encode: Callable[[Iterable[bytes], int], Iterator[bytes]]
    level: int


def pay(charge: Charge, size: int) -> None:
    """The price of `size` bytes that came out of a decoder."""
    charge(1 + (size >> 10))


class _Zlib:
    """zlib's decompressor with the manners of the other two."""

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        out = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        # A full piece may hide more that zlib still holds, with all input consumed.
        self.needs_input = not self._inner.unconsumed_tail and len(out) < max_length
        return out


def _members(
    chunks: Iterable[bytes],
    charge: Charge,
    start: Callable[[], _Decompressor],
    explain: Callable[[Exception], Corrupt],
    errors: type[Exception],
    magic: bytes,
    *,
    padding: bool = True,
) -> Iterator[bytes]:
    """Concatenated members one after the other; zeros after the last are padding, anything else is garbage."""
    source = iter(chunks)
    data = b""
    first = True
    while True:
        while len(data) < len(magic):
            more = next(source, None)
            if more is None:
                break
            data = (data if first else data.lstrip(b"\0")) + more
        if not first and padding:
            data = data.lstrip(b"\0")
            if not data:
                more = next(source, None)
                if more is None:
                    return
                data = more
                continue
        if not data:
            if first:
                raise Corrupt("empty")
            return
        if not data.startswith(magic):
            kind = "magic" if first else "garbage"
            raise Corrupt("eof" if first and magic.startswith(data) else kind)
        first = False
        charge(1)
        machine = start()
        while not machine.eof:
            if machine.needs_input and not data:
                more = next(source, None)
                if more is None:
                    raise Corrupt("eof")
                data = more
            try:
                out = machine.decompress(data, PIECE)
            except errors as error:
                raise explain(error) from None
            data = b""
            if out:
                pay(charge, len(out))
                yield out
        data = machine.unused_data


def _explain_zlib(error: Exception) -> Corrupt:
    text = str(error)
    if "incorrect data check" in text:
        return Corrupt("crc")
    if "incorrect length check" in text:
        return Corrupt("length")
    return Corrupt("format")


def decode_gzip(chunks: Iterable[bytes], charge: Charge) -> Iterator[bytes]:
    return _members(chunks, charge, lambda: _Zlib(31), _explain_zlib, zlib.error, b"\x1f\x8b")


def decode_bzip2(chunks: Iterable[bytes], charge: Charge) -> Iterator[bytes]:
    return _members(chunks, charge, bz2.BZ2Decompressor, lambda _: Corrupt("format"), OSError, b"BZh", padding=False)


def decode_xz(chunks: Iterable[bytes], charge: Charge) -> Iterator[bytes]:
    return _members(
        chunks,
        charge,
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _MEMORY),
        _explain_lzma,
        lzma.LZMAError,
        b"\xfd7zXZ\0",
    )


def decode_lzma(chunks: Iterable[bytes], charge: Charge) -> Iterator[bytes]:
    return _members(
        chunks,
        charge,
        lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, _MEMORY),
        _explain_lzma,
        lzma.LZMAError,
        b"]\0\0",
    )


def _explain_lzma(error: Exception) -> Corrupt:
    return Corrupt("memory" if "emory" in str(error) else "magic" if "not supported" in str(error) else "format")


def decode_zstd(chunks: Iterable[bytes], charge: Charge) -> Iterator[bytes]:
    if zstandard is None:
        raise Corrupt("missing")
    # decompressobj has no limit on what one call gives: small bites of input bound it (a block of 128 KiB may take 4).
    bite = 1 << 10
    context = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    machine = context.decompressobj()
    fed = complete = False
    head = b""
    source = iter(chunks)
    for chunk in source:
        data = head + chunk
        head = b""
        if not fed:
            if len(data) < 4:
                head = data
                continue
            if data[:4] not in (b"\x28\xb5\x2f\xfd",) and data[1:4] != b"\x2a\x4d\x18":
                raise Corrupt("magic")
        position = 0
        while position < len(data):
            if machine.eof:
                charge(1)
                machine = context.decompressobj()
            fed = True
            complete = False
            piece = data[position : position + bite]
            position += len(piece)
            try:
                out = machine.decompress(piece)
            except zstandard.ZstdError as error:
                raise Corrupt("format", str(error)) from None
            if machine.eof:
                position -= len(machine.unused_data)
                complete = True
            if out:
                pay(charge, len(out))
                yield out
    if not fed:
        raise Corrupt("eof" if head else "empty")
    if not complete:
        raise Corrupt("eof")


def gzip_header(name: bytes, mtime: int, level: int) -> bytes:
    flags = 8 if name else 0
    extra = 2 if level == 9 else 4 if level == 1 else 0
    stamp = mtime if 0 < mtime < 1 << 32 else 0
    return struct.pack("<2sBBIBB", b"\x1f\x8b", 8, flags, stamp, extra, 3) + (name + b"\0" if name else b"")


def encode_gzip(chunks: Iterable[bytes], level: int, name: bytes = b"", mtime: int = 0) -> Iterator[bytes]:
    yield gzip_header(name, mtime, level)
    machine = zlib.compressobj(level, zlib.DEFLATED, -15)
    crc = size = 0
    for chunk in chunks:
        crc = zlib.crc32(chunk, crc)
        size += len(chunk)
        if out := machine.compress(chunk):
            yield out
    yield machine.flush() + struct.pack("<II", crc, size & 0xFFFFFFFF)


def encode_bzip2(chunks: Iterable[bytes], level: int) -> Iterator[bytes]:
    machine = bz2.BZ2Compressor(level)
    for chunk in chunks:
        if out := machine.compress(chunk):
            yield out
    yield machine.flush()


def encode_xz(chunks: Iterable[bytes], level: int, extreme: bool = False) -> Iterator[bytes]:
    preset = level | (lzma.PRESET_EXTREME if extreme else 0)
    return _encode_lzma(chunks, lzma.LZMACompressor(lzma.FORMAT_XZ, lzma.CHECK_CRC64, preset))


def encode_lzma(chunks: Iterable[bytes], level: int, extreme: bool = False) -> Iterator[bytes]:
    preset = level | (lzma.PRESET_EXTREME if extreme else 0)
    return _encode_lzma(chunks, lzma.LZMACompressor(lzma.FORMAT_ALONE, preset=preset))


def _encode_lzma(chunks: Iterable[bytes], machine: lzma.LZMACompressor) -> Iterator[bytes]:
    for chunk in chunks:
        if out := machine.compress(chunk):
            yield out
    yield machine.flush()


def encode_zstd(chunks: Iterable[bytes], level: int) -> Iterator[bytes]:
    if zstandard is None:
        raise Corrupt("missing")
    machine = zstandard.ZstdCompressor(level=min(level, 19), write_checksum=True).compressobj()
    for chunk in chunks:
        if out := machine.compress(chunk):
            yield out
    yield machine.flush()


GZIP: Final = Codec("gzip", (b"\x1f\x8b",), decode_gzip, encode_gzip, 6)
BZIP2: Final = Codec("bzip2", (b"BZh",), decode_bzip2, encode_bzip2, 9)
XZ: Final = Codec("xz", (b"\xfd7zXZ\0",), decode_xz, encode_xz, 6)
LZMA: Final = Codec("lzma", (b"]\0\0",), decode_lzma, encode_lzma, 6)
ZSTD: Final = Codec("zstd", (b"\x28\xb5\x2f\xfd",), decode_zstd, encode_zstd, 3)
CODECS: Final = {codec.name: codec for codec in (GZIP, BZIP2, XZ, LZMA, ZSTD)}


def sniff(head: bytes) -> Codec | None:
    """The format that data starting so is in."""
    return next((codec for codec in CODECS.values() if head.startswith(codec.magics)), None)
