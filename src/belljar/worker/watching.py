"""The owner's watches on a sandbox's files, as operations of plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from belljar.abi.errors import BudgetExceeded
from belljar.abi.paths import fsdecode, fsencode, join, normalise
from belljar.abi.wire import Plain, WireError
from belljar.kernel.kernel import Kernel
from belljar.kernel.vfs.namespace import Namespace
from belljar.kernel.vfs.resolve import path_of
from belljar.kernel.vfs.watch import Watch, Watches

WATCHES_MAX: Final = 1000


class Watching:
    """Watches by number. The owner asks for the changes of one when it is ready for more of them."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._watches = Watches(kernel.hub, kernel.init.fs)
        self._open: dict[int, Watch] = {}
        self._next = 1

    def _namespaces(self) -> Iterator[Namespace]:
        for process in self._kernel.init.space.table.values():
            yield process.fs.namespace

    def cover(self) -> None:
        """Something was mounted: watch that too."""
        self._watches.cover(self._namespaces())

    def watch(self, cwd: str, path: bytes, recursive: bool) -> Plain:
        if len(self._open) >= WATCHES_MAX:
            raise BudgetExceeded("watches", WATCHES_MAX)
        fs, given = self._kernel.init.fs, join(cwd, fsdecode(path))
        place = fs.resolve(given)
        name = (path_of(fs, place) if place.node.is_dir else None) or normalise(given)
        number, self._next = self._next, self._next + 1
        self._open[number] = self._watches.add(name, recursive=recursive, namespaces=self._namespaces())
        return number

    def changes(self, number: int) -> Plain:
        """Waits for the next ones; none means that the watch has ended."""
        watch = self._open.get(number)
        if watch is None:
            raise WireError(f"no watch {number!r}")
        return [
            [change.kind, fsencode(change.path), None if change.to is None else fsencode(change.to)]
            for change in watch.take()
        ]

    def end_all(self) -> None:
        for number in list(self._open):
            self.unwatch(number)

    def unwatch(self, number: int) -> Plain:
        watch = self._open.pop(number, None)
        if watch is not None:
            self._watches.remove(watch)
        return None
