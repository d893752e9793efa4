"""A package's METADATA, as far as pip needs it: `packaging` would load all of `email` to read these lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, TypedDict, cast

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_ONCE: Final = frozenset(
    "name version summary home_page author author_email license license_expression requires_python".split()
)


class Metadata(TypedDict, total=False):
    """Fields that are not there are not there."""

    name: str
    version: str
    summary: str
    home_page: str
    author: str
    author_email: str
    license: str
    license_expression: str
    requires_python: str
    requires_dist: list[str]
    project_urls: dict[str, str]


def parse_headers(data: bytes) -> Iterator[tuple[str, str]]:
    """Name, in lower case, and value of each line up to the first that is none; a value may go on in lines below."""
    name = value = ""
    for line in _LINE_END.split(data.decode("utf-8", "surrogateescape")):
        if line[:1] in (" ", "\t") and name:
            value += "\n" + line
            continue
        if name:
            yield name, value.strip()
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name.strip() != name:
            return
    if name:
        yield name, value.strip()


def parse_metadata(data: bytes) -> Metadata:
    """Parse a METADATA or PKG-INFO file. Of a repeated field that should be single, the first counts."""
    found: dict[str, Any] = {}
    for name, value in parse_headers(data):
        key = name.replace("-", "_")
        if key in _ONCE:
            found.setdefault(key, value)
        elif key == "requires_dist":
            found.setdefault(key, []).append(value)
        elif key == "project_url":
            label, _, url = value.partition(",")
            found.setdefault("project_urls", {}).setdefault(label.strip(), url.strip())
    return cast("Metadata", found)
