"""Looks projects up: on indexes, in directories of archives, and in the files themselves for what they need."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.bin.pip.fetch import NotFound, fetch
from belljar.bin.pip.index import ACCEPT, Link, Offer, find_compiled, find_offers, parse_page
from belljar.bin.pip.metadata import parse_metadata
from belljar.bin.pip.requirements import Asked
from belljar.bin.pip.sources import open_source
from belljar.bin.pip.store import Store, format_size
from belljar.bin.pip.wheel import read_metadata
from belljar.kernel.process import Process

DEFAULT_INDEX = "https://pypi.org/simple"


@dataclass
class IndexFinder:
    """Projects of the indexes and directories that a command names."""

    process: Process
    store: Store
    asked: Asked
    quiet: int = 0
    hashes: dict[NormalizedName, tuple[str, ...]] = field(default_factory=dict)
    _found: dict[NormalizedName, tuple[list[Offer], list[Version]]] = field(default_factory=dict)
    _compiled: dict[NormalizedName, dict[Version, str]] = field(default_factory=dict)
    _metadata: dict[str, bytes] = field(default_factory=dict)

    def say(self, text: str) -> None:
        if not self.quiet:
            self.process.print(text)
            self.process.stdout.flush()

    def silence(self) -> None:
        self.quiet = max(self.quiet, 1)

    def collecting(self, requirement: Requirement, parent: str) -> None:
        self.say(f"Collecting {requirement}" + (f" (from {parent})" if parent else ""))

    def offers(self, name: NormalizedName) -> tuple[list[Offer], list[Version]]:
        if name not in self._found:
            links: list[Link] = []
            for place in self.asked.find_links:
                links += self._directory(place)
            indexes = (
                [] if self.asked.no_index else [self.asked.index_url or DEFAULT_INDEX, *self.asked.extra_index_urls]
            )
            for index in indexes:
                links += self._page(f"{index.rstrip('/')}/{name}/")
            self._found[name] = find_offers(links, name)
            self._compiled[name] = find_compiled(links, name)
        return self._found[name]

    def compiled(self, name: NormalizedName) -> dict[Version, str]:
        self.offers(name)
        return self._compiled[name]

    def _page(self, url: str) -> list[Link]:
        try:
            with fetch(self.process, url, accept=ACCEPT) as response:
                return parse_page(response.text(), response.kind, response.url)
        except NotFound:
            return []

    def _directory(self, place: str) -> list[Link]:
        if place.startswith(("http://", "https://")):
            return self._page(place)
        path = self.process.absolute(place.removeprefix("file://"))
        try:
            if not self.process.fs.stat(path).is_dir:
                return parse_page(self.process.read_file(path), "text/html", f"file://{path}")
            names = [entry.name for entry in self.process.fs.readdir(path)]
        except SysError:
            self.process.error(f"WARNING: Location '{place}' is ignored: it is neither a file nor a directory.\n")
            return []
        return [Link(name, f"file://{path}/{name}") for name in names if name.endswith((".whl", ".tar.gz", ".zip"))]

    def metadata(self, offer: Offer) -> bytes:
        """A file's metadata. Unbuildable for a source that can't be built."""
        link = offer.link
        if link.url not in self._metadata:
            if offer.is_wheel and link.metadata is not None:
                data = self.store.metadata(link)
                self.say(f"  Downloading {link.filename}.metadata ({format_size(len(data))})")
            else:
                path = self.fetch(offer)
                with self.store.reading():
                    if offer.is_wheel:
                        data = read_metadata(self.store.open_zip(path), link.filename)
                    else:
                        data = open_source(self.store.open_tree(path)).metadata_text
            self._metadata[link.url] = data
        return self._metadata[link.url]

    def fetch(self, offer: Offer, *, indent: str = "  ") -> str:
        """The path of an offer's file, downloaded if need be."""
        link = offer.link
        new = link.url not in self.store.paths
        path = self.store.download(link, self.hashes.get(offer.name, ()))
        if new:
            word = "Processing" if link.url.startswith("file:") else "Downloading"
            shown = path if word == "Processing" else link.filename
            self.say(f"{indent}{word} {shown} ({format_size(self.process.fs.stat(path).size)})")
        return path

    def requires(self, offer: Offer) -> list[str]:
        return parse_metadata(self.metadata(offer)).get("requires_dist", [])
