"""Disks of machines: the built-in systems, which `belljar prepare microvm` makes, and those of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.abi.errors import ImageError
from belljar.abi.limits import GIB, Limits
from belljar.abi.paths import fsdecode
from belljar.api.build_native import install_pinned
from belljar.image.debian.fetch_host import Archive
from belljar.image.record import ImageRecord, environment_of
from belljar.image.tree import FileTree
from belljar.native.roots import RootSource
from belljar.store.memory_host import MemoryStore
from belljar.store.objects import digest_of
from belljar.store.snapshot import encode_snapshot, ref_of
from belljar.store.store import Objects
from belljar.vm.disks_host import Disk, find_disk, make_disk
from belljar.vm.parts_host import Parts, PartsUnavailable, fetch_kind
from belljar.vm.pins_host import base_names, key_of, kinds

DEFAULT: Final = "debian:12"
_SUITES: Final = {"debian:12": "bookworm"}
_LIMITS: Final = Limits(wall_seconds=3600, cpu_seconds=3600, file_bytes=4 * GIB, files=1_000_000, memory_bytes=2 * GIB)

Hear = Callable[[str], object]


def check_builtin(name: object) -> str:
    """ValueError for what is no built-in system."""
    if name not in kinds():
        raise ValueError(f"there is no built-in system {name!r}: choose from {', '.join(kinds())}")
    return str(name)


def builtin_disk(name: str) -> Disk:
    """The disk of a built-in system. PartsUnavailable if it is not prepared."""
    disk = find_disk(_key(name))
    if disk is None:
        raise PartsUnavailable(f"the system {name} is not prepared: run `belljar prepare microvm` first")
    return disk


def prepare_builtin(parts: Parts, name: str, hear: Hear, mirror: str = "") -> Disk:
    """Make the disk of a built-in system, if there is none; its own dpkg configures its packages. ImageError."""

    def find() -> tuple[Objects, FileTree]:
        objects = Objects(MemoryStore())
        hear(f"{name}: packages")
        fetched = fetch_kind(name, hear, mirror)
        archive, needed = Archive(_SUITES[name]), base_names(name)
        record = install_pinned(objects, archive, fetched, needed, _LIMITS, lambda _: hear(f"{name}: configuring"))
        hear(f"{name}: file system")
        return objects, FileTree.load(objects, record.trees[0])

    env = {"LANG": "C.UTF-8"}
    return make_disk(parts, _key(name), find, env=env, cwd="/workspace", user="agent")


def image_disk(parts: Parts, source: RootSource) -> Disk:
    """The disk of an image, made when first used. ImageError for one that has files of this machine's own."""
    if source.directory or source.binds:
        raise ImageError("this machine's own files can't be on a disk: build an image of them first (.build())")
    record = source.record
    key = f"image {ref_of(digest_of(encode_snapshot(record, 'image')))}"
    return make_disk(
        parts,
        key,
        lambda: _tree(source.objects, record),
        env=environment_of(record),
        cwd=fsdecode(record.cwd),
        user=record.user,
        spared=[_key(name) for name in kinds()],
    )


def _tree(objects: Objects, record: ImageRecord) -> tuple[Objects, FileTree]:
    return objects, FileTree.load(objects, record.trees[0])


def _key(name: str) -> str:
    return f"builtin {name} {key_of([name])}"
