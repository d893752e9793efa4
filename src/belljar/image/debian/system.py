"""A Debian system as an image: lists fetched, packages chosen, fetched and unpacked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from belljar.abi.base import DEFAULT_PATH
from belljar.image.debian.assemble import Assembly, unpack_order
from belljar.image.debian.configure import PACKAGES
from belljar.image.debian.control import Package
from belljar.image.debian.fetch_host import Archive, fetch_index, fetch_packages, sources
from belljar.image.debian.resolve import resolve
from belljar.image.record import ImageRecord, make_image
from belljar.store.store import Objects

_APT_SETTINGS: Final = b"""// A sandbox may have one user id only: apt can't change to the account _apt.
APT::Sandbox::User "root";
"""


class System(Struct, frozen=True):
    """A system whose packages are not configured."""

    record: ImageRecord
    needed: list[Package]
    """The packages that every system has."""
    later: list[Package]
    """Those that dpkg has to unpack, since a script of theirs must be run before."""


def make_system(
    objects: Objects,
    archive: Archive,
    architecture: str,
    names: Sequence[str],
    hear: Callable[[bytes], object],
    *,
    configure: bool,
) -> System:
    """Store the files of a system with these packages: of all of them, unless dpkg will run to configure them.

    The same packages give the same record. ImageError, StoreError.
    """
    index = fetch_index(archive, architecture)
    packages = unpack_order(resolve(index, names))
    hear(b"%d packages, %d kB to fetch\n" % (len(packages), sum(package.size for package in packages) // 1000))
    needed = {package.name for package in resolve(index, [])}
    return _assemble(objects, archive, fetch_packages(packages), needed, hear, configure=configure)


def make_pinned_system(
    objects: Objects,
    archive: Archive,
    fetched: Iterable[tuple[Package, bytes]],
    needed: set[str],
    hear: Callable[[bytes], object],
) -> System:
    """As `make_system`, of packages that were chosen and fetched, of which every system has those of the names in
    `needed`; `archive` is the one that its apt will use.
    """
    packages = {package.name: (package, data) for package, data in fetched}
    order = unpack_order([package for package, _ in packages.values()])
    return _assemble(objects, archive, (packages[each.name] for each in order), needed, hear, configure=True)


def _assemble(
    objects: Objects,
    archive: Archive,
    fetched: Iterable[tuple[Package, bytes]],
    needed: set[str],
    hear: Callable[[bytes], object],
    *,
    configure: bool,
) -> System:
    assembly = Assembly(objects)
    packages: list[Package] = []
    later: list[Package] = []
    for package, data in fetched:
        packages.append(package)
        if configure and package.name not in needed and assembly.must_prepare(package, data):
            later.append(package)
            continue
        hear(f"unpacking {package.name} {package.version}\n".encode())
        assembly.add(package, data)
    assembly.write("etc/apt/sources.list.d/debian.sources", sources(archive).encode())
    assembly.write("etc/apt/apt.conf.d/90belljar", _APT_SETTINGS)
    if later:
        assembly.make_directory(PACKAGES.lstrip("/"))
    tree = assembly.finish()
    env = {"PATH": DEFAULT_PATH, "LANG": "C.UTF-8"}
    record = make_image(tree, assembly.tree.size, env=env, cwd="/", user="root")
    return System(record, [package for package in packages if package.name in needed], _in_order(later))


def _in_order(packages: list[Package]) -> list[Package]:
    """What others need before they are unpacked comes before them."""
    found: dict[str, Package] = {}
    named = {package.name: package for package in packages}

    def visit(package: Package, above: frozenset[str]) -> None:
        for group in package.relations("pre-depends", "depends"):
            for relation in group:
                other = named.get(relation.name)
                if other is not None and other.name not in found and other.name not in above:
                    visit(other, above | {other.name})
        found[package.name] = package

    for package in packages:
        if package.name not in found:
            visit(package, frozenset({package.name}))
    return list(found.values())
