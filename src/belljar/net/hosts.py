"""Host names, addresses, ports and URLs as guests write them: one strict reading, or none.

Nothing here is ever given to `getaddrinfo`, which takes `2852039166`, `0x7f.1` and circled digits for addresses.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final

from belljar.abi.dataclass import dataclass

if TYPE_CHECKING:
    from belljar.net.addresses import Address

_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_QUAD: Final = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_TARGET: Final = re.compile(r"[!-~]*")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_SCHEMES: Final = {"http": 80, "https": 443}
NAME_MAX: Final = 253
URL_MAX: Final = 16 << 10
RECORD_TYPES: Final = frozenset("A AAAA CNAME MX NS TXT SRV CAA SOA PTR HTTPS SVCB".split())
"""Record types that a guest may query."""


class BadHost(ValueError):
    """A host, port or URL that has no single meaning."""


def parse_address(text: str) -> Address | None:
    """An address in its one plain spelling (an IPv6 one without brackets); None if it is something else."""
    if _QUAD.fullmatch(text):
        try:
            return IPv4Address(text)
        except ValueError:
            return None
    if ":" in text and text.isascii() and "%" not in text:
        try:
            address = IPv6Address(text)
            return address.ipv4_mapped or address
        except ValueError:
            return None
    return None


def parse_name(text: str) -> str:
    """A host name in lower case without its final dot. BadHost, with the reason."""
    name = text.lower() if text.isascii() else text
    name = name[:-1] if name.endswith(".") else name
    if not name.isascii():
        raise BadHost(f"{_shown(text)}: write an international name in its xn-- form")
    if not name or len(name) > NAME_MAX:
        raise BadHost(f"{_shown(text)}: a host name has 1 to {NAME_MAX} characters")
    labels = name.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise BadHost(f"{_shown(text)}: not a host name")
    if _NUMBER.fullmatch(labels[-1]):
        raise BadHost(f"{_shown(text)}: write an address as four decimal numbers")
    return name


def parse_host(text: str) -> Address | str:
    """An address, or a name. BadHost for everything that some resolver would read as an address and for the rest."""
    if text.startswith("[") and text.endswith("]"):
        address = parse_address(text[1:-1])
        if address is None:
            raise BadHost(f"{_shown(text)}: not an IPv6 address")
        return address
    return parse_address(text) or parse_name(text)


def parse_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536):
        raise BadHost(f"{_shown(text)}: not a port")
    return int(text)


def split_port(text: str) -> tuple[str, int | None]:
    """`host:port`, `[v6]:port`, `host` or `v6`."""
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise BadHost(f"{_shown(text)}: not a host and port")
        return host + "]", parse_port(rest[1:]) if rest else None
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        return host, parse_port(port)
    return text, None


@dataclass(frozen=True, slots=True)
class Url:
    """A web address that means one thing."""

    scheme: str
    host: Address | str
    port: int
    target: str
    """Path and query, as sent."""

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if isinstance(self.host, IPv6Address) else str(self.host)
        return host if self.port == _SCHEMES[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, str(self.host), self.port

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(text: str) -> Url:
    """BadHost for another scheme, user info, odd characters, or a host that has no single meaning."""
    if len(text) > URL_MAX:
        raise BadHost(f"the URL is longer than {URL_MAX} characters")
    scheme, colon, rest = text.partition("://")
    scheme = scheme.lower()
    if not colon or scheme not in _SCHEMES:
        raise BadHost(f"{_shown(text)}: only http:// and https:// URLs")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    authority, target = rest[:end], rest[end:].partition("#")[0]
    if "@" in authority:
        raise BadHost("credentials don't belong in a URL; send an Authorization header")
    if not _TARGET.fullmatch(target):
        raise BadHost(f"{_shown(text)}: a URL has no spaces, control or non-ASCII characters; percent-encode them")
    if not target.startswith("/"):
        target = "/" + target
    if authority.count(":") > 1 and not authority.startswith("["):
        raise BadHost(f"{_shown(text)}: an IPv6 address stands in brackets")
    host, port = split_port(authority[:-1] if authority.endswith(":") else authority)
    return Url(scheme, parse_host(host), port or _SCHEMES[scheme], target)


def check_path(url: Url) -> Url:
    """The URL with its path in the one spelling that every server reads alike; BadHost if it has none.

    Escapes of plain characters are undone and dot segments removed. Refused is what some servers read in another way:
    empty segments, backslashes, control characters, and dot segments hidden behind an escape or a parameter.
    """
    path, mark, query = url.target.partition("?")
    path = _ESCAPE.sub(_unescape, path)
    if re.search(r"%(?![0-9A-F]{2})|%[01][0-9A-F]|%7F|%25(?i:2e|2f|5c|00)|\\|%5C|//", path):
        raise BadHost("the path can be read in two ways")
    segments: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            segments = segments[:-1]
        elif segment != ".":
            segments.append(segment)
        if any(part.partition(";")[0] in (".", "..") for part in segment.split("%2F")) and segment not in (".", ".."):
            raise BadHost("the path can be read in two ways")
    if path.rpartition("/")[2] in (".", ".."):
        segments.append("")
    return Url(url.scheme, url.host, url.port, f"/{'/'.join(segments)}{mark}{query}")


def _unescape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character.isascii() and (character.isalnum() or character in "-._~") else match[0].upper()


def join_url(base: Url, reference: str) -> Url:
    """Resolve a Location header against a URL. BadHost as `parse_url`."""
    if not _TARGET.fullmatch(reference):
        raise BadHost(f"{_shown(reference)}: a URL has no spaces, control or non-ASCII characters")
    from urllib.parse import urljoin  # of use to the owner's side only

    return parse_url(urljoin(str(base), reference))


def _shown(text: str) -> str:
    """Text as it may stand in a message: short, and nothing that moves a cursor."""
    return ascii(text if len(text) <= 80 else text[:77] + "...")
