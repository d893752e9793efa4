"""The file operators of `test` and `[[`: -e -f -nt -ef and their kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.abi.errors import SysError
from belljar.abi.flags import (
    R_OK,
    S_IFBLK,
    S_IFCHR,
    S_IFDIR,
    S_IFIFO,
    S_IFLNK,
    S_IFREG,
    S_IFSOCK,
    S_ISGID,
    S_ISUID,
    S_ISVTX,
    W_OK,
    X_OK,
)
from belljar.abi.records import Stat
from belljar.kernel.process import Process

_KINDS: Final = {
    "-b": S_IFBLK, "-c": S_IFCHR, "-d": S_IFDIR, "-f": S_IFREG, "-p": S_IFIFO, "-S": S_IFSOCK, "-h": S_IFLNK,
    "-L": S_IFLNK,
}  # fmt: skip
_ACCESS: Final = {"-r": R_OK, "-w": W_OK, "-x": X_OK}
_BITS: Final = {"-g": S_ISGID, "-k": S_ISVTX, "-u": S_ISUID}
FILE_OPERATORS: Final = frozenset([*_KINDS, *_ACCESS, *_BITS, "-a", "-e", "-s", "-N", "-O", "-G"])
FILE_COMPARISONS: Final = frozenset(["-nt", "-ot", "-ef"])


def stat_or_none(process: Process, path: str, *, follow: bool = True) -> Stat | None:
    """The file's metadata, a descriptor's for /dev/fd/N; None if it can't be had."""
    try:
        return process.fs.stat(path, follow=follow)
    except SysError:
        pass
    for start in ("/dev/fd/", "/dev/std"):
        if path.startswith(start):
            number = {"in": 0, "out": 1, "err": 2}.get(path[8:]) if start == "/dev/std" else _fd(path[8:])
            try:
                return None if number is None else process.fstat(number)
            except SysError:
                return None
    return None


def _fd(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else None


def test_file(process: Process, operator: str, path: str) -> bool:
    """One of FILE_OPERATORS applied to a path; false if there is no such file."""
    access = _ACCESS.get(operator)
    if access is not None:
        try:
            process.fs.access(path, access)
        except SysError:
            return False
        return True
    stat = stat_or_none(process, path, follow=operator not in ("-h", "-L"))
    if stat is None:
        return False
    kind = _KINDS.get(operator)
    if kind is not None:
        return stat.kind == kind
    bit = _BITS.get(operator)
    if bit is not None:
        return bool(stat.mode & bit)
    return _OTHERS[operator](process, stat)


_OTHERS: Final[dict[str, Callable[[Process, Stat], bool]]] = {
    "-a": lambda _process, _stat: True,
    "-e": lambda _process, _stat: True,
    "-s": lambda _process, stat: stat.size > 0,
    "-N": lambda _process, stat: stat.mtime > stat.atime,
    "-O": lambda process, stat: stat.uid == process.fs.credentials.uid,
    "-G": lambda process, stat: stat.gid == process.fs.credentials.gid,
}


def compare_files(process: Process, left: str, operator: str, right: str) -> bool:
    """left -nt right, left -ot right, left -ef right."""
    one, two = stat_or_none(process, left), stat_or_none(process, right)
    if operator == "-ef":
        return one is not None and two is not None and (one.dev, one.ino) == (two.dev, two.ino)
    if operator == "-ot":
        one, two = two, one
    return one is not None and (two is None or one.mtime > two.mtime)
