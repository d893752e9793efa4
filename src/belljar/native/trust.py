"""The sandbox's own authority where programs of an image look for authorities: files, and variables that name them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora and its kin
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, and what OpenSSL is built with
)
"""Files of all trusted authorities. An image may have several; some are links to others."""
_ANCHORS: Final = ("/usr/local/share/ca-certificates", "/etc/pki/ca-trust/source/anchors", "/etc/pki/trust/anchors")
"""Directories that the bundles are made from, by update-ca-certificates and update-ca-trust."""
_HASHED: Final = "/etc/ssl/certs"
"""Directory in which OpenSSL looks for an authority by the hash of its name."""
CERTIFICATE: Final = "/etc/ssl/certs/belljar.pem"
"""The sandbox's authority alone."""
_BUNDLE_VARIABLES: Final = (
    "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
)  # fmt: skip
_EXTRA_VARIABLE: Final = "NODE_EXTRA_CA_CERTS"


def trust(
    certificate: bytes, name: str, find: Callable[[str], tuple[str, bytes] | None], public: bytes
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Files to write and variables to set, for an authority (PEM) with this common name.

    `find` gives a file of the image, by its path without links, or None; `public` are the authorities for an image
    that has none.
    """
    bundles = [found for path in BUNDLES if (found := find(path)) is not None] or [(BUNDLES[0], public)]
    anchors = [found[0] for path in _ANCHORS if (found := find(path)) is not None]
    files = {path: bundle.rstrip(b"\n") + b"\n" + certificate for path, bundle in bundles}
    alone = [CERTIFICATE, f"{_HASHED}/{subject_hash(name)}.0", *(f"{directory}/belljar.crt" for directory in anchors)]
    files.update(dict.fromkeys(alone, certificate))
    return files, {**dict.fromkeys(_BUNDLE_VARIABLES, bundles[0][0]), _EXTRA_VARIABLE: CERTIFICATE}


def subject_hash(common_name: str) -> str:
    """OpenSSL's hash of a subject that has nothing but this common name: SHA-1 of its canonical form, in DER."""
    text = b" ".join(common_name.encode().lower().split())
    attribute = _der(0x30, b"\x06\x03\x55\x04\x03" + _der(0x0C, text))
    digest = hashlib.sha1(_der(0x31, attribute), usedforsecurity=False).digest()
    return f"{int.from_bytes(digest[:4], 'little'):08x}"


def _der(tag: int, contents: bytes) -> bytes:
    return bytes([tag, len(contents)]) + contents  # a common name is too short for the long form of a length
