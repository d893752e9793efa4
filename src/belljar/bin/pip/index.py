"""The files that an index offers: the simple API's pages (JSON of PEP 691, HTML of PEP 503) as a list of files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    NormalizedName,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from belljar.abi.dataclass import dataclass, field
from belljar.bin._kit.cstack import parse_json
from belljar.bin.pip.environment import PYTHON_FULL_VERSION, supported_tags
from belljar.bin.pip.problems import PipError

ACCEPT: Final = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01"
_HASHES: Final = ("sha256", "sha384", "sha512")


@dataclass(frozen=True, slots=True)
class Link:
    """One file of a project."""

    filename: str
    url: str
    hashes: Mapping[str, str] = field(default_factory=dict)
    requires_python: str | None = None
    yanked: bool = False
    metadata: Mapping[str, str] | None = None
    """The hashes of its metadata, if the index offers that by itself (PEP 658)."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A file that can be installed here: which version it is, and how good a match."""

    link: Link
    name: NormalizedName
    version: Version
    is_wheel: bool
    rank: int
    """The lower the better, of wheels of one version."""


def parse_page(data: bytes, kind: str, url: str) -> list[Link]:
    """The files of a project's page. PipError if it is no such page."""
    if "json" in kind:
        return _parse_json(data, url)
    parser = _Page(url)
    parser.feed(data.decode("utf-8", "replace"))
    return parser.links


def _parse_json(data: bytes, url: str) -> list[Link]:
    try:
        page = parse_json(data)
        return [_json_link(entry, url) for entry in page["files"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise PipError(f"the page at {url} is not a project's: {type(error).__name__}") from None


def _json_link(entry: Any, url: str) -> Link:
    offered = entry.get("core-metadata", entry.get("dist-info-metadata", False))
    return Link(
        str(entry["filename"]),
        urljoin(url, str(entry["url"])),
        {str(name): str(value) for name, value in (entry.get("hashes") or {}).items()},
        entry.get("requires-python"),
        entry.get("yanked", False) is not False,
        {str(k): str(v) for k, v in offered.items()} if isinstance(offered, dict) else {} if offered else None,
    )


class _Page(HTMLParser):
    """The anchors of a page."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._base = url
        self.links: list[Link] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        href = given.get("href")
        if tag == "base" and href:
            self._base = urljoin(self._base, href)
        if tag != "a" or not href:
            return
        url, fragment = urldefrag(urljoin(self._base, href))
        offered = given.get("data-core-metadata", given.get("data-dist-info-metadata", "false"))
        self.links.append(
            Link(
                unquote(urlsplit(url).path.rpartition("/")[2]),
                url,
                _fragment_hashes(fragment),
                given.get("data-requires-python"),
                "data-yanked" in given,
                None if offered == "false" else _fragment_hashes(offered or ""),
            )
        )


def _fragment_hashes(text: str) -> dict[str, str]:
    found = re.match(r"(sha\d+)=([0-9a-fA-F]+)$", text)
    return {found[1]: found[2].lower()} if found else {}


def find_offers(links: list[Link], project: NormalizedName) -> tuple[list[Offer], list[Version]]:
    """The files that can be used, newest first and wheels before sources; and every version there is at all."""
    tags, offers, versions = supported_tags(), [], set()
    for link in links:
        try:
            if link.filename.endswith(".whl"):
                name, version, _, file_tags = parse_wheel_filename(link.filename)
                rank = min((tags[tag] for tag in file_tags if tag in tags), default=-1)
            elif link.filename.endswith((".tar.gz", ".zip")):
                name, version = parse_sdist_filename(link.filename)
                rank = len(tags)
            else:
                continue
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            continue
        if name != project:
            continue
        versions.add(version)
        if rank >= 0 and _python_fits(link.requires_python):
            offers.append(Offer(link, name, version, link.filename.endswith(".whl"), rank))
    offers.sort(key=lambda offer: (offer.version, -offer.rank), reverse=True)
    return offers, sorted(versions)


def find_compiled(links: list[Link], project: NormalizedName) -> dict[Version, str]:
    """The versions all of whose wheels are for one platform each, with the name of one of them."""
    pure: set[Version] = set()
    compiled: dict[Version, str] = {}
    for link in links:
        try:
            name, version, _, tags = parse_wheel_filename(link.filename)
        except (InvalidWheelFilename, InvalidVersion):
            continue
        if name != project:
            continue
        if any(tag.platform == "any" for tag in tags):
            pure.add(version)
        elif version not in compiled or ("linux" in link.filename and "linux" not in compiled[version]):
            compiled[version] = link.filename
    return {version: filename for version, filename in compiled.items() if version not in pure}


def _python_fits(specifier: str | None) -> bool:
    if not specifier:
        return True
    try:
        return SpecifierSet(specifier).contains(PYTHON_FULL_VERSION, prereleases=True)
    except InvalidSpecifier:
        return True


def offer_of_file(filename: str, url: str, hashes: Mapping[str, str]) -> Offer:
    """A wheel or source archive that was named itself. PipError if it does not run here."""
    try:
        if filename.endswith(".whl"):
            name, version, _, tags = parse_wheel_filename(filename)
            if not any(tag in supported_tags() for tag in tags):
                raise PipError(f"{filename} is not a supported wheel on this platform.")
        else:
            name, version = parse_sdist_filename(filename)
    except InvalidWheelFilename:
        raise PipError(f"Invalid wheel filename (wrong number of parts): {filename!r}") from None
    except (InvalidSdistFilename, InvalidVersion):
        raise PipError(f"{filename} is not named as a wheel or a source archive is") from None
    link = Link(filename, url, hashes)
    return Offer(link, canonicalize_name(name), version, filename.endswith(".whl"), 0)
