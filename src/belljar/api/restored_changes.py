"""Changes of an overlay that a snapshot already had: those are below the sandbox's own, in the owner's process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from belljar.abi.errno import ENOENT, ENOTDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY, S_IFLNK, S_IFMT
from belljar.abi.paths import fsencode
from belljar.kernel.vfs.server import FileServer, Node
from belljar.store.layered import Layered, LayeredNode


class RestoredChanges:
    """A directory of a layered tree, and the owner's own at the same path. `guard` is held while they are at work."""

    def __init__(self, layered: Layered, guard: AbstractContextManager[object], top: Sequence[str]) -> None:
        self._layered = layered
        self._guard = guard
        self._top = top

    def modes(self, most: int) -> dict[str, tuple[int, int]]:
        """Paths below the directory where the two may differ, at most one more than `most`: the mode that is shown, and
        the owner's; 0 for none.
        """
        found: dict[str, tuple[int, int]] = {}
        with self._guard:
            for path, shown, own in self._differing():
                found[path] = 0 if shown is None else shown.mode, 0 if own is None else own.mode
                if len(found) > most:
                    break
        return found

    def read(self, path: str, offset: int, size: int) -> tuple[bytes, bool]:
        """Read from a file of the owner's, and tell whether that was its end; the whole target of a symlink."""
        server = self._layered.lower
        with self._guard:
            node: Node | None = server.root
            for name in [*self._top, *path.split("/")]:
                node = _find(server, node, name)
            if node is None:
                raise SysError(ENOENT)
            if node.mode & S_IFMT == S_IFLNK:
                return fsencode(server.readlink(node)), True
            handle = server.open(node, O_RDONLY)
            try:
                data = handle.read(offset, size)
                return data, not data
            finally:
                handle.close()

    def _differing(self) -> Iterator[tuple[str, LayeredNode | None, Node | None]]:
        shown: LayeredNode | None = self._layered.root
        own: Node | None = self._layered.lower.root
        for name in self._top:
            shown, own = self._step(shown, own, name)
        todo = [("", shown, own)]
        while todo:
            above, shown, own = todo.pop()
            for name in self._names(shown, own):
                path = f"{above}/{name}" if above else name
                new, old = self._step(shown, own, name)
                yield path, new, old
                if (new is not None and new.is_dir) or (old is not None and old.is_dir):
                    todo.append((path, new, old))

    def _names(self, shown: LayeredNode | None, own: Node | None) -> Iterable[str]:
        """Names to compare: all, unless the one directory shows the other but for what was changed."""
        if _merges(shown):
            assert shown is not None
            return () if shown.upper is None else self._layered.upper.entries(shown.upper)
        names: set[str] = set()
        for server, node in ((self._layered, shown), (self._layered.lower, own)):
            if node is not None and node.is_dir:
                names |= {entry.name for entry in server.readdir(node)}
        return names

    def _step(self, shown: LayeredNode | None, own: Node | None, name: str) -> tuple[LayeredNode | None, Node | None]:
        new = _find(self._layered, shown, name)
        assert new is None or isinstance(new, LayeredNode)
        return new, new.lower if new is not None and _merges(new) else _find(self._layered.lower, own, name)


def _merges(node: LayeredNode | None) -> bool:
    return node is not None and node.is_dir and node.lower is not None


def _find(server: FileServer, directory: Node | None, name: str) -> Node | None:
    if directory is None or not directory.is_dir:
        return None
    try:
        return server.walk(directory, name)
    except SysError as error:
        if error.errno in (ENOENT, ENOTDIR):
            return None
        raise
