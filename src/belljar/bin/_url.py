"""URLs as curl and wget read them: a scheme guessed where there is none, dots resolved, relative ones joined."""

from __future__ import annotations

import encodings.idna
import encodings.punycode
import re
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote

from belljar.abi.dataclass import dataclass, replace

PORTS: Final = {"http": 80, "https": 443}
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/{1,3})")
_BAD_HOST: Final = re.compile(r"[\x00-\x20\x7f/:#?!@{}\[\]\\$'\"^`*<>=;,+&()|~]")
_UNSAFE: Final = "!$%&'()*+,-./:;=?@_~[]|^`\"{}<>\\"


class BadUrl(ValueError):
    """A text that is no URL; the reason is what curl says after "URL rejected: "."""


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    host: str
    """An IPv6 address has its brackets."""
    port: int
    path: str
    query: str | None = None
    fragment: str | None = None
    user: str | None = None
    password: str | None = None
    explicit_port: bool = False

    @property
    def authority(self) -> str:
        return f"{self.host}:{self.port}" if self.explicit_port else self.host

    @property
    def host_header(self) -> str:
        """Without the dot that ends a full name; the port is left out where it is the scheme's own."""
        host = self.host.removesuffix(".")
        return host if self.port == PORTS.get(self.scheme) else f"{host}:{self.port}"

    @property
    def target(self) -> str:
        """Path and query: what a request asks for."""
        return self.path if self.query is None else f"{self.path}?{self.query}"

    @property
    def is_address(self) -> bool:
        """Whether the host is written as an address, not as a name."""
        try:
            IPv6Address(self.host[1:-1]) if self.host.startswith("[") else IPv4Address(self.host)
        except ValueError:
            return False
        return True

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host.lower(), self.port

    def request_url(self) -> str:
        """Without user and fragment, which are never sent, and with everything outside ASCII escaped."""
        return f"{self.scheme}://{self.host_header}{quote(self.target, safe=_UNSAFE, errors='surrogateescape')}"

    def __str__(self) -> str:
        """All of it, as curl shows it."""
        user = ""
        if self.user is not None:
            user = self.user if self.password is None else f"{self.user}:{self.password}"
            user += "@"
        rest = "" if self.fragment is None else f"#{self.fragment}"
        return f"{self.scheme}://{user}{self.authority}{self.target}{rest}"


def parse_url(text: str, *, as_is: bool = False, default_scheme: str = "") -> Url:
    """Raises BadUrl."""
    if any(char <= " " or char == "\x7f" for char in text):
        raise BadUrl("Malformed input to a URL function")
    match = _SCHEME.match(text)
    if match is not None:
        scheme, rest = match[1].lower(), text[match.end() :]
    else:
        scheme, rest = default_scheme, text
    if scheme == "file":
        path = "/" + (rest if match is not None and len(match[2]) == 3 else rest.partition("/")[2])
        return Url("file", "", 0, path)
    end = re.search(r"[/?#]", rest)
    authority, tail = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    userinfo, at, place = authority.rpartition("@")
    user = password = None
    if at:
        user, colon, secret = userinfo.partition(":")
        password = secret if colon else None
    host, port = _split_port(place)
    if not host:
        raise BadUrl("No host part in the URL")
    if not scheme:
        scheme = "ftp" if host.lower().startswith("ftp.") else "http"
    path, fragment = tail, None
    if "#" in path:
        path, _, fragment = path.partition("#")
    query: str | None
    path, question, query_text = path.partition("?")
    query = query_text if question else None
    path = path or "/"
    if not as_is:
        path = remove_dots(path)
    host = _host_name(host)
    return Url(scheme, host, PORTS.get(scheme, 0) if port is None else port, path, query, fragment, user, password,
               port is not None)  # fmt: skip


def _split_port(place: str) -> tuple[str, int | None]:
    if place.startswith("["):
        end = place.find("]")
        if end < 0:
            raise BadUrl("Bad IPv6 address")
        host, rest = place[: end + 1], place[end + 1 :]
        try:
            IPv6Address(host[1:-1].partition("%")[0])
        except ValueError:
            raise BadUrl("Bad IPv6 address") from None
        if rest and not rest.startswith(":"):
            raise BadUrl("Port number was not a decimal number between 0 and 65535")
        digits = rest[1:]
    else:
        host, _, digits = place.partition(":")
    if not digits:
        return host, None
    if not (digits.isascii() and digits.isdecimal() and len(digits.lstrip("0")) <= 5 and int(digits) <= 65535):
        raise BadUrl("Port number was not a decimal number between 0 and 65535")
    return host, int(digits)


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host
    if not host.isascii():
        try:
            # Codecs are found by their names, which a sealed worker no longer can: this one is called.
            host = encodings.idna.Codec().encode(host)[0].decode("ascii")
        except UnicodeError:
            raise BadUrl("Bad hostname") from None
    # After that: a full-width slash has become a slash.
    if _BAD_HOST.search(host) or "%" in host:
        raise BadUrl("Bad hostname")
    return host


def remove_dots(path: str) -> str:
    """`/a/./b/../c` is `/a/c`."""
    out: list[str] = []
    parts = path.split("/")
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        plain = part.replace("%2e", ".").replace("%2E", ".")
        if plain == ".":
            if last:
                out.append("")
        elif plain == "..":
            if len(out) > 1:
                out.pop()
            if last:
                out.append("")
        else:
            out.append(part)
    joined = "/".join(out)
    return joined if joined.startswith("/") else "/" + joined


def join(base: Url, location: str, *, as_is: bool = False) -> Url:
    """Return where a Location header leads. Spaces in it are escaped, as browsers do. Raises BadUrl."""
    location = re.sub(r"[\x00-\x20\x7f]", lambda m: f"%{ord(m[0]):02x}", location.strip(" \t\r\n"))
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", location):
        return parse_url(location, as_is=as_is)
    if location.startswith("//"):
        return parse_url(f"{base.scheme}:{location}", as_is=as_is)
    plain = replace(base, fragment=None)
    rest, hash_mark, fragment = location.partition("#")
    path, question, query = rest.partition("?")
    if not path:
        path = base.path
        if not question:
            question, query = ("?", base.query) if base.query is not None else ("", "")
    elif not path.startswith("/"):
        path = base.path.rpartition("/")[0] + "/" + path
    return replace(
        plain,
        path=path if as_is else remove_dots(path),
        query=query if question else None,
        fragment=fragment if hash_mark else None,
    )
