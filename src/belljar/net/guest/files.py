"""The base of the network's file servers: numbered directories that exist while one of their files is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from belljar.abi.errno import EINVAL, EMFILE
from belljar.abi.errors import SysError
from belljar.kernel.fiber import WaitQueue
from belljar.kernel.fs.synthetic import Device, Entry, Folder, folder
from belljar.kernel.vfs.server import Handle

LINE_MAX: Final = 64 << 10
RDEV: Final = 10 << 8
"""All of them are "miscellaneous devices"."""


class Numbered:
    """Something with a number that guests hold by its open files."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.refs = 0

    def retain(self) -> None:
        self.refs += 1

    def release(self) -> None:
        self.refs -= 1
        if self.refs == 0:
            self.close()

    def close(self) -> None:
        """Clean up after its last file was closed. Must not wait."""


N = TypeVar("N", bound=Numbered)


class Directory(Generic[N]):
    """`clone` and the numbered directories it makes."""

    def __init__(self, make: Callable[[int], N], files: Callable[[N], dict[str, Entry]], limit: int) -> None:
        self._make = make
        self._files = files
        self._limit = limit
        self._next = 0
        self._live: dict[str, tuple[N, Folder]] = {}
        self._clone = Device(lambda _flags: self._open_clone(), RDEV)

    def entry(self) -> Folder:
        return Folder(self._names, self._find)

    def _names(self) -> list[str]:
        return ["clone", *(key for key, (item, _) in self._live.items() if item.refs)]

    def _find(self, name: str) -> Entry | None:
        if name == "clone":
            return self._clone
        found = self._live.get(name)
        return found[1] if found is not None and found[0].refs else None

    def items(self) -> list[N]:
        """Return the items in use."""
        return [item for item, _ in self._live.values() if item.refs]

    def _open_clone(self) -> Handle:
        return self.open_new(lambda _item: None)

    def open_new(self, prepare: Callable[[N], None]) -> Handle:
        """The `ctl` file of a new directory. EMFILE when there are too many."""
        for key in [key for key, (item, _) in self._live.items() if not item.refs]:
            del self._live[key]
        if len(self._live) >= self._limit:
            raise SysError(EMFILE)
        item = self._make(self._next)
        prepare(item)
        files = self._files(item)
        self._live[str(self._next)] = item, folder(files)
        self._next += 1
        ctl = files["ctl"]
        assert isinstance(ctl, Device)
        return ctl.open(0)


class ControlHandle(Handle):
    """The `ctl` file: reading gives the number, each line written is a command."""

    __slots__ = ("_command", "_item")

    def __init__(self, item: Numbered, command: Callable[[str, str], None]) -> None:
        self.nonblocking = False
        self._item = item
        self._command = command
        item.retain()

    def read(self, offset: int, size: int) -> bytes:
        return (b"%d\n" % self._item.number)[offset : offset + size]

    def write(self, offset: int | None, data: bytes) -> int:
        if len(data) > LINE_MAX:
            raise SysError(EINVAL)
        for line in data.split(b"\n"):
            if line.strip():
                word, _, rest = line.decode("latin-1").partition(" ")
                self._command(word, rest)
        return len(data)

    def truncate(self, size: int) -> None:
        """Do nothing: nothing is stored."""

    def size(self) -> int:
        return 0

    def close(self) -> None:
        self._item.release()


class TextHandle(Handle):
    """A small text made when it is read from the start."""

    __slots__ = ("_data", "_item", "_render")

    def __init__(self, item: Numbered, render: Callable[[], bytes]) -> None:
        self.nonblocking = False
        self._item = item
        self._render = render
        self._data = b""
        item.retain()

    def read(self, offset: int, size: int) -> bytes:
        if offset == 0:
            self._data = self._render()
        return self._data[offset : offset + size]

    def size(self) -> int:
        return len(self._render())

    def close(self) -> None:
        self._item.release()


class StreamHandle(Handle):
    """One direction or both of a stream, as an open file."""

    __slots__ = ("_item",)
    seekable = False

    def __init__(self, item: Numbered) -> None:
        self.nonblocking = False
        self._item = item
        item.retain()

    @property
    def waiters(self) -> WaitQueue | None:
        return None

    def close(self) -> None:
        self._item.release()


def text(item: Numbered, render: Callable[[], bytes]) -> Device:
    return Device(lambda _flags: TextHandle(item, render), RDEV, 0o444)
