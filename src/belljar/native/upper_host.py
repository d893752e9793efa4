"""The files of a running native sandbox, read from outside: its writable layer, laid over the tree of its image.

The layer is an overlay's: a character device 0/0 is a name that was deleted, and a directory with the attribute OPAQUE
hides the one below. Guests may change it while it is read: every call names one component below an open directory and
follows no link, so that only this layer can be named.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from belljar.abi.errors import ImageError
from belljar.abi.flags import PATH_MAX
from belljar.abi.limits import MIB
from belljar.image.tree import FileTree, Node, check_count, show
from belljar.native.plan import Ids
from belljar.native.roots import ID_COUNT, NOBODY
from belljar.native.unpack_host import Way, node_of, open_below, open_way
from belljar.store.store import Objects
from belljar.store.tree import Kind

OPAQUE: Final = "user.overlay.opaque"
_EMPTY: Final = frozenset({(b"dev",), (b"proc",), (b"sys",), (b"run", b"belljar")})
"""Directories whose contents are made anew in every sandbox."""
_DEPTH_MAX: Final = PATH_MAX // 2
_STOP_SECONDS: Final = 1.0
_ORDER_SECONDS: Final = 0.5
_PAUSE: Final = 0.001


def read_upper(upper: int, tree: FileTree, objects: Objects, ids: Ids, own: tuple[int, int]) -> list[bytes]:
    """Lay an open upper directory over a tree and store its files; gives what could not be kept, as text for people.

    `own`: the uid and gid that everything has where the sandbox has no others. ImageError, OSError, StoreError.
    """
    files: list[tuple[Way, bytes, Node]] = []
    lost: list[bytes] = []
    links: dict[tuple[int, int], Node] = {}
    waiting: list[tuple[Way, Node]] = [((), tree.root)]
    count = 0
    while waiting:
        way, node = waiting.pop()
        if len(way) > _DEPTH_MAX:
            raise ImageError(f"{show(b'/'.join(way[:20]))}: directories are nested too deep")
        directory = open_way(upper, way)
        try:
            for text in os.listdir(directory):
                name = os.fsencode(text)
                count += 1
                check_count(count)
                with suppress(FileNotFoundError):  # it was removed meanwhile
                    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                    if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
                        node.names.pop(name, None)
                        continue
                    first = links.get((found.st_dev, found.st_ino))
                    child = first or _owned(node_of(found), ids, own)
                    if child.mode < 0:
                        lost.append(b"a socket: /" + b"/".join((*way, name)))
                        continue
                    if child.kind is Kind.SYMLINK:
                        child.target = os.readlink(name, dir_fd=directory)
                    elif child.is_directory:
                        below = node.names.get(name)
                        if below is not None and below.is_directory and not _is_opaque(directory, name):
                            child.names = below.names
                        if (*way, name) not in _EMPTY:
                            waiting.append(((*way, name), child))
                    elif child.kind is Kind.FILE and first is None:
                        files.append((way, name, child))
                    if found.st_nlink > 1 and not child.is_directory:
                        links[found.st_dev, found.st_ino] = child
                    node.names[name] = child
        finally:
            os.close(directory)
    objects.write(_pieces(upper, files, lost))
    return lost


def _owned(node: Node, ids: Ids, own: tuple[int, int]) -> Node:
    """With the ids that the sandbox sees."""
    if ids.base is None:
        node.uid, node.gid = own
    else:
        node.uid, node.gid = (
            number - ids.base if 0 <= number - ids.base < ID_COUNT else NOBODY for number in (node.uid, node.gid)
        )
    return node


def _is_opaque(directory: int, name: bytes) -> bool:
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        return os.getxattr(fd, OPAQUE) == b"y"
    except OSError:
        return False
    finally:
        os.close(fd)


def _pieces(upper: int, files: list[tuple[Way, bytes, Node]], lost: list[bytes]) -> Iterator[bytes]:
    for way, name, node in files:
        try:
            with open_below(upper, way, name) as file:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    yield from node.fill(iter(partial(file.read, MIB), b""))
                    continue
        except OSError as error:
            lost.append(
                b"a file that can't be read (%s): /" % (error.strerror or "").encode() + b"/".join((*way, name))
            )
        node.size, node.parts = 0, []


@contextmanager
def stopped(list_pids: Callable[[], list[int]]) -> Iterator[None]:
    """Stop processes while their files are read. They are listed again and again: they may fork meanwhile.

    A process is stopped when its parent stands still and continued before it, so that no shell that waits for its
    programs sees one stopped, as if by ^Z; for those whose parents take too long, this is given up.
    """
    if sys.platform != "linux":
        raise NotImplementedError
    ours: dict[int, int] = {}
    began = time.monotonic()
    try:
        while (taken := time.monotonic() - began) < _STOP_SECONDS:
            parents = _running(list_pids())
            if not parents:
                break
            found: dict[int, int] = {}
            for pid, parent in parents.items():
                if pid not in ours and (parent not in parents or taken > _ORDER_SECONDS):
                    with suppress(OSError):
                        found[pid] = os.pidfd_open(pid)
            meant = list_pids()  # whoever is in both lists is the one that is held; a pid may have become another's
            for pid, pidfd in found.items():
                if pid in meant:
                    ours[pid] = pidfd
                    _send(pidfd, signal.SIGSTOP)
                else:
                    os.close(pidfd)
            time.sleep(_PAUSE)
        yield
    finally:
        for pidfd in reversed(ours.values()):
            _send(pidfd, signal.SIGCONT)
            os.close(pidfd)


def _send(pidfd: int, number: signal.Signals) -> None:
    if sys.platform == "linux":
        with suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(pidfd, number)


def _running(pids: list[int]) -> dict[int, int]:
    """Those that are neither stopped nor ended, with their parents."""
    found: dict[int, int] = {}
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
            state, parent = file.read().rpartition(b") ")[2].split()[:2]
            if state not in (b"T", b"t", b"Z", b"X"):
                found[pid] = int(parent)
    return found
