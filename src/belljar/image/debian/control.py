"""Debian's control files: paragraphs of fields, relations between packages, and the index of an archive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from belljar.abi.errors import ImageError
from belljar.image.debian.version import version_key

_RELATION: Final = re.compile(
    r"\s*([a-z0-9][a-z0-9+.-]*)(?::[a-z0-9-]+)?\s*(?:\(\s*(<<|<=|=|>=|>>|<|>)\s*([^\s)]+)\s*\))?"
)
_PROVIDES: Final = re.compile(r"^Provides:(.*)$", re.MULTILINE)
_ESSENTIAL: Final = re.compile(r"^(Essential: yes|Priority: required)$", re.MULTILINE)
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9+.-]*")
_FIELDS: Final = {
    "version": re.compile(r"[A-Za-z0-9][A-Za-z0-9.+:~-]*"),
    "architecture": re.compile(r"[a-z0-9-]+"),
    "size": re.compile(r"[0-9]{1,15}"),
    "sha256": re.compile(r"[0-9a-f]{64}"),
}
"""Fields that become part of file names and scripts."""


class Relation(Struct, frozen=True):
    """A package that is asked for or provided: a name, and maybe which versions."""

    name: str
    operator: str = ""
    version: str = ""


class Package(Struct, frozen=True, eq=False):
    """A binary package of an archive."""

    fields: dict[str, str]
    mirror: str
    """The URL that its file name is relative to."""

    @property
    def name(self) -> str:
        return self.fields["package"]

    @property
    def version(self) -> str:
        return self.fields["version"]

    @property
    def sha256(self) -> str:
        return self.fields["sha256"]

    @property
    def size(self) -> int:
        return int(self.fields["size"])

    def relations(self, *names: str) -> list[list[Relation]]:
        """What is asked for by some fields: for each, one of several alternatives."""
        return [group for name in names for group in parse_relations(self.fields.get(name, ""))]


def parse_paragraph(text: str) -> dict[str, str]:
    """Fields by their names in lower case; the lines of a long one are kept, without the space before them."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line[:1] in (" ", "\t"):
            lines.append(line[1:])
        else:
            name, _, value = line.partition(":")
            lines = found[name.strip().lower()] = [value.strip()]
    return {name: "\n".join(value) for name, value in found.items()}


def parse_relations(text: str) -> list[list[Relation]]:
    """The groups of alternatives in a field such as Depends."""
    groups = []
    for group in text.split(","):
        if group.strip():
            matches = [_RELATION.match(each) for each in group.split("|")]
            found = [Relation(each[1], each[2] or "", each[3] or "") for each in matches if each is not None]
            if len(found) != len(matches):
                raise ImageError(f"a package has a relation that makes no sense: {group.strip()[:100]!r}")
            groups.append(found)
    return groups


class PackageIndex:
    """The packages of one or several archives, by name and by what they provide."""

    def __init__(self) -> None:
        self._texts: dict[str, list[tuple[str, str]]] = {}
        self._parsed: dict[str, list[Package]] = {}
        self._providers: dict[str, list[str]] = {}
        self._needed: set[str] = set()

    def add(self, packages: str, mirror: str) -> None:
        """Add a `Packages` file: only the names are read now, since most packages are never asked for."""
        for text in packages.split("\n\n"):
            head = text.lstrip("\n")
            if not head.startswith("Package: "):
                if head:
                    raise ImageError("the archive's list of packages can't be read")
                continue
            name = head[9 : head.find("\n")].strip()
            if not _NAME.fullmatch(name):
                raise ImageError(f"the archive's list of packages has a package called {name[:100]!r}")
            self._texts.setdefault(name, []).append((head, mirror))
            if _ESSENTIAL.search(head):
                self._needed.add(name)
            if provides := _PROVIDES.search(head):
                for group in parse_relations(provides[1]):
                    names = self._providers.setdefault(group[0].name, [])
                    if name not in names:
                        names.append(name)

    @property
    def needed(self) -> list[str]:
        """Names of packages that every system has."""
        return sorted(self._needed)

    def versions(self, name: str) -> list[Package]:
        """The packages of a name, newest first. ImageError."""
        if name not in self._parsed:
            found = [Package(_check(parse_paragraph(text)), mirror) for text, mirror in self._texts.get(name, [])]
            unique = {package.version: package for package in reversed(found)}
            self._parsed[name] = sorted(unique.values(), key=lambda package: version_key(package.version), reverse=True)
        return self._parsed[name]

    def providers(self, name: str) -> list[Package]:
        """Packages that provide a name without having it: the newest of each, the most usual first."""
        found = [self.versions(each)[0] for each in self._providers.get(name, []) if each != name]
        ranks = ("required", "important", "standard", "optional")
        return sorted(
            (package for package in found if provided(package, name)),
            key=lambda package: (
                (*ranks, package.fields.get("priority", "")).index(package.fields.get("priority", "")),
                package.name,
            ),
        )

    def similar(self, name: str) -> list[str]:
        return sorted(other for other in self._texts if name in other)[:5]


def provided(package: Package, name: str) -> list[Relation]:
    """What a package provides under a name, in which version."""
    return [group[0] for group in package.relations("provides") if group[0].name == name]


def _check(fields: dict[str, str]) -> dict[str, str]:
    """ImageError for a package that can't be fetched or checked."""
    missing = [
        name for name in ("package", "version", "architecture", "filename", "size", "sha256") if name not in fields
    ]
    name = fields.get("package", "")[:100]
    if missing or any(not pattern.fullmatch(fields[field]) for field, pattern in _FIELDS.items()):
        raise ImageError(f"the archive says too little of the package {name!r}, or nonsense")
    if ".." in fields["filename"].split("/") or fields["filename"].startswith("/"):
        raise ImageError(f"the package {name!r} is said to be at {fields['filename'][:200]!r}")
    return fields


def render_paragraph(fields: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    items = fields.items() if isinstance(fields, Mapping) else fields
    return "".join(
        f"{name}: {value}\n".replace(": \n", ":\n", 1).replace("\n", "\n ").removesuffix(" ") for name, value in items
    )
