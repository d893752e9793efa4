"""Signatures: ours and OpenSSL's agree on right ones, and we refuse every wrong one."""

from __future__ import annotations

import random

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from belljar.packages.ed25519 import _ORDER, _P, verify

RFC_8032 = [  # section 7.1: key, message, signature
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24"
        "655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aee"
        "b00d291612bb0c00",
    ),
]


@pytest.mark.parametrize(("key", "message", "signature"), RFC_8032)
def test_the_vectors_of_the_standard(key: str, message: str, signature: str) -> None:
    assert verify(bytes.fromhex(key), bytes.fromhex(message), bytes.fromhex(signature))


def test_signatures_of_openssl_and_what_is_wrong_with_others() -> None:
    rng = random.Random(1)
    for size in (0, 1, 31, 1000):
        private = Ed25519PrivateKey.from_private_bytes(rng.randbytes(32))
        key = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        message = rng.randbytes(size)
        signature = private.sign(message)
        assert verify(key, message, signature)
        assert not verify(key, message + b"x", signature)
        for _ in range(4):
            bit = rng.randrange(512)
            flipped = bytearray(signature)
            flipped[bit // 8] ^= 1 << bit % 8
            assert not verify(key, message, bytes(flipped))
            wrong = bytearray(key)
            wrong[bit // 16] ^= 1 << bit % 8
            assert not verify(bytes(wrong), message, signature)
        # Adding the order makes another signature that plain arithmetic takes for as good.
        scalar = int.from_bytes(signature[32:], "little") + _ORDER
        assert not verify(key, message, signature[:32] + scalar.to_bytes(32, "little"))
        assert not verify(key, message, signature[:-1])
        assert not verify(key[:-1], message, signature)


@pytest.mark.parametrize("point", [0, 1, _P - 1, _P, _P + 1, 2**255 - 1, 1 << 255 | 1], ids=hex)
def test_keys_of_small_order_and_odd_encodings_are_refused(point: int) -> None:
    key = point.to_bytes(32, "little")
    for commitment in (key, (1).to_bytes(32, "little")):
        assert not verify(key, b"any message at all", commitment + bytes(32))
