"""`Image.host()`: this machine's programs, read-only, with the settings that programs read and nothing that is secret.

`/usr` and what belongs to it is bound. Of `/etc` a list of names is copied: files that all users of this machine may
read and that say nothing of who they are or which machine it is. Accounts and name services are written new. Nothing is
taken from `/home`, `/root`, `/var`, `/run`, `/srv`, `/opt` or `/mnt`.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from belljar.abi.base import AGENT_NAME, DEFAULT_PATH, HOME, WORKSPACE
from belljar.abi.errors import ImageError
from belljar.abi.limits import MIB
from belljar.image.record import make_image
from belljar.image.tree import FileTree, Node, split_path
from belljar.kernel.machine import REPLAY_NS
from belljar.native.roots import Bind, RootSource
from belljar.store.memory_host import MemoryStore
from belljar.store.store import Objects
from belljar.store.tree import Kind

_PROGRAMS: Final = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "nix/store", "gnu/store")
"""Bound where they are directories; symbolic links, as on systems with a merged /usr, are made anew."""
_ETC: Final = """
    ld.so.cache ld.so.conf ld.so.conf.d ld-musl-*.path alternatives
    ssl/certs ssl/cert.pem ssl/openssl.cnf pki/tls/certs pki/tls/cert.pem pki/tls/openssl.cnf pki/ca-trust/extracted
    ca-certificates.conf ca-certificates/extracted crypto-policies gnutls
    os-release *-release *_version localtime timezone locale.alias locale.conf default/locale
    services protocols rpc ethertypes netconfig gai.conf host.conf mime.types magic magic.mime
    shells inputrc terminfo fonts skel groff python3 python3.* perl java-*-openjdk ImageMagick-* texmf
""".split()
_NEVER: Final = frozenset("private shadow gshadow machine-id sudoers sudoers.d ssh hostname hosts".split())
"""Names that are left out wherever they are."""
_FILE_MAX: Final = 16 * MIB
_TOTAL_MAX: Final = 128 * MIB
_EMPTY: Final = {
    "dev": 0o755, "proc": 0o555, "sys": 0o555, "run": 0o755, "tmp": 0o1777, "root": 0o700, "mnt": 0o755, "opt": 0o755,
    "srv": 0o755, "home": 0o755, "var/cache": 0o755, "var/lib": 0o755, "var/log": 0o755, "var/tmp": 0o1777,
}  # fmt: skip
_ACCOUNTS: Final = {
    "passwd": (
        "root:x:0:0:root:/root:/bin/bash\n"
        f"{AGENT_NAME}:x:1000:1000:{AGENT_NAME}:{HOME}:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "group": f"root:x:0:\ntty:x:5:\nstaff:x:50:\n{AGENT_NAME}:x:1000:\nnogroup:x:65534:\n",
    "nsswitch.conf": (
        "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
        "networks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n"
    ),
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
}
_PACKAGES: Final = (
    "/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite", "/usr/lib/sysimage/rpm/rpmdb.sqlite", "/lib/apk/db/installed",
    "/var/lib/pacman/local", "/etc/os-release",
)  # fmt: skip
"""Changed when the machine's programs are, as far as its package manager knows."""
_FORBIDDEN: Final = frozenset({"/", "/proc", "/sys", "/dev", "/etc", "/home", "/root", "/run", "/var", "/tmp"})


def host_source(also: Sequence[str] = ()) -> RootSource:
    """This machine's programs, and further directories of it. It is read once in the life of a process. ImageError."""
    return _host_source(tuple(also))


@cache
def _host_source(also: tuple[str, ...]) -> RootSource:
    files = _Skeleton()
    for path, mode in _EMPTY.items():
        files.directory(path, mode)
    for path in (HOME, WORKSPACE):
        files.directory(path.lstrip("/"), 0o755, 1000)
    for name in _PROGRAMS:
        path = "/" + name
        if os.path.islink(path):
            files.link(name, os.readlink(path))
        elif os.path.isdir(path):
            files.bind(path)
    for path in also:
        files.bind(_check_directory(path))
    try:
        for name in _etc_names():
            files.copy(f"etc/{name}")
    except OSError as error:
        raise ImageError(f"this machine's /etc can't be read: {error}") from error
    for name, text in _ACCOUNTS.items():
        files.write(f"etc/{name}", text.encode())
    files.link("etc/mtab", "/proc/self/mounts")
    return files.source()


