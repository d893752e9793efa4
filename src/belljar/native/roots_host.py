"""Roots of native sandboxes on this machine's disk: files of images are unpacked once per digest, into a cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from belljar.abi.errors import ImageError
from belljar.abi.paths import fsdecode
from belljar.image.oci import warn_skipped
from belljar.image.record import ImageRecord, environment_of, make_image
from belljar.image.tree import FileTree
from belljar.native.root_cache_host import RootCache, default_cache
from belljar.native.roots import ID_COUNT, Root, RootSource
from belljar.native.unpack_host import DirectoryContents, StoredContents, scan_directory, store_directory, unpack
from belljar.store.errors import StoreError
from belljar.store.memory_host import MemoryStore
from belljar.store.objects import digest_of
from belljar.store.snapshot import Tree, encode_snapshot, ref_of
from belljar.store.store import Objects
from belljar.store.tree import encode_directory

_VERSION: Final = 1
"""Of what unpacking makes of a tree: a root that an older one made is not used."""
_EMPTY: Final = encode_directory([])


def prepare_root(source: RootSource, base: int | None, cache: RootCache | None = None) -> Root:
    """Have a root on the disk, in use until it is released. ImageError.

    `base` is the first of the host's ids that the sandbox's ids are mapped to, if this process is privileged: files
    are owned by the ids of the image, shifted into that range, so that a sandbox sees the owners the image says, and
    no file in the cache is the host's root's. Without one everything is owned by this process's user, the sandbox's
    root.
    """
    place = cache or default_cache()
    lowers, skipped = list[str](), list[str]()
    with ExitStack() as held:

        def use(key: str, size: int, make: Callable[[int], list[str]]) -> None:
            lease = place.use(key, size, make)
            held.callback(lease.release)
            lowers.append(lease.path)
            skipped.extend(lease.skipped)

        tree = source.record.trees[0]
        if not source.directory or tree.digest != digest_of(_EMPTY):
            use(_key("tree", _name(tree), base), source.record.size, lambda root: _unpack(source, tree, root, base))
        if source.directory:
            if base is None:
                lowers.append(source.directory)
            else:
                _use_directory(source.directory, base, use)
        release = held.pop_all().close
    return Root(
        lowers=lowers,
        binds=list(source.binds),
        digest=source.digest or ref_of(digest_of(encode_snapshot(source.record, "image"))),
        env=environment_of(source.record),
        cwd=fsdecode(source.record.cwd),
        user=source.record.user,
        skipped=skipped,
        release=release,
    )


def directory_source(path: str) -> RootSource:
    """The root that is a directory of this machine. ImageError."""
    place = _check_directory(path)
    objects = Objects(MemoryStore())
    (digest,) = objects.write([_EMPTY])
    record = make_image(Tree(b"/", "root", digest), 0, env={}, cwd="/", user="root")
    found = os.stat(place)
    named = hashlib.sha256(b"%s\0%d %d" % (os.fsencode(place), found.st_dev, found.st_ino)).hexdigest()
    return RootSource(objects, record, place, (), f"directory:{named}")


def read_directory(path: str, objects: Objects) -> ImageRecord:
    """Store a directory of this machine as an image. ImageError."""
    try:
        tree, skipped = store_directory(_check_directory(path), objects)
    except OSError as error:
        raise ImageError(f"{path} can't be read: {error}") from error
    stored, directories = tree.save()
    objects.write(directories)
    warn_skipped(skipped)
    return make_image(stored, tree.size, env={}, cwd="/", user="root")


def _check_directory(path: str) -> str:
    place = os.path.realpath(os.path.expanduser(path))
    if not os.path.isdir(place):
        raise ImageError(f"{path} is no directory of this machine")
    if place == "/":
        raise ImageError("/ is this machine's own root: use Image.host() for its programs")
    return place


def _unpack(source: RootSource, tree: Tree, root: int, base: int | None) -> list[str]:
    try:
        unpack(FileTree.load(source.objects, tree), StoredContents(source.objects), root, base)
    except StoreError as error:
        raise ImageError(f"the image could not be unpacked: {error}") from error
    return []


def _use_directory(path: str, base: int, use: Callable[[str, int, Callable[[int], list[str]]], None]) -> None:
    """Copy a directory of the host into the cache, with its owners shifted: to the sandbox, files of owners that are
    not mapped are nobody's, and can't even be replaced. It is copied again when anything in it was changed.
    """
    try:
        source = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}") from None
    try:
        tree, skipped = scan_directory(source)
        digest = hashlib.sha256(os.fsencode(path))
        for way, node in tree.walk():
            digest.update(b"\0%s %d %d" % (way, node.mtime_ns, node.size))
            if base <= node.uid < base + ID_COUNT:  # shifted already
                node.uid -= base
            if base <= node.gid < base + ID_COUNT:
                node.gid -= base
            digest.update(b" %o %d %d %s" % (node.mode, node.uid, node.gid, node.target))

        def make(root: int) -> list[str]:
            unpack(tree, DirectoryContents(source), root, base)
            return skipped

        use(_key("directory", digest.hexdigest(), base), tree.size, make)
    except OSError as error:
        raise ImageError(f"{path} can't be read: {error}") from error
    finally:
        os.close(source)


def _name(tree: Tree) -> str:
    return f"{tree.digest.hex()} {tree.mode:o} {tree.uid} {tree.gid} {tree.mtime_ns}"


def _key(kind: str, name: str, base: int | None) -> str:
    return hashlib.sha256(f"{_VERSION} {kind} {base} {name}".encode()).hexdigest()
