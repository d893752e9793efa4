"""HTTP header fields: kept in order, found by any case, and refused when two readers could disagree about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(rb"[\t -~\x80-\xff]*")
_METHOD: Final = re.compile(r"[A-Z][A-Z-]{0,31}")
_DIGITS: Final = re.compile(rb"[0-9]{1,18}")

HOP_BY_HOP: Final = frozenset(
    "connection keep-alive proxy-connection te trailer transfer-encoding upgrade expect http2-settings".split()
)
"""About one connection, not about the message: ours to set."""
CREDENTIALS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "www-authenticate"})
"""Headers dropped when a redirect leads to another origin."""


class BadMessage(ValueError):
    """A request or response that could be read in two ways, or is too large."""


class Headers:
    """The fields of a message. Names in any case; values are `str` (Latin-1), as HTTP has them."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self._fields: list[tuple[bytes, bytes]] = []
        for name, value in fields:
            self._fields.append(check_field(name, value))

    def get(self, name: str, default: str | None = None) -> str | None:
        """The value; several are joined by commas."""
        values = self.get_all(name)
        return ", ".join(values) if values else default

    def get_all(self, name: str) -> list[str]:
        key = name.lower().encode("latin-1")
        return [value.decode("latin-1") for field, value in self._fields if field.lower() == key]

    def set(self, name: str, value: str) -> None:
        """The only field of this name from now on, whatever the guest had sent."""
        field = check_field(name.encode("latin-1"), value.encode("latin-1"))
        # Many servers take X_Api_Key for X-Api-Key.
        key = _as_servers_read(field[0])
        self._fields = [other for other in self._fields if _as_servers_read(other[0]) != key]
        self._fields.append(field)

    def add(self, name: str, value: str) -> None:
        self._fields.append(check_field(name.encode("latin-1"), value.encode("latin-1")))

    def remove(self, name: str) -> None:
        key = name.lower().encode("latin-1")
        self._fields = [field for field in self._fields if field[0].lower() != key]

    def items(self) -> list[tuple[str, str]]:
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._fields]

    def raw(self) -> list[tuple[bytes, bytes]]:
        return list(self._fields)

    def copy(self) -> Headers:
        other = Headers()
        other._fields = list(self._fields)
        return other

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.get_all(name))

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: str) -> None:
        self.set(name, value)

    def __delitem__(self, name: str) -> None:
        self.remove(name)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self.items()])

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"<Headers {', '.join(name for name, _ in self.items())}>"  # values may be secrets


def _as_servers_read(name: bytes) -> bytes:
    return name.lower().replace(b"_", b"-")


def check_field(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A field with its value trimmed. BadMessage for bytes that some parser would read differently."""
    if not _NAME.fullmatch(name):
        raise BadMessage(f"{name[:40]!r} is not a header name")
    if not _VALUE.fullmatch(value):
        raise BadMessage(f"the header {name.decode()} has a control character in it")
    return name, value.strip(b" \t")


def parse_field(line: bytes) -> tuple[bytes, bytes]:
    """`Name: value`. BadMessage for a missing colon or a space before it."""
    name, colon, value = line.partition(b":")
    if not colon:
        raise BadMessage("a header is written `Name: value`")
    return check_field(name, value)


def check_method(method: str) -> str:
    if not _METHOD.fullmatch(method):
        raise BadMessage(f"{method[:40]!r} is not a method")
    if method in ("CONNECT", "TRACE"):
        raise BadMessage(f"{method} is not allowed")
    return method


def check_request(headers: Headers, authority: str) -> int | None:
    """Refuse what could make the server see another request than we do; gives the announced length of the body.

    The framing is ours: a guest's Transfer-Encoding may only say what we would do anyway.
    """
    hosts = headers.get_all("host")
    if len(hosts) > 1 or (hosts and not _same_authority(hosts[0], authority)):
        raise BadMessage(f"the Host header must be {authority}, as in the URL")
    lengths = headers.get_all("content-length")
    if len(lengths) > 1 or (lengths and not _DIGITS.fullmatch(lengths[0].encode("latin-1"))):
        raise BadMessage("Content-Length must be one plain number")
    codings = headers.get_all("transfer-encoding")
    if codings and (lengths or codings != ["chunked"]):
        raise BadMessage("Transfer-Encoding can only be chunked, and not together with Content-Length")
    return int(lengths[0]) if lengths else None


def _same_authority(given: str, authority: str) -> bool:
    given = given.lower()
    return given in (authority, f"{authority}:80", f"{authority}:443")