def _etc_names() -> Iterator[str]:
    """The names of the list that this machine has, patterns expanded."""
    for pattern in _ETC:
        directory, _, last = pattern.rpartition("/")
        try:
            names = sorted(os.listdir(os.path.join("/etc", directory)))
        except OSError:
            continue
        yield from (os.path.join(directory, name) for name in names if fnmatch.fnmatchcase(name, last))


def _check_directory(path: str) -> str:
    place = os.path.realpath(os.path.expanduser(path))
    if not os.path.isdir(place):
        raise ImageError(f"{path} is no directory of this machine")
    if place in _FORBIDDEN:
        raise ImageError(f"{path} can't be shown to a sandbox as a whole: name the directory in it that is needed")
    return place


class _Skeleton:
    """The files around what is bound."""

    def __init__(self) -> None:
        self._objects = Objects(MemoryStore())
        self._tree = FileTree()
        self._tree.root.mtime_ns = REPLAY_NS
        self._binds: list[Bind] = []
        self._pieces: list[bytes] = []
        self._size = 0

    def directory(self, path: str, mode: int = 0o755, owner: int = 0) -> None:
        like = Node(Kind.DIRECTORY, 0o755, 0, 0, REPLAY_NS)
        way = self._tree.way(split_path(os.fsencode(path)), make=like)
        assert way is not None
        way[-1][1].mode, way[-1][1].uid, way[-1][1].gid = mode, owner, owner

    def link(self, path: str, target: str) -> None:
        self._put(path, Node(Kind.SYMLINK, 0o777, target=os.fsencode(target)))

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        node = Node(Kind.FILE, mode)
        self._pieces += node.fill([data])
        self._put(path, node)

    def bind(self, path: str) -> None:
        self.directory(path.lstrip("/"))
        self._binds.append(Bind(path, path))

    def copy(self, path: str) -> None:
        """Copy what all users may read, of one name of the host's root."""
        place = "/" + path
        found = os.lstat(place)
        if os.path.basename(path) in _NEVER or len(path) > 1000:
            return
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(place)
            if "/" in target and not self._is_bound(target) and self._is_bound(real := os.path.realpath(place)):
                target = real  # its way there may lead through what is not shown
            self.link(path, target)
        elif stat.S_ISDIR(found.st_mode) and found.st_mode & 0o005 == 0o005:
            self.directory(path)
            for name in sorted(os.listdir(place)):
                self.copy(f"{path}/{name}")
        elif stat.S_ISREG(found.st_mode) and found.st_mode & 0o004 and found.st_size <= _FILE_MAX:
            self._size += found.st_size
            if self._size > _TOTAL_MAX:
                raise ImageError(f"/etc of this machine has more than {_TOTAL_MAX >> 20} MB of settings for programs")
            fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(fd, "rb") as file:
                self.write(path, file.read(_FILE_MAX), 0o755 if found.st_mode & 0o001 else 0o644)

    def _is_bound(self, path: str) -> bool:
        return any(path.startswith(f"{bind.source}/") for bind in self._binds)

    def _put(self, path: str, node: Node) -> None:
        self._tree.put(split_path(os.fsencode(path)), node, Node(Kind.DIRECTORY, 0o755, 0, 0, REPLAY_NS))

    def source(self) -> RootSource:
        stored, directories = self._tree.save()
        self._objects.write([*self._pieces, *directories])
        env = {"PATH": DEFAULT_PATH, "LANG": "C.UTF-8"}
        record = make_image(stored, self._tree.size, env=env, cwd=WORKSPACE, user=AGENT_NAME)
        known = [stored.digest.hex(), *sorted(f"{bind.source}\0{bind.target}" for bind in self._binds)]
        stats = ((path, os.stat(path)) for path in _PACKAGES if os.path.exists(path))
        known += [f"{path} {found.st_mtime_ns} {found.st_size}" for path, found in stats]
        digest = hashlib.sha256("\n".join(known).encode("utf-8", "surrogateescape")).hexdigest()
        return RootSource(self._objects, record, "", tuple(self._binds), f"host:{digest}")
