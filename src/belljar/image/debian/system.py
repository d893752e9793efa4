"""A Debian system as an image: lists fetched, packages chosen, fetched and unpacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from belljar.abi.base import DEFAULT_PATH
from belljar.image.debian.assemble import Assembly, unpack_order
from belljar.image.debian.control import Package
from belljar.image.debian.fetch_host import Archive, fetch_index, fetch_packages, sources
from belljar.image.debian.resolve import resolve
from belljar.image.record import ImageRecord, make_image
from belljar.store.store import Objects

_APT_SETTINGS: Final = b"""// A sandbox may have one user id only: apt can't change to the account _apt.
APT::Sandbox::User "root";
"""


def make_system(
    objects: Objects,
    archive: Archive,
    architecture: str,
    names: Sequence[str],
    hear: Callable[[bytes], object],
) -> tuple[ImageRecord, list[Package]]:
    """Store the files of a system with these packages, which are not configured; its record, and all packages.

    The same packages give the same record. ImageError, StoreError.
    """
    index = fetch_index(archive, architecture)
    packages = unpack_order(resolve(index, names))
    size = sum(package.size for package in packages)
    hear(b"%d packages, %d kB to fetch\n" % (len(packages), size // 1000))
    assembly = Assembly(objects)
    for package, data in fetch_packages(packages):
        hear(f"unpacking {package.name} {package.version}\n".encode())
        assembly.add(package, data)
    assembly.write("etc/apt/sources.list.d/debian.sources", sources(archive).encode())
    assembly.write("etc/apt/apt.conf.d/90belljar", _APT_SETTINGS)
    tree = assembly.finish()
    env = {"PATH": DEFAULT_PATH, "LANG": "C.UTF-8"}
    return make_image(tree, assembly.tree.size, env=env, cwd="/", user="root"), packages
