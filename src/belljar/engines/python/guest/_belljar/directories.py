"""Directories for `os`: all entries in one call, each with its kind."""

import os
import types
import warnings
from stat import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG

from _belljar import hostcalls
from _belljar.files import OWN, absolute, is_fd, stat
from _belljar.native import native
from _belljar.protocol import AT_FDCWD


class DirEntry:
    """An entry of a directory, as os.scandir gives them."""

    __slots__ = ("_directory", "_inode", "_kind", "_lstat", "_stat", "name", "path")

    def __init__(self, name, path, inode, kind, directory):
        self.name, self.path, self._inode, self._kind, self._directory = name, path, inode, kind, directory
        self._stat = self._lstat = None

    def __reduce_ex__(self, protocol):
        raise TypeError("cannot pickle 'DirEntry' object")

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"

    def inode(self):
        return self._inode

    def is_symlink(self):
        return self._kind == S_IFLNK

    def is_junction(self):
        return False

    def is_dir(self, *, follow_symlinks=True):
        return self._is(S_IFDIR, follow_symlinks)

    def is_file(self, *, follow_symlinks=True):
        return self._is(S_IFREG, follow_symlinks)

    def _is(self, kind, follow):
        if self._kind != S_IFLNK or not follow:
            return self._kind == kind
        try:
            return S_IFMT(self.stat().st_mode) == kind
        except FileNotFoundError:
            return False

    def stat(self, *, follow_symlinks=True):
        if self._kind == S_IFLNK and follow_symlinks:
            if self._stat is None:
                self._stat = stat(self.path, dir_fd=self._directory)
            return self._stat
        if self._lstat is None:
            self._lstat = stat(self.path, dir_fd=self._directory, follow_symlinks=False)
        return self._lstat

    __class_getitem__ = classmethod(types.GenericAlias)


class ScandirIterator:
    """The entries of a directory, all known from the start."""

    def __init__(self, entries):
        self._entries = entries
        self._ended = False

    def __del__(self):
        if not self._ended:
            warnings.warn(f"unclosed scandir iterator {self!r}", ResourceWarning, stacklevel=1, source=self)

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return next(self._entries)
        except StopIteration:
            self._ended = True
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._entries = iter(())
        self._ended = True


def scandir(path="."):
    if path is None:
        path = "."
    if is_fd(path):
        (found,) = hostcalls.call("readdir", path, b"")
        prefix, text, directory = "", True, path
    else:
        given, directory = os.fspath(path), None
        text = isinstance(given, str)
        if text and given.startswith(OWN):
            return native.scandir(path)
        (found,) = hostcalls.call("readdir", AT_FDCWD, absolute(given), names=(path,))
        separator = "/" if text else b"/"
        prefix = given if given.endswith(separator) else given + separator
    return ScandirIterator(iter([_entry(prefix, text, directory, *entry) for entry in found]))


def _entry(prefix, text, directory, inode, kind, name):
    word = os.fsdecode(name) if text else name
    return DirEntry(word, prefix + word, inode, kind, directory)


def listdir(path="."):
    if path is not None and not isinstance(path, int) and os.fsdecode(path).startswith(OWN):
        return native.listdir(path)
    with scandir(path) as entries:
        return [entry.name for entry in entries]
