"""Verification of Ed25519 signatures (RFC 8032), in integers.

A sealed worker has no OpenSSL, and verifying needs no secret, so nothing here has to take constant time. Signing is the
owner's, by `cryptography`. Stricter than the RFC where that leaves a choice: encodings must be canonical, and keys of
small order are refused.
"""

from __future__ import annotations

import hashlib
from typing import Final

_P: Final = 2**255 - 19
_ORDER: Final = 2**252 + 27742317777372353535851937790883648493
_D: Final = -121665 * pow(121666, -1, _P) % _P
_ROOT: Final = pow(2, (_P - 1) // 4, _P)
"""A square root of -1."""

Point = tuple[int, int, int, int]
"""Extended coordinates X, Y, Z, T: x = X/Z, y = Y/Z, xy = T/Z."""
_NEUTRAL: Final[Point] = (0, 1, 1, 0)


def _add(a: Point, b: Point) -> Point:
    ax, ay, az, at = a
    bx, by, bz, bt = b
    e, f = (ay - ax) * (by - bx) % _P, (ay + ax) * (by + bx) % _P
    g, h = 2 * at * bt * _D % _P, 2 * az * bz % _P
    i, j, k, m = f - e, h - g, h + g, f + e
    return i * j % _P, k * m % _P, j * k % _P, i * m % _P


def _multiply(scalar: int, point: Point) -> Point:
    result = _NEUTRAL
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point = _add(point, point)
        scalar >>= 1
    return result


def _same(a: Point, b: Point) -> bool:
    return (a[0] * b[2] - b[0] * a[2]) % _P == 0 and (a[1] * b[2] - b[1] * a[2]) % _P == 0


def _decode(data: bytes) -> Point | None:
    """A point from its 32 bytes; None if they are no point, or not the one way to write it."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = _P - x
    return x, y, 1, x * y % _P


def _base() -> Point:
    point = _decode((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))
    assert point is not None
    return point


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature is a key's over a message."""
    if len(key) != 32 or len(signature) != 64:
        return False
    public, commitment = _decode(key), _decode(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if public is None or commitment is None or scalar >= _ORDER or _same(_multiply(8, public), _NEUTRAL):
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % _ORDER
    return _same(_multiply(scalar, _base()), _add(commitment, _multiply(challenge, public)))
