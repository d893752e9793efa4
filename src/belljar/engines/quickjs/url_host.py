"""URLs as the web knows them, by ada: the parser that Node has, from the package ada-url."""

from __future__ import annotations

import struct
from typing import Any, Final

from ada_url._ada_wrapper import ffi, lib

_COMPONENTS: Final = struct.Struct("<9I")
_SETTERS: Final = ("protocol", "host", "hostname", "port", "username", "password", "pathname", "search", "hash", "href")
"""Setters in the order of Node's numbers."""


def parse(text: str, base: str | None = None) -> bytes | None:
    """The nine numbers that Node's library keeps of a URL, and its href; None if it is none."""
    data = text.encode("utf-8", "replace")
    if base is None:
        return _describe(lib.ada_parse(data, len(data)))
    start = base.encode("utf-8", "replace")
    return _describe(lib.ada_parse_with_base(data, len(data), start, len(start)))


def update(href: str, action: int, value: str) -> bytes | None:
    """The same, after one part of a URL was set; None if there is no such URL."""
    start, data = href.encode("utf-8", "replace"), value.encode("utf-8", "replace")
    url = lib.ada_parse(start, len(start))
    name = _SETTERS[action]
    held = getattr(lib, f"ada_set_{name}")(url, data, len(data)) if lib.ada_is_valid(url) else False
    if name == "href" and not held:
        lib.ada_free(url)
        return None
    return _describe(url)


def _describe(url: Any) -> bytes | None:
    try:
        if not lib.ada_is_valid(url):
            return None
        found = lib.ada_get_components(url)
        numbers = (
            found.protocol_end,
            found.username_end,
            found.host_start,
            found.host_end,
            found.port,
            found.pathname_start,
            found.search_start,
            found.hash_start,
            lib.ada_get_scheme_type(url),
        )
        href = lib.ada_get_href(url)
        return _COMPONENTS.pack(*numbers) + bytes(ffi.buffer(href.data, href.length))
    finally:
        lib.ada_free(url)
