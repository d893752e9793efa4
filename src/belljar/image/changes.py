"""What a command changed in a real system, told by that system's own `find` and `tar`, and taken into a tree.

They are the image's programs: what they say is checked as a layer of an image is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from belljar.abi.errors import ImageError
from belljar.abi.paths import fsencode
from belljar.image.layer import Meter, members
from belljar.image.tree import FileTree, Node, show, split_path
from belljar.kernel.machine import REPLAY_NS
from belljar.libc.tar_header import FIFO, HARD_LINK, SYMLINK, Member
from belljar.store.store import Objects
from belljar.store.tree import Kind

CHANGES: Final = "/run/belljar/changes.tar"
NAMES: Final = "/run/belljar/names"
BEGIN: Final = """
set -eu
mkdir -p /run/belljar
touch /run/belljar/start
stat -c %Y /run/belljar/start
sleep 0.1
"""
"""Run before: prints the time in seconds. What is changed has a later time than the file, by the kernel's clock, which
may be 10 ms late."""
_END: Final = r"""
set -eu
cd /
set -- PLACES
set -- . -xdev \( "$@" \) -prune
find "$@" -o -print0 > /run/belljar/names
find "$@" -o -cnewer /run/belljar/start -print0 > /run/belljar/changed
tar --create --format=pax --numeric-owner --no-recursion --null --files-from=/run/belljar/changed \
    --file=/run/belljar/changes.tar 2> /run/belljar/warnings || { cat /run/belljar/warnings; exit 1; }
"""
_OWN: Final = ("/dev", "/proc", "/run", "/sys", "/tmp")
"""Directories of a sandbox's own: what the image has in them stays."""
_OWN_FILES: Final = (b"etc/hostname", b"etc/hosts", b"etc/resolv.conf")
"""Files of a sandbox's own."""


def end_script(untouched: Sequence[str] = ()) -> str:
    """The script that is run after: it writes the names of all files, and an archive of those that were changed.

    Besides a sandbox's own directories, those of `untouched` are left out.
    """
    return _END.replace("PLACES", " -o ".join(f"-path .{path}" for path in (*_OWN, *untouched)))


def apply_changes(
    tree: FileTree,
    objects: Objects,
    archive: Iterable[bytes],
    names: bytes,
    started_ns: int,
    untouched: Sequence[str] = (),
) -> None:
    """Change a tree as the system was changed: files from a tar archive, and only the names that there are.

    What was written after `started_ns` has the time of a build. ImageError, StoreError.
    """
    present = {tuple(split_path(name)) for name in names.split(b"\0") if name}
    if len(present) < 2:
        raise ImageError("the sandbox did not say which files there are")
    meter = Meter()

    def pieces() -> Iterable[bytes]:
        for member, chunks, _ in members(archive, meter):
            parts = split_path(fsencode(member.name))
            if parts and b"/".join(parts) not in _OWN_FILES:
                way = tree.way(parts[:-1], absolute_links=False)
                if way is None:
                    raise ImageError(f"{show(fsencode(member.name))}: it is in no directory")
                before = way[-1][1].names.get(parts[-1])
                if member.is_regular:
                    node = Node(Kind.FILE)
                    yield from node.fill(chunks)
                else:
                    node = _node(tree, member, before)
                if member.kind != HARD_LINK:
                    time = REPLAY_NS if member.mtime >= started_ns else member.mtime
                    node.mode, node.uid, node.gid, node.mtime_ns = member.mode, member.uid, member.gid, time
                way[-1][1].names[parts[-1]] = node

    objects.write(pieces())
    kept = {tuple(split_path(fsencode(path.lstrip("/")))) for path in (*_OWN, *untouched)}
    _remove_absent(tree.root, present, kept)


def _node(tree: FileTree, member: Member, before: Node | None) -> Node:
    if member.is_dir:
        return before if before is not None and before.is_directory else Node(Kind.DIRECTORY)
    if member.kind == SYMLINK and member.link:
        return Node(Kind.SYMLINK, target=fsencode(member.link))
    if member.kind == FIFO:
        return Node(Kind.FIFO)
    found = tree.find(split_path(fsencode(member.link)), absolute_links=False) if member.kind == HARD_LINK else None
    if found is None or found.is_directory:
        raise ImageError(f"{show(fsencode(member.name))}: an image can't have such a file")
    return found


def _remove_absent(root: Node, present: set[tuple[bytes, ...]], kept: set[tuple[bytes, ...]]) -> None:
    waiting: list[tuple[Node, tuple[bytes, ...]]] = [(root, ())]
    while waiting:
        node, above = waiting.pop()
        for name in list(node.names):
            below = (*above, name)
            if below in kept:
                continue
            if below not in present:
                del node.names[name]
            elif node.names[name].is_directory:
                waiting.append((node.names[name], below))
