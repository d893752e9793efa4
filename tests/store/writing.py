"""Writes the tree of any file server into a store."""

from __future__ import annotations

from collections import Counter

from belljar.abi.flags import O_RDONLY, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG
from belljar.abi.paths import fsencode
from belljar.kernel.vfs.server import FileServer, Node
from belljar.store.objects import PIECE, PIECE_BYTES
from belljar.store.snapshot import Tree
from belljar.store.store import Objects
from belljar.store.tree import Entry, Kind, encode_directory

_KINDS = {S_IFREG: Kind.FILE, S_IFDIR: Kind.DIRECTORY, S_IFLNK: Kind.SYMLINK, S_IFIFO: Kind.FIFO}


def store_tree(objects: Objects, server: FileServer, path: bytes = b"/") -> Tree:
    groups: Counter[int] = Counter()
    digest = _store_directory(objects, server, server.root, groups)
    stat = server.stat(server.root)
    return Tree(
        path,
        "root" if path == b"/" else "memory",
        digest,
        stat.mode & 0o7777,
        stat.uid,
        stat.gid,
        stat.mtime,
        sorted(groups.items()),
    )


def _store_directory(objects: Objects, server: FileServer, directory: Node, groups: Counter[int]) -> bytes:
    found: list[Entry] = []
    for dirent in server.readdir(directory):
        node = server.walk(directory, dirent.name)
        stat = server.stat(node)
        parts: list[bytes] = []
        group = size = 0
        target = b""
        if stat.is_dir:
            parts = [_store_directory(objects, server, node, groups)]
        elif stat.is_symlink:
            target = fsencode(server.readlink(node))
        elif stat.is_regular:
            handle, size = server.open(node, O_RDONLY), stat.size
            for start in range(0, size, PIECE_BYTES):
                data = b""
                while len(data) < min(PIECE_BYTES, size - start):
                    data += handle.read(start + len(data), PIECE_BYTES - len(data))
                parts += objects.write([PIECE + data]) if data.strip(b"\0") else [b""]
            handle.close()
        if stat.nlink > 1 and not stat.is_dir:
            group = stat.ino
            groups[group] += 1
        found.append(
            Entry(
                fsencode(dirent.name),
                _KINDS[stat.kind],
                stat.mode & 0o7777,
                stat.uid,
                stat.gid,
                stat.mtime,
                size,
                group,
                target,
                parts,
            )
        )
    return objects.write([encode_directory(found)])[0]
