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
ANCHORS: Final = ("/usr/local/share/ca-certificates", "/etc/pki/ca-trust/source/anchors", "/etc/pki/trust/anchors")
"""Directories that the bundles are made from, by update-ca-certificates and update-ca-trust."""
HASHED: Final = "/etc/ssl/certs"
"""Directory in which OpenSSL looks for an authority by the hash of its name."""
_BUNDLE_VARIABLES: Final = (
    "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE",
)  # fmt: skip
_EXTRA_VARIABLES: Final = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")


def trust(
    certificate: bytes, name: str, find: Callable[[str], tuple[str, bytes] | None], public: Callable[[], bytes]
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Files to write and variables to set, for an authority (PEM) with this common name.

    `find` gives a file of the image, by its path without links, or None; `public` gives the authorities for an
    image that has none.
    """
    hashed = _without_links(HASHED, find)
    bundles = dict(found for path in BUNDLES if (found := find(path)) is not None)
    bundles = bundles or {f"{hashed}/{BUNDLES[0].rpartition('/')[2]}": public()}
    anchors = [found[0] for path in ANCHORS if (found := find(path)) is not None]
    alone = [
        f"{hashed}/belljar.pem",
        f"{hashed}/{subject_hash(name)}.0",
        *(f"{place}/belljar.crt" for place in anchors),
    ]
    files = {path: bundle.rstrip(b"\n") + b"\n" + certificate for path, bundle in bundles.items()}
    files.update(dict.fromkeys(alone, certificate))
    return files, dict.fromkeys(_BUNDLE_VARIABLES, next(iter(bundles))) | dict.fromkeys(_EXTRA_VARIABLES, alone[0])


def _without_links(path: str, find: Callable[[str], tuple[str, bytes] | None]) -> str:
    """The place where a file that may not exist yet is to be made: a directory on the way may be a link."""
    parent, _, name = path.rpartition("/")
    if not name:
        return ""
    found = find(path)
    return f"{_without_links(parent, find)}/{name}" if found is None else found[0]


def subject_hash(common_name: str) -> str:
    """OpenSSL's hash of a subject that has nothing but this common name: SHA-1 of its canonical form, in DER."""
    text = b" ".join(common_name.encode().lower().split())
    attribute = _der(0x30, b"\x06\x03\x55\x04\x03" + _der(0x0C, text))
    digest = hashlib.sha1(_der(0x31, attribute), usedforsecurity=False).digest()
    return f"{int.from_bytes(digest[:4], 'little'):08x}"


def _der(tag: int, contents: bytes) -> bytes:
    return bytes([tag, len(contents)]) + contents  # a common name is too short for the long form of a length
