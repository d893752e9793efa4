"""The catalog of a registry: what it offers, signed as one text so that nobody has to agree on how JSON is written.

    {"signed": "<the catalog, as text>", "key": "ed25519:...", "signature": "..."}

The serial number grows with every change: an older catalog than the one that was seen is refused. A catalog may
expire: its registry signs it anew in time, so that whoever hides newer ones is found out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from belljar.packages.archive import TAR_MAX
from belljar.packages.ed25519 import verify
from belljar.packages.errors import PackageError
from belljar.packages.manifest import Permissions, is_name
from belljar.packages.semver import parse_range, parse_version

FILE: Final = "catalog.json"
SIZE_MAX: Final = 64 << 20
"""Bytes of a catalog."""
KEY: Final = "ed25519:"
DAY: Final = 86_400
_TEXT_MAX: Final = 10_000
"""Characters of a description and the like."""
FORMAT: Final = 1
VALID_DAYS_MAX: Final = 3650
_EXPIRES_MAX: Final = 1 << 37
"""Some year after 6000: what can be shown as a date."""


class Offer(Struct, frozen=True, forbid_unknown_fields=False, omit_defaults=True):
    """One version of a package."""

    digest: str
    """Of its tar."""
    size: int
    """Bytes of its tar."""
    archive_size: int
    """Bytes of the archive, as it is fetched."""
    dependencies: dict[str, str] = {}
    description: str = ""
    commands: list[str] = []
    permissions: Permissions = Permissions()
    yanked: str = ""
    """Why it is not to be installed any more."""


class Catalog(Struct, frozen=True, omit_defaults=True):
    registry: str
    serial: int
    packages: dict[str, dict[str, Offer]] = {}
    """By name and version."""
    valid_days: int = 0
    """How long it holds after it was signed; 0: for ever."""
    expires: int = 0
    """When that is over, in seconds since 1970; 0: never."""
    format: int = FORMAT


class Envelope(Struct, frozen=True):
    signed: str
    key: str
    signature: str


def archive_path(digest: str) -> str:
    """Where a registry has an archive, from its root."""
    return f"archives/{digest.replace(':', '-')}.tar.gz"


def encode_catalog(catalog: Catalog) -> bytes:
    return msgspec.json.format(msgspec.json.encode(catalog, order="sorted"), indent=1)


def encode_envelope(text: bytes, key: bytes, signature: bytes) -> bytes:
    envelope = Envelope(text.decode(), format_key(key), base64.b64encode(signature).decode())
    return msgspec.json.encode(envelope) + b"\n"


def format_key(key: bytes) -> str:
    return KEY + base64.b64encode(key).decode()


def parse_key(text: str) -> bytes:
    """The bytes of a public key. PackageError."""
    try:
        key = base64.b64decode(text.removeprefix(KEY), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(KEY) or len(key) != 32:
        raise PackageError(f"{text[:80]!r} is no key of a registry: it begins with {KEY} and has 44 characters more")
    return key


def open_envelope(data: bytes, shown: str, trusted: str | None) -> tuple[Catalog, str]:
    """The catalog in an envelope, and the key that signed it: the trusted one, if there is one yet. PackageError."""
    if len(data) > SIZE_MAX:
        raise PackageError(f"the catalog of {shown} has more than {SIZE_MAX >> 20} MB")
    try:
        envelope = msgspec.json.decode(data, type=Envelope)
        signature = base64.b64decode(envelope.signature, validate=True)
    except (msgspec.DecodeError, binascii.Error, ValueError, RecursionError) as error:
        raise PackageError(f"{shown} has no catalog of a registry: {error}") from None
    if trusted is not None and envelope.key != trusted:
        raise PackageError(
            f"the catalog of {shown} is signed by {envelope.key[:80]!r}, not by {trusted}, which was trusted so far. "
            "If its owner says that the key was changed, remove the registry and add it with --key"
        )
    if not verify(parse_key(envelope.key), envelope.signed.encode(), signature):
        raise PackageError(f"the catalog of {shown} has a wrong signature: it was changed on the way, or is not theirs")
    return parse_catalog(envelope.signed, shown), envelope.key


def dated(catalog: Catalog, now: float) -> Catalog:
    """A catalog as it is signed now."""
    return replace(catalog, expires=int(now) + catalog.valid_days * DAY if catalog.valid_days else 0)


def expiry(catalog: Catalog) -> str:
    """The day on which a catalog expires, in words."""
    return datetime.fromtimestamp(catalog.expires, UTC).strftime("%Y-%m-%d %H:%M UTC")


def check_fresh(catalog: Catalog, shown: str, now: float) -> None:
    """Refuse a catalog that has expired. PackageError."""
    if catalog.expires and now >= catalog.expires:
        raise PackageError(
            f"the catalog of {shown} expired on {expiry(catalog)}: `pkg update` gets a newer one. If it does not, the "
            "registry's owner has not signed it anew (belljar registry refresh), or somebody hides newer ones"
        )


def parse_catalog(text: str, shown: str) -> Catalog:
    """Read and check a catalog. PackageError."""
    try:
        catalog = msgspec.json.decode(text, type=Catalog)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PackageError(f"the catalog of {shown} can't be read: {error}") from None
    if catalog.format != FORMAT:
        raise PackageError(f"the catalog of {shown} has format {catalog.format}: a newer belljar is needed")
    for problem in _problems(catalog):
        raise PackageError(f"the catalog of {shown}: {problem}")
    return catalog


def _problems(catalog: Catalog) -> Iterator[str]:
    if not 0 <= catalog.valid_days <= VALID_DAYS_MAX or not 0 <= catalog.expires <= _EXPIRES_MAX:
        yield "it has no date that can be read"
    if catalog.serial < 1:
        yield "it has no serial number"
    if not is_name(catalog.registry):
        yield f"{catalog.registry[:80]!r} is no name of a registry"
    for name, versions in catalog.packages.items():
        for version, offer in versions.items():
            if not is_name(name) or parse_version(version) is None:
                yield f"{name[:80]!r} {version[:80]!r} is no package"
            digits = offer.digest.removeprefix("sha256:")
            if len(digits) != 64 or not set(digits) <= set("0123456789abcdef") or digits == offer.digest:
                yield f"{name} {version}: {offer.digest[:80]!r} is no digest"
            if not 0 < offer.size <= TAR_MAX or not 0 < offer.archive_size <= TAR_MAX:
                yield f"{name} {version} would have {offer.size:,} bytes: a package has at most {TAR_MAX:,}"
            texts = [offer.description, offer.yanked, *offer.commands, str(offer.permissions)]
            if not all(text.isprintable() and len(text) <= _TEXT_MAX for text in texts):
                yield f"{name} {version}: it has a text that can't be shown"  # it may be for a terminal, not for you
            for needed, wanted in offer.dependencies.items():
                if not is_name(needed) or parse_range(wanted) is None:
                    yield f"{name} {version} needs {needed[:80]!r} {wanted[:80]!r}: that can't be read"
