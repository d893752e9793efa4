"""Bodies of web responses that come compressed: decoded piece by piece, however large they get."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from belljar.bin._compress.codecs import HAVE_ZSTD, PIECE, Charge, Corrupt, decode_gzip, decode_zstd, pay

LAYERS_MAX: Final = 5


class BadEncoding(Exception):
    """A body that can't be decoded."""


def accepted() -> str:
    """The value of Accept-Encoding."""
    return "deflate, gzip, zstd" if HAVE_ZSTD else "deflate, gzip"


def decoded(encoding: str | None, chunks: Iterator[bytes], charge: Charge) -> Iterator[bytes]:
    """A body with the codings of its Content-Encoding undone. Raises BadEncoding."""
    names = [name.strip().lower() for name in (encoding or "").split(",") if name.strip()]
    if len(names) > LAYERS_MAX:
        raise BadEncoding(f"Reject response due to more than {LAYERS_MAX} content encodings")
    known: dict[str, Callable[[Iterable[bytes], Charge], Iterator[bytes]]] = {
        "gzip": decode_gzip,
        "x-gzip": decode_gzip,
        "deflate": _decode_deflate,
    }
    if HAVE_ZSTD:
        known["zstd"] = decode_zstd
    for name in reversed(names):
        if name in ("identity", "none"):
            continue
        if name not in known:
            raise BadEncoding(
                f"Unrecognized content encoding type. libcurl understands {accepted()} content encodings."
            )
        chunks = known[name](chunks, charge)
    return _explained(chunks) if names else chunks


def _explained(chunks: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from chunks
    except Corrupt as error:
        if error.kind not in ("empty", "garbage"):
            raise BadEncoding(f"Error while processing content unencoding: {error.text or error.kind}") from None


def _decode_deflate(chunks: Iterable[bytes], charge: Charge) -> Iterator[bytes]:
    """zlib's format, or what some servers send instead: the same without its header."""
    machine = zlib.decompressobj(15)
    first = True
    for chunk in chunks:
        data = chunk
        while data and not machine.eof:
            try:
                piece = machine.decompress(data, PIECE)
            except zlib.error as error:
                if not first:
                    raise Corrupt("format", str(error)) from None
                machine, first = zlib.decompressobj(-15), False
                continue
            first = False
            pay(charge, len(piece))
            data = machine.unconsumed_tail
            if piece:
                yield piece
    if not machine.eof and not first:
        raise Corrupt("eof")
