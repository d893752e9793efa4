"""Streaming compression formats: chunks of bytes in, chunks out, in bounded memory whatever the data says.

Every decoder asks its library for limited pieces and pays for them as they come, so a bomb ends at the budget.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from belljar.abi.dataclass import dataclass

try:
    import zstandard
except ImportError:  # an optional package: the zstd tools say so
    zstandard = None  # type: ignore[assignment]

HAVE_ZSTD: bool = zstandard is not None

PIECE: Final = 1 << 18
_MEMORY: Final = 1 << 28
"""Memory limit of a decoder's dictionary."""

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


class Encoder(Protocol):
    """Compresses what it is given piece by piece."""

    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Codec:
    """One format."""

    name: str
    magics: tuple[bytes, ...]
    decode: Callable[[Iterable[bytes], Charge], Iterator[bytes]]
    encoder: Callable[[int], Encoder]
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
    if not HAVE_ZSTD:
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


class GzipEncoder:
    """One gzip member."""

    def __init__(self, level: int, name: bytes = b"", mtime: int = 0) -> None:
        self._head = gzip_header(name, mtime, level)
        self._machine = zlib.compressobj(level, zlib.DEFLATED, -15)
        self._crc = self._size = 0

    def compress(self, data: bytes) -> bytes:
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        head, self._head = self._head, b""
        return head + self._machine.compress(data)

    def flush(self) -> bytes:
        return self._head + self._machine.flush() + struct.pack("<II", self._crc, self._size & 0xFFFFFFFF)


def xz_encoder(level: int, *, extreme: bool = False) -> Encoder:
    preset = level | (lzma.PRESET_EXTREME if extreme else 0)
    return lzma.LZMACompressor(lzma.FORMAT_XZ, lzma.CHECK_CRC64, preset)


def lzma_encoder(level: int, *, extreme: bool = False) -> Encoder:
    preset = level | (lzma.PRESET_EXTREME if extreme else 0)
    return lzma.LZMACompressor(lzma.FORMAT_ALONE, preset=preset)


def zstd_encoder(level: int) -> Encoder:
    if not HAVE_ZSTD:
        raise Corrupt("missing")
    return zstandard.ZstdCompressor(level=min(level, 19), write_checksum=True).compressobj()


def encode(chunks: Iterable[bytes], encoder: Encoder) -> Iterator[bytes]:
    for chunk in chunks:
        if out := encoder.compress(chunk):
            yield out
    yield encoder.flush()


GZIP: Final = Codec("gzip", (b"\x1f\x8b",), decode_gzip, GzipEncoder, 6)
BZIP2: Final = Codec("bzip2", (b"BZh",), decode_bzip2, bz2.BZ2Compressor, 9)
XZ: Final = Codec("xz", (b"\xfd7zXZ\0",), decode_xz, xz_encoder, 6)
LZMA: Final = Codec("lzma", (b"]\0\0",), decode_lzma, lzma_encoder, 6)
ZSTD: Final = Codec("zstd", (b"\x28\xb5\x2f\xfd",), decode_zstd, zstd_encoder, 3)
CODECS: Final = {codec.name: codec for codec in (GZIP, BZIP2, XZ, LZMA, ZSTD)}


def sniff(head: bytes) -> Codec | None:
    """The format that data starting so is in."""
    return next((codec for codec in CODECS.values() if head.startswith(codec.magics)), None)
