"""Makes ext4 file systems of trees, without root: mke2fs fills one from a directory, debugfs gives it owners."""

from __future__ import annotations

import hashlib
import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from belljar.abi.errors import ImageError
from belljar.abi.limits import MIB
from belljar.image.tree import FileTree
from belljar.native.unpack_host import StoredContents, unpack
from belljar.store.objects import Digest
from belljar.store.store import Objects
from belljar.vm.memory_host import copy_memory
from belljar.vm.parts_host import Parts, run_tool

BLOCK: Final = 4096
JOURNAL_MIB: Final = 16
_LEAST: Final = 1024 * MIB
_NANO: Final = 10**9
_EPOCH: Final = 1704067200


def disk_size(tree: FileTree) -> int:
    """Bytes of a disk for a tree: room for as much again, and a gigabyte at least."""
    wanted = 2 * tree.size + 256 * MIB
    return max(_LEAST, -(-wanted // (64 * MIB)) * 64 * MIB)


def make_ext4(parts: Parts, objects: Objects, tree: FileTree, path: str) -> None:
    """Write a disk image with a tree's files to a new file. The same tree gives the same bytes. ImageError."""
    size = disk_size(tree)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as scratch:
        files, made = Path(scratch, "files"), Path(scratch, "image")
        files.mkdir()
        root = os.open(files, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            unpack(tree, StoredContents(objects), root, None)
        finally:
            os.close(root)
        identity = str(uuid.UUID(bytes=hashlib.sha256(_name(tree)).digest()[:16]))
        made.touch()
        os.truncate(made, size)
        words = ["mke2fs", "-q", "-F", "-t", "ext4", "-b", str(BLOCK), "-m", "0", "-U", identity, "-L", "belljar"]
        words += ["-E", f"lazy_itable_init=0,lazy_journal_init=0,nodiscard,root_owner=0:0,hash_seed={identity}"]
        words += ["-J", f"size={JOURNAL_MIB}", "-d", str(files), str(made)]
        _run(parts, words)
        script = Path(scratch, "script")
        script.write_bytes(b"".join(_owners(tree)))
        _run(parts, ["debugfs", "-w", "-f", str(script), str(made)])
        checked = run_tool(parts, ["e2fsck", "-f", "-n", str(made)], env=_ENVIRONMENT)
        if checked.returncode:
            raise ImageError(f"the file system is not right: {_said(checked.stdout)}")
        with made.open("rb") as source, open(path, "xb") as target:
            copy_memory(source.fileno(), target.fileno())


_ENVIRONMENT: Final = {"E2FSPROGS_FAKE_TIME": str(_EPOCH), "MKE2FS_CONFIG": os.devnull, "TZ": "UTC"}


def _run(parts: Parts, words: list[str]) -> None:
    done = run_tool(parts, words, env=_ENVIRONMENT)
    errors = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if not line.startswith("debugfs 1.")]
    if done.returncode or errors:
        raise ImageError(f"the file system could not be made: {words[0]}: {_said(chr(10).join(errors).encode())}")


def _said(data: bytes) -> str:
    return " / ".join(data.decode("utf-8", "replace").strip().splitlines()[-3:])[:500]


def _owners(tree: FileTree) -> Iterator[bytes]:
    """Commands that set what mke2fs took from the directory, which is our user's, and was made just now."""
    for way, node in tree.walk():
        if b"\n" in way:
            raise ImageError("names with a line feed can't be on a machine's disk")
        name = b'"/%s"' % way.replace(b'"', b'""')
        for field, value, before in ((b"uid", node.uid, os.geteuid()), (b"gid", node.gid, os.getegid())):
            if value != before:
                yield b"sif %s %s %d\n" % (name, field, value)
        for field in (b"atime", b"ctime"):
            yield b"sif %s %s @%d\n" % (name, field, max(0, node.mtime_ns // _NANO))


def _name(tree: FileTree) -> bytes:
    stored, _ = tree.save()
    digest: Digest = stored.digest
    return digest


def digest_of_file(path: str) -> str:
    """Identifies an image exactly."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(4 * MIB):
            digest.update(data)
    return f"sha256:{digest.hexdigest()}"
