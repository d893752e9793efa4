"""Disk images in the cache: each made once of a tree, read-only from then on, with what the owner must know of it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from belljar.abi.cache_host import draft_directory
from belljar.abi.errors import ImageError
from belljar.image.tree import FileTree, Node, split_path
from belljar.native.accounts import choose_account
from belljar.native.trust import ANCHORS, BUNDLES, HASHED
from belljar.store.objects import content_of
from belljar.store.store import Objects
from belljar.store.tree import Kind
from belljar.vm.ext4_host import digest_of_file, make_ext4
from belljar.vm.parts_host import Parts, directory, trim_directory

_VERSION: Final = 2
_KEPT: Final = 8
"""Disks of images in the cache: those used least recently are removed."""
USER: Final = "agent"
"""The account that every disk has."""
_DIRECTORIES: Final = {
    "dev": 0o755, "proc": 0o755, "sys": 0o755, "run": 0o755, "tmp": 0o1777, "root": 0o700, "home": 0o755,
    "mnt": 0o755, "etc": 0o755, "var": 0o755, "usr": 0o755, "workspace": 0o755,
}  # fmt: skip
_OWN: Final = ("etc/hostname", "etc/hosts", "etc/resolv.conf")
"""Files that every sandbox has of its own: they lie over these."""
_KNOWN: Final = (*BUNDLES, *ANCHORS, HASHED, "/etc/passwd", "/etc/group")
_FILE_MAX: Final = 4 << 20


class Disk(Struct, frozen=True):
    """A base image: a file with an ext4 file system."""

    path: str
    size: int
    digest: str
    """Identifies it exactly."""
    files: dict[str, tuple[str, bytes]]
    """Of what the owner must know (accounts, trusted authorities): the path without links, and the contents."""
    env: dict[str, str]
    cwd: str
    user: str


def find_disk(key: str) -> Disk | None:
    """The disk of a key, if it was made."""
    place = os.path.join(directory("disks"), disk_name(key))
    try:
        with open(os.path.join(place, "disk.msgpack"), "rb") as file:
            disk = msgspec.msgpack.decode(file.read(), type=Disk)
        os.utime(place)
    except (OSError, msgspec.MsgspecError):
        return None
    return msgspec.structs.replace(disk, path=os.path.join(place, "image"))


def make_disk(
    parts: Parts,
    key: str,
    find: Callable[[], tuple[Objects, FileTree]],
    *,
    env: dict[str, str],
    cwd: str,
    user: str,
    spared: Sequence[str] = (),
) -> Disk:
    """The disk of a key, made of the tree that `find` gives if there is none yet. For it others may be removed, those
    of the `spared` keys never. ImageError."""
    found = find_disk(key)
    if found is not None:
        return found
    disks = directory("disks")
    place = os.path.join(disks, disk_name(key))
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (found := find_disk(key)) is not None:
            return found
        objects, tree = find()
        work = tempfile.mkdtemp(prefix="work-", dir=draft_directory(disks))
        try:
            _complete(objects, tree)
            image = os.path.join(work, "image")
            make_ext4(parts, objects, tree, image)
            os.chmod(image, 0o444)
            known = {path: read for path in _KNOWN if (read := _read(objects, tree, path)) is not None}
            disk = Disk("", os.path.getsize(image), digest_of_file(image), known, env, cwd, user)
            with open(os.path.join(work, "disk.msgpack"), "wb") as file:
                file.write(msgspec.msgpack.encode(disk))
            shutil.rmtree(place, ignore_errors=True)
            os.rename(work, place)
        except OSError as error:
            raise ImageError(f"the disk could not be made: {error}") from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
        trim_disks(disks, [key, *spared])
    made = find_disk(key)
    assert made is not None
    return made


def disk_name(key: str) -> str:
    """The name of the directory that a disk is kept in."""
    return hashlib.sha256(f"{_VERSION} {key}".encode()).hexdigest()[:24]


def trim_disks(disks: str, spared: Sequence[str]) -> None:
    """Remove the disks that were used least recently, but for those of these keys."""
    trim_directory(disks, _KEPT, {disk_name(key) for key in spared})


def _complete(objects: Objects, tree: FileTree) -> None:
    """Add what a machine needs to have a sandbox on this disk: places to mount on, and the account of commands."""
    like = Node(Kind.DIRECTORY, 0o755)
    for name, mode in _DIRECTORIES.items():
        tree.way(split_path(name.encode()), make=Node(Kind.DIRECTORY, mode))
    texts = [_text(objects, tree, f"/etc/{name}") for name in ("passwd", "group")]
    account, passwd, group = choose_account(USER, *texts)
    for path, data in (("etc/passwd", passwd.encode()), ("etc/group", group.encode())):
        _put(objects, tree, path, data, like)
    for path in _OWN:
        node = tree.find(split_path(path.encode()))
        if node is None or node.kind is not Kind.FILE:
            _put(objects, tree, path, b"", like)
    for path in (f"home/{USER}", "workspace"):
        tree.way(split_path(path.encode()), make=like)
        home = tree.directory(split_path(path.encode()))
        if home is not None:
            home.uid, home.gid = account.uid, account.gid


def _put(objects: Objects, tree: FileTree, path: str, data: bytes, like: Node) -> None:
    node = Node(Kind.FILE, 0o644)
    objects.write(list(node.fill([data])))
    tree.put(split_path(path.encode()), node, like)


def _text(objects: Objects, tree: FileTree, path: str) -> str:
    found = _read(objects, tree, path)
    return "" if found is None else found[1].decode("utf-8", "replace")


def _read(objects: Objects, tree: FileTree, path: str) -> tuple[str, bytes] | None:
    parts = split_path(path.lstrip("/").encode())
    way, node = tree.way(parts[:-1]), tree.find(parts)
    if node is None or way is None:
        return None
    place = "/" + b"/".join(name for name, _ in way[1:]).decode("utf-8", "replace")
    name = path.rpartition("/")[2]
    if node.is_directory:
        return f"{place.rstrip('/')}/{name}", b""
    if node.kind is not Kind.FILE or node.size > _FILE_MAX:
        return None
    return f"{place.rstrip('/')}/{name}", content_of(objects.read(node.parts)) if node.parts else b""
