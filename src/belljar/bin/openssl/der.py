"""Certificates: what X.509 says in DER, read without trust in any length."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime

from belljar.abi.dataclass import dataclass

_NAMES = {
    "2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST",
    "2.5.4.9": "street", "2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.97": "organizationIdentifier",
    "1.2.840.113549.1.9.1": "emailAddress", "0.9.2342.19200300.100.1.25": "DC", "0.9.2342.19200300.100.1.1": "UID",
}  # fmt: skip
_PEM = re.compile(
    rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----(.*?)-----END (?:X509 |TRUSTED )?CERTIFICATE-----", re.S
)
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_ALT_NAME = "2.5.29.17"


class BadCertificate(Exception):
    """The data is no certificate."""


@dataclass(frozen=True, slots=True)
class Certificate:
    der: bytes
    serial: int
    issuer: tuple[tuple[str, str], ...]
    subject: tuple[tuple[str, str], ...]
    begins: datetime
    ends: datetime
    names: tuple[str, ...]
    """Alternative names, as openssl shows them."""


@dataclass(frozen=True, slots=True)
class Value:
    tag: int
    content: bytes


def read_certificate(data: bytes) -> Certificate:
    """The first certificate of a PEM or DER file. Raises BadCertificate."""
    found = _PEM.search(data)
    try:
        der = base64.b64decode(found[1]) if found else data
        return _certificate(der)
    except (ValueError, IndexError, OverflowError) as error:
        raise BadCertificate(str(error)) from None


def _certificate(der: bytes) -> Certificate:
    (outer,) = _values(der)[:1]
    signed = _values(outer.content)[0]
    fields = _values(signed.content)
    if fields[0].tag == 0xA0:
        fields = fields[1:]
    serial, _, issuer, validity, subject = fields[:5]
    begins, ends = (_time(value) for value in _values(validity.content)[:2])
    names: tuple[str, ...] = ()
    for value in fields[6:]:
        if value.tag == 0xA3:
            names = _alternative_names(value)
    return Certificate(
        der, int.from_bytes(serial.content, "big", signed=True), _name(issuer), _name(subject), begins, ends, names
    )


def _values(data: bytes) -> list[Value]:
    """The values that data is a row of."""
    found = []
    at = 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size & 0x80:
            width = size & 0x7F
            size = int.from_bytes(data[at : at + width], "big")
            at += width
        if size > len(data) - at:
            raise ValueError("a value is longer than what holds it")
        found.append(Value(tag, data[at : at + size]))
        at += size
    return found


def _identifier(data: bytes) -> str:
    parts, number = [], 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            parts.append(number)
            number = 0
    first = min(parts[0] // 40, 2)
    return ".".join(map(str, (first, parts[0] - 40 * first, *parts[1:])))


def _name(value: Value) -> tuple[tuple[str, str], ...]:
    found = []
    for part in _values(value.content):
        for pair in _values(part.content):
            kind, text = _values(pair.content)[:2]
            dotted = _identifier(kind.content)
            encoding = "utf-16-be" if text.tag == 0x1E else "utf-8"
            found.append((_NAMES.get(dotted, dotted), text.content.decode(encoding, "replace")))
    return tuple(found)


def _time(value: Value) -> datetime:
    text = value.content.decode("ascii", "replace").removesuffix("Z")
    if value.tag == _UTC_TIME:
        text = ("20" if int(text[:2]) < 50 else "19") + text
    elif value.tag != _GENERALIZED_TIME:
        raise ValueError("no time")
    month, day, hour, minute, second = (int(text[at : at + 2]) for at in range(4, 14, 2))
    return datetime(int(text[:4]), month, day, hour, minute, second, tzinfo=UTC)


def _alternative_names(value: Value) -> tuple[str, ...]:
    found = []
    for extension in _values(_values(value.content)[0].content):
        parts = _values(extension.content)
        if _identifier(parts[0].content) != _ALT_NAME:
            continue
        for name in _values(_values(parts[-1].content)[0].content):
            text = name.content.decode("latin-1")
            if name.tag == 0x82:
                found.append(f"DNS:{text}")
            elif name.tag == 0x81:
                found.append(f"email:{text}")
            elif name.tag == 0x86:
                found.append(f"URI:{text}")
            elif name.tag == 0x87:
                dots = ".".join(map(str, name.content)) if len(name.content) == 4 else name.content.hex(":", 2).upper()
                found.append(f"IP Address:{dots}")
    return tuple(found)
