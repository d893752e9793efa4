"""The one name of a file that has no symlinks, dots or doubled slashes in it, also where parts are missing."""

from __future__ import annotations

from typing import Literal

from belljar.abi.errno import ELOOP, ENOENT, ENOTDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import SYMLINK_MAX
from belljar.kernel.process import Process

Missing = Literal["none", "last", "any"]
"""Components that may be missing."""


def real_path(process: Process, path: str, missing: Missing = "none", *, links: bool = True) -> str:
    """ENOENT, ENOTDIR, ELOOP, EACCES. Without `links`, symlinks are components like others."""
    fs = process.fs
    if not path:
        raise SysError(ENOENT, path)
    current = "" if path.startswith("/") else fs.getcwd().rstrip("/")
    parts = path.split("/")[::-1]
    followed = 0
    while parts:
        part = parts.pop()
        if part in ("", "."):
            if not part and parts == [] and missing != "any" and current:
                _check_directory(process, current, missing)
            continue
        process.budget.charge()
        if part == "..":
            if missing != "any":
                _check_directory(process, current or "/", missing)
            current = current.rpartition("/")[0]
            continue
        current = f"{current}/{part}"
        try:
            stat = fs.stat(current, follow=False)
        except SysError as error:
            if missing == "any" or (missing == "last" and error.errno == ENOENT and not any(parts)):
                continue
            raise
        if links and stat.is_symlink:
            followed += 1
            if followed > SYMLINK_MAX:
                if missing == "any":
                    continue
                raise SysError(ELOOP, path)
            target = fs.readlink(current)
            parts += target.split("/")[::-1]
            current = "" if target.startswith("/") else current.rpartition("/")[0]
    return current or "/"


def _check_directory(process: Process, path: str, missing: Missing) -> None:
    try:
        stat = process.fs.stat(path)
    except SysError as error:
        if missing == "last" and error.errno == ENOENT:
            return
        raise
    if not stat.is_dir:
        raise SysError(ENOTDIR, path)


def relative_to(path: str, base: str) -> str:
    """Return how one real path is written from another, which is a directory."""
    here, there = [p for p in base.split("/") if p], [p for p in path.split("/") if p]
    same = 0
    while same < min(len(here), len(there)) and here[same] == there[same]:
        same += 1
    return "/".join([".."] * (len(here) - same) + there[same:]) or "."


def is_inside(path: str, base: str) -> bool:
    """Whether a real path is at or below another."""
    return base == "/" or path == base or path.startswith(base + "/")
