"""The commands that packages bring: links in node_modules/.bin, or in the global bin directory."""

from __future__ import annotations

import posixpath
from contextlib import suppress
from typing import Final

from belljar.abi.errors import SysError
from belljar.bin._kit.realpath import relative_to
from belljar.bin.npm.packagejson import bins, read_json
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.tarball import make_directories
from belljar.bin.npm.tree import Node
from belljar.kernel.process import Process

GLOBAL_BIN: Final = "bin"


def bin_directory(node: Node) -> str:
    """Return where the links to a package's commands are."""
    parent = node.parent
    if parent is None:
        return f"{node.folder}/node_modules/.bin"
    if parent.lonely:
        return f"{posixpath.dirname(parent.folder)}/{GLOBAL_BIN}"
    return f"{parent.real_folder}/node_modules/.bin"


def link_bins(process: Process, node: Node, *, force: bool) -> None:
    """Make a package's commands executable, and the links to them. EEXIST for a global one that is another's."""
    package = read_json(process, f"{node.real_folder}/package.json") or node.package
    directory = bin_directory(node)
    for command, path in bins(package, node.name).items():
        target = f"{node.folder}/{path}"
        if (stat := process.fs.try_stat(target)) is None:
            continue
        if stat.mode & 0o111 != 0o111:
            with suppress(SysError):
                process.fs.chmod(target, (stat.mode & 0o7777) | 0o111)
        _unix_line(process, target)
        make_directories(process, directory)
        link = f"{directory}/{command}"
        wanted = relative_to(target, directory)
        have = _readlink(process, link)
        if have == wanted:
            continue
        if node.parent is not None and node.parent.lonely and not force and _is_foreign(process, link, node):
            raise NpmError(
                "EEXIST",
                f"path {link}",
                f"EEXIST: file already exists, {link}",
                f"File exists: {link}",
                "Remove the existing file and try again, or run npm",
                "with --force to overwrite files recklessly.",
            )
        with suppress(SysError):
            process.fs.unlink(link)
        process.fs.symlink(wanted, link)


def unlink_bins(process: Process, node: Node) -> None:
    """Remove the links that lead into a package."""
    directory = bin_directory(node)
    for command in bins(read_json_quietly(process, f"{node.folder}/package.json") or node.package, node.name):
        link = f"{directory}/{command}"
        have = _readlink(process, link)
        if have is not None and _inside(posixpath.normpath(posixpath.join(directory, have)), node.folder):
            with suppress(SysError):
                process.fs.unlink(link)


def read_json_quietly(process: Process, path: str) -> dict[str, object] | None:
    try:
        return read_json(process, path)
    except NpmError:
        return None


def _readlink(process: Process, path: str) -> str | None:
    try:
        return process.fs.readlink(path)
    except SysError:
        return None


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder + "/")


def _is_foreign(process: Process, link: str, node: Node) -> bool:
    """Whether something is there that no version of this package put there."""
    if not process.fs.exists(link, follow=False):
        return False
    have = _readlink(process, link)
    assert node.parent is not None
    return have is None or not _inside(
        posixpath.normpath(posixpath.join(posixpath.dirname(link), have)), node.parent.folder
    )


def _unix_line(process: Process, path: str) -> None:
    """A script from Windows has a carriage return in its first line, which would be part of the interpreter's name."""
    data = process.read_file(path) if process.fs.stat(path).size <= 1 << 20 else b""
    first, newline, rest = data.partition(b"\n")
    if first.startswith(b"#!") and first.endswith(b"\r") and newline:
        process.write_file(path, first[:-1] + newline + rest)
