"""Configuring a Debian system: the script that runs dpkg in a sandbox, and what it changed, taken back into a tree.

Packages whose `preinst` must run before they are unpacked are unpacked by dpkg itself; all others already are, and
their state says so. The system's own programs tell what was changed: they are the image's, and what they say is
checked as layers of an image are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from belljar.abi.errors import ImageError
from belljar.abi.paths import fsencode
from belljar.image.debian.control import Package
from belljar.image.layer import Meter, members
from belljar.image.tree import FileTree, Node, show, split_path
from belljar.kernel.machine import REPLAY_NS
from belljar.libc.tar_header import FIFO, HARD_LINK, SYMLINK, Member
from belljar.store.store import Objects
from belljar.store.tree import Kind

PACKAGES: Final = "/var/cache/apt/archives"
"""Where the sandbox finds the packages that dpkg unpacks."""
_ARCHIVES: Final = tuple(fsencode(PACKAGES[1:]).split(b"/"))
CHANGES: Final = "/run/belljar/changes.tar"
NAMES: Final = "/run/belljar/names"
ENVIRONMENT: Final = {
    "DEBIAN_FRONTEND": "noninteractive",
    "DEBCONF_NONINTERACTIVE_SEEN": "true",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "PERL_HASH_SEED": "0",
    "PYTHONHASHSEED": "0",
    "SOURCE_DATE_EPOCH": str(REPLAY_NS // 10**9),
}
_UNTOUCHED: Final = (b"dev", b"proc", b"run", b"sys", b"tmp", b"workspace")
"""Directories of a sandbox's own: what the image has in them stays."""
_SCRIPT: Final = r"""
set -eu
umask 022
cd /
mkdir -p /run/belljar
touch /run/belljar/start
sleep 0.1
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
dpkg="dpkg --force-unsafe-io --force-confold --force-confdef --log=/dev/null"
$dpkg --configure NEEDED
for file in LATER; do
    $dpkg --force-depends --unpack "ARCHIVES/$file"
done
$dpkg --configure --pending
rm -f /usr/sbin/policy-rc.d
rm -f /var/cache/ldconfig/aux-cache /var/cache/debconf/*-old /var/lib/dpkg/*-old /etc/passwd- /etc/group- /etc/shadow-
rm -f /etc/gshadow- /var/log/alternatives.log /var/log/dpkg.log /var/log/bootstrap.log
set -- -path ./dev -o -path ./proc -o -path ./run -o -path ./sys -o -path ./tmp -o -path ./workspace -o -path .ARCHIVES
set -- . -xdev \( "$@" \) -prune
find "$@" -o -print0 > /run/belljar/names
find "$@" -o -cnewer /run/belljar/start -print0 > /run/belljar/changed
tar --create --format=pax --numeric-owner --no-recursion --null --files-from=/run/belljar/changed \
    --file=/run/belljar/changes.tar 2> /run/belljar/warnings || { cat /run/belljar/warnings; exit 1; }
"""


def file_name(package: Package) -> str:
    """The name of a package's file for dpkg."""
    version = package.version.replace(":", "%3a")
    return f"{package.name}_{version}_{package.fields['architecture']}.deb"


def configure_script(needed: Sequence[Package], later: Sequence[Package]) -> str:
    """Configure the packages that every system has, then unpack those of `later`, then configure everything.

    Names and versions of packages were checked: none of them means anything to a shell.
    """
    words = {
        "NEEDED": " ".join(package.name for package in needed),
        "LATER": " ".join(map(file_name, later)),
        "ARCHIVES": PACKAGES,
    }
    script = _SCRIPT
    for name, text in words.items():
        script = script.replace(name, text)
    return script


def apply_changes(
    tree: FileTree,
    objects: Objects,
    archive: Iterable[bytes],
    names: bytes,
    started_ns: int,
    kept: Sequence[bytes] = (),
) -> None:
    """Change a tree as the system was changed: files from a tar archive, and only the names that there are.

    What was written after `started_ns` has the time of a build. Names of `kept` are left alone. ImageError, StoreError.
    """
    present = {tuple(split_path(name)) for name in names.split(b"\0") if name}
    if len(present) < 2:
        raise ImageError("the sandbox did not say which files there are")
    meter = Meter()

    def pieces() -> Iterable[bytes]:
        for member, chunks, _ in members(archive, meter):
            parts = split_path(fsencode(member.name))
            if parts and b"/".join(parts) not in kept:
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
    _remove_absent(tree.root, (), present)


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


def _remove_absent(directory: Node, way: tuple[bytes, ...], present: set[tuple[bytes, ...]]) -> None:
    waiting = [(directory, way)]
    while waiting:
        node, above = waiting.pop()
        for name in list(node.names):
            below = (*above, name)
            if below[0] in _UNTOUCHED or below == _ARCHIVES:
                continue
            if below not in present:
                del node.names[name]
            elif node.names[name].is_directory:
                waiting.append((node.names[name], below))
