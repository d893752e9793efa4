"""The common part of base64, base32 and basenc: encode and decode streams, wrapped or not."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import Program, UsageError, flag, utility, value
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Codec:
    """An encoding: bytes per group in and out, its alphabet, and the two directions for whole groups."""

    group: int
    encoded: int
    alphabet: bytes
    encode: Callable[[bytes], bytes]
    decode: Callable[[bytes], bytes]
    """Raises ValueError for what is no encoding."""
    padded: bool = True


_HEX32 = (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789ABCDEFGHIJKLMNOPQRSTUV")
_STANDARD64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_URL64 = _STANDARD64[:-2] + b"-_"


def _bits_encode(data: bytes) -> bytes:
    return b"".join(b"%08d" % int(bin(byte)[2:]) for byte in data)


def _bits_decode(data: bytes) -> bytes:
    if len(data) % 8:
        raise ValueError
    return int(data, 2).to_bytes(len(data) // 8, "big") if data else b""


def _bits_lsb_encode(data: bytes) -> bytes:
    return b"".join((b"%08d" % int(bin(byte)[2:]))[::-1] for byte in data)


def _bits_lsb_decode(data: bytes) -> bytes:
    if len(data) % 8:
        raise ValueError
    return bytes(int(data[i : i + 8][::-1], 2) for i in range(0, len(data), 8))


_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def _z85_encode(data: bytes) -> bytes:
    if len(data) % 4:
        raise ValueError("invalid input (length must be multiple of 4 characters)")
    return base64.b85encode(data).translate(bytes.maketrans(_B85, _Z85))


def _z85_decode(data: bytes) -> bytes:
    if len(data) % 5:
        raise ValueError
    return base64.b85decode(data.translate(bytes.maketrans(_Z85, _B85)))


CODECS = {
    "base64": Codec(3, 4, _STANDARD64, base64.b64encode, lambda d: base64.b64decode(d, validate=True)),
    "base64url": Codec(
        3, 4, _URL64, base64.urlsafe_b64encode, lambda d: base64.b64decode(d, altchars=b"-_", validate=True)
    ),
    "base32": Codec(5, 8, _HEX32[0], base64.b32encode, base64.b32decode),
    "base32hex": Codec(5, 8, _HEX32[1], base64.b32hexencode, base64.b32hexdecode),
    "base16": Codec(1, 2, b"0123456789ABCDEF", lambda d: binascii.hexlify(d).upper(), base64.b16decode, False),
    "base2msbf": Codec(1, 8, b"01", _bits_encode, _bits_decode, False),
    "base2lsbf": Codec(1, 8, b"01", _bits_lsb_encode, _bits_lsb_decode, False),
    "z85": Codec(4, 5, _Z85, _z85_encode, _z85_decode, False),
}


@dataclass(frozen=True, slots=True)
class Options:
    decode: bool = flag("-d", "--decode", "decode data")
    ignore_garbage: bool = flag("-i", "--ignore-garbage", "when decoding, ignore non-alphabet characters")
    wrap: str = value(
        "-w", "--wrap", "wrap encoded lines after COLS characters (0: never)", metavar="COLS", default="76"
    )


def encoder(name: str, doc: str) -> Program:
    """The utility of one encoding, called like it."""

    def main(process: Process, options: Options, operands: list[str]) -> int:
        return run(
            process,
            CODECS[name],
            operands,
            decode=options.decode,
            ignore_garbage=options.ignore_garbage,
            wrap=options.wrap,
        )

    return utility(name, Options, doc=doc)(main)


def run(process: Process, codec: Codec, operands: list[str], *, decode: bool, ignore_garbage: bool, wrap: str) -> int:
    if len(operands) > 1:
        raise UsageError(f"extra operand {quote(operands[1], process.env)}")
    if not wrap.isdecimal():
        raise UsageError(f"invalid wrap size: {quote(wrap, process.env)}", hint=False)
    name = operands[0] if operands else "-"
    try:
        if name != "-" and process.fs.stat(name).is_dir:
            process.warn("read error: Is a directory")
            return 1
        if decode:
            return _decode(process, codec, process.chunks(name), ignore_garbage)
        _encode(process, codec, process.chunks(name), int(wrap) if len(wrap) < 19 else 0)
    except SysError as error:
        process.warn(f"{quote_if_odd(name)}: {error.reason}")
        return 1
    except ValueError as error:
        process.warn(str(error) or "invalid input")
        return 1
    return 0


def _groups(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in pieces whose lengths are multiples of `size`, but for the last."""
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        whole = len(data) // size * size
        rest = data[whole:]
        if whole:
            yield data[:whole]
    if rest:
        yield rest


def _encode(process: Process, codec: Codec, chunks: Iterable[bytes], wrap: int) -> None:
    column = 0
    any_output = False
    for piece in _groups(chunks, codec.group):
        process.budget.charge(len(piece) >> 12)
        text = codec.encode(piece)
        any_output = any_output or bool(text)
        if not wrap:
            process.stdout.write(text)
            continue
        first = wrap - column
        lines = [text[:first], *(text[i : i + wrap] for i in range(first, len(text), wrap))]
        process.stdout.write(b"\n".join(lines))
        column = (column + len(text) - 1) % wrap + 1
    if wrap and any_output:
        process.stdout.write(b"\n")


def _decode(process: Process, codec: Codec, chunks: Iterable[bytes], ignore_garbage: bool) -> int:
    keep = codec.alphabet + (b"=" if codec.padded else b"")
    garbage = bytes(b for b in range(256) if b not in keep)
    cleaned = (chunk.translate(None, garbage if ignore_garbage else b"\n") for chunk in chunks)
    valid = re.compile(b"[" + re.escape(codec.alphabet) + b"]*")
    for piece in _groups(cleaned, codec.encoded):
        process.budget.charge(len(piece) >> 12)
        try:
            process.stdout.write(_decode_padded(codec, piece) if b"=" in piece else codec.decode(piece))
        except ValueError:
            match = valid.match(piece)
            end = match.end() if match is not None else 0
            process.stdout.write(_salvage(codec, piece[:end]))
            process.warn("invalid input")
            return 1
    return 0


def _decode_padded(codec: Codec, piece: bytes) -> bytes:
    """Padding may end a group in the middle of the data; what follows is decoded on."""
    parts: list[bytes] = []
    for at in range(0, len(piece), codec.encoded):
        group = piece[at : at + codec.encoded]
        body = group.rstrip(b"=")
        if b"=" in body or len(group) < codec.encoded:
            raise ValueError
        parts.append(codec.decode(group))
    return b"".join(parts)


def _salvage(codec: Codec, good: bytes) -> bytes:
    """Decode as much as possible of input that turned bad after `good`."""
    whole = len(good) // codec.encoded * codec.encoded
    out = codec.decode(good[:whole])
    rest = good[whole:]
    if codec.padded:
        for length in range(len(rest), 1, -1):
            try:
                return out + codec.decode(rest[:length] + b"=" * (codec.encoded - length))
            except ValueError:
                continue
    return out
