"""Credentials for web remotes: of their URLs, of stores (`credential.helper = store`) and of .netrc."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, unquote

from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._httpauth import Credentials, from_netrc
from belljar.bin._url import BadUrl, Url, parse_url
from belljar.kernel.process import Process

Settings = Callable[[str], list[str]]
"""All values of a configuration key."""

_PRIVATE: Final = 0o600
_LINE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^@:/]*)(?::([^@/]*))?@([^/]*)")
"""A line of a store: scheme, user, password, host."""


def find_credentials(process: Process, url: Url, settings: Settings) -> Credentials | None:
    """Credentials from the URL, a credential store, or .netrc."""
    if url.user is not None:
        return Credentials(unquote(url.user), unquote(url.password or ""))
    for path in stores(process, settings):
        if (found := find_stored(process, path, url)) is not None:
            return found
    home = process.env.get("HOME", "/")
    return from_netrc(fsdecode(process.try_read(f"{home}/.netrc") or b""), url.host, None)


def stores(process: Process, settings: Settings) -> list[str]:
    """Files of the `store` helpers that are configured."""
    home = process.env.get("HOME", "/")
    found: list[str] = []
    for helper in settings("credential.helper"):
        words = helper.split()
        if not words:
            found.clear()  # an empty value resets the list
        elif words[0] == "store":
            path = next((word.removeprefix("--file=") for word in words[1:] if word.startswith("--file=")), "")
            path = f"{home}/{path[2:]}" if path.startswith("~/") else path
            found.append(path or f"{home}/.git-credentials")
    return found


def find_stored(process: Process, path: str, url: Url, user: str | None = None) -> Credentials | None:
    for line in _lines(process, path):
        if (entry := _entry(line, url, user)) is not None:
            return entry
    return None


def store(process: Process, path: str, url: Url, entry: Credentials) -> None:
    """Put an entry first, in place of the one that the same user has there. SysError."""
    others = [line for line in _lines(process, path) if _entry(line, url, entry.user) is None]
    user, password, host = map(_escape, (entry.user, entry.password, url.authority))
    _write(process, path, [f"{url.scheme}://{user}:{password}@{host}", *others])


def erase(process: Process, path: str, url: Url, user: str | None) -> None:
    """Remove the entries for `url`, of one user or of all. SysError."""
    lines = _lines(process, path)
    kept = [line for line in lines if _entry(line, url, user) is None]
    if len(kept) != len(lines):
        _write(process, path, kept)


def _lines(process: Process, path: str) -> list[str]:
    return fsdecode(process.try_read(path) or b"").splitlines()


def _write(process: Process, path: str, lines: list[str]) -> None:
    process.write_file(path, fsencode("".join(f"{line}\n" for line in lines)), _PRIVATE)


def _escape(text: str) -> str:
    """As git writes it: RFC 3986, with small letters."""
    return re.sub("%..", lambda code: code[0].lower(), quote(text, safe="", errors="surrogateescape"))


def _entry(line: str, url: Url, user: str | None) -> Credentials | None:
    """The credentials of a store's line, if it is for `url` and that user (None: any)."""
    if (found := _LINE.match(line.strip())) is None:
        return None
    scheme, owner, password, host = (unquote(part or "", errors="surrogateescape") for part in found.groups())
    try:
        origin = parse_url(f"{scheme}://{host}").origin
    except BadUrl:
        return None
    return Credentials(owner, password) if origin == url.origin and user in (None, owner) else None
