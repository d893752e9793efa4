"""The files of a tar archive as a library, read where they lie in the mapped archive."""

from __future__ import annotations

from typing import Final, Protocol

from belljar.engines.wasi.descriptors import LibraryFile

_BLOCK: Final = 512
_NAME, _SIZE, _KIND, _PREFIX = slice(0, 100), slice(124, 136), slice(156, 157), slice(345, 500)
_FILES: Final = (b"0", b"\0")


class Mapped(Protocol):
    """Bytes in memory, such as those of a mapped file."""

    def __getitem__(self, part: slice, /) -> bytes: ...


class Stored:
    """A file in the archive."""

    __slots__ = ("_archive", "_start", "size")

    def __init__(self, archive: Mapped, start: int, size: int) -> None:
        self._archive = archive
        self._start = start
        self.size = size

    def read(self, offset: int, size: int) -> bytes:
        end = self._start + min(self.size, offset + size)
        return self._archive[self._start + offset : end] if offset < self.size else b""


def tar_library(archive: Mapped, root: bytes) -> dict[bytes, LibraryFile | list[bytes]]:
    """The files and directories of an archive below `root`. ustar; links and other kinds are passed over."""
    found: dict[bytes, LibraryFile | list[bytes]] = {root: []}
    at = 0
    while (header := archive[at : at + _BLOCK]).strip(b"\0"):
        name = header[_NAME].rstrip(b"\0")
        if header[_PREFIX].rstrip(b"\0") and header[257:262] == b"ustar":
            name = header[_PREFIX].rstrip(b"\0") + b"/" + name
        size = int(header[_SIZE].strip(b"\0 ") or b"0", 8)
        path = root + b"/" + name.removeprefix(b"./").strip(b"/")
        if header[_KIND] in _FILES and path != root:
            _enter(found, path, Stored(archive, at + _BLOCK, size))
        at += _BLOCK + -(-size // _BLOCK) * _BLOCK
    return found


def _enter(found: dict[bytes, LibraryFile | list[bytes]], path: bytes, entry: LibraryFile | list[bytes]) -> None:
    """Put an entry at its path, and its name into the directory above, which is made if it is missing."""
    above, _, name = path.rpartition(b"/")
    if above not in found:
        _enter(found, above, [])
    siblings = found[above]
    assert isinstance(siblings, list)
    siblings.append(name)
    found[path] = entry
