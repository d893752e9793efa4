"""/dev: the devices a program expects, none of them the host's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from belljar.abi.errno import ENOSPC, ENXIO
from belljar.abi.errors import SysError
from belljar.abi.flags import O_NOCTTY
from belljar.abi.records import SetAttr
from belljar.kernel.fs.synthetic import Device, Entry, Folder, Link, SyntheticNode, SyntheticServer, folder
from belljar.kernel.tty import PTS_MAJOR, MasterHandle, SlaveHandle, Terminal
from belljar.kernel.vfs.server import Handle, Node

if TYPE_CHECKING:
    from belljar.kernel.kernel import Kernel

READ_MAX: Final = 1 << 26
RANDOM_MAX: Final = (1 << 25) - 1
TTY_GROUP: Final = 5
TERMINALS_MAX: Final = 256


def makedev(major: int, minor: int) -> int:
    return major << 8 | minor


class NullHandle(Handle):
    """/dev/null: writes are discarded, reads are at the end."""

    __slots__ = ()
    may_be_terminal = False

    def read(self, offset: int, size: int) -> bytes:
        return b""

    def write(self, offset: int | None, data: bytes) -> int:
        return len(data)

    def size(self) -> int:
        return 0


class ZeroHandle(NullHandle):
    __slots__ = ()

    def read(self, offset: int, size: int) -> bytes:
        return bytes(min(size, READ_MAX))


class FullHandle(ZeroHandle):
    """/dev/full: writes are ENOSPC."""

    __slots__ = ()

    def write(self, offset: int | None, data: bytes) -> int:
        raise SysError(ENOSPC)


class RandomHandle(NullHandle):
    __slots__ = ("_source",)

    def __init__(self, source: Callable[[int], bytes]) -> None:
        self.nonblocking = False
        self._source = source

    def read(self, offset: int, size: int) -> bytes:
        return self._source(min(size, RANDOM_MAX))


class DevServer(SyntheticServer):
    """One /dev with terminals of its own. `shm` is an empty directory, to be mounted on."""

    kind = "devtmpfs"

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._terminals: dict[int, Device] = {}
        entropy = kernel.machine.entropy
        self._static: dict[str, Entry] = {
            "null": Device(lambda _flags: NullHandle(), makedev(1, 3)),
            "zero": Device(lambda _flags: ZeroHandle(), makedev(1, 5)),
            "full": Device(lambda _flags: FullHandle(), makedev(1, 7)),
            "random": Device(lambda _flags: RandomHandle(entropy.random_bytes), makedev(1, 8)),
            "urandom": Device(lambda _flags: RandomHandle(entropy.random_bytes), makedev(1, 9)),
            "tty": Device(self._open_tty, makedev(5, 0)),
            "console": Device(self._open_tty, makedev(5, 1), 0o600),
            "ptmx": Device(self._open_master, makedev(5, 2)),
            "pts": Folder(self._pts_names, self._find_pts, 0o755),
            "fd": Link(lambda: "/proc/self/fd"),
            "stdin": Link(lambda: "/proc/self/fd/0"),
            "stdout": Link(lambda: "/proc/self/fd/1"),
            "stderr": Link(lambda: "/proc/self/fd/2"),
            "shm": folder({}, 0o1777),
        }
        super().__init__(folder(self._static, 0o755), kernel.now)
        # Held, so that chmod and touch last.
        self._held = [self.walk(self.root, name) for name in self._static]
        self._pts = self.walk(self.root, "pts")

    def size(self, entry: Entry) -> int:
        return len(entry.target()) if isinstance(entry, Link) else super().size(entry)

    def watch(self, node: Node) -> bool:
        return node is self.root or node in self._held[: len(self._static)]

    # Terminals.

    def _open_tty(self, flags: int) -> Handle:
        """The caller's controlling terminal. ENXIO without one."""
        terminal = self._kernel.caller().session.tty
        if terminal is None:
            raise SysError(ENXIO)
        return SlaveHandle(terminal)

    def _open_master(self, flags: int) -> Handle:
        """A new terminal, named pts/N for as long as its master is open. ENOSPC."""
        number = next((n for n in range(TERMINALS_MAX) if n not in self._terminals), None)
        if number is None:
            raise SysError(ENOSPC)
        terminal = Terminal(self._kernel, number, lambda: self._forget(number))
        uid = self._kernel.caller().fs.credentials.uid

        def open_slave(flags: int) -> Handle:
            process = self._kernel.caller()
            handle = SlaveHandle(terminal)
            if not flags & O_NOCTTY and terminal.may_acquire(process):
                terminal.acquire(process)
            return handle

        self._terminals[number] = Device(open_slave, makedev(PTS_MAJOR, number), 0o620, (uid, TTY_GROUP))
        self._held.append(self.walk(self._pts, str(number)))
        return MasterHandle(terminal)

    def _forget(self, number: int) -> None:
        node = self.walk(self._pts, str(number))
        self._held.remove(node)
        del self._terminals[number]

    def _pts_names(self) -> list[str]:
        return ["ptmx", *map(str, self._terminals)]

    def _find_pts(self, name: str) -> Entry | None:
        if name == "ptmx":
            return self._static["ptmx"]
        if not (name.isascii() and name.isdigit()) or (len(name) > 1 and name[0] == "0") or len(name) > 9:
            return None
        return self._terminals.get(int(name))

    def setattr(self, node: Node, change: SetAttr) -> None:
        assert isinstance(node, SyntheticNode)
        if change.mode is not None:
            node.mode = node.mode & ~0o7777 | change.mode
        node.uid = change.uid if change.uid is not None else node.uid
        node.gid = change.gid if change.gid is not None else node.gid
        node.atime = change.atime if change.atime is not None else node.atime
        node.mtime = change.mtime if change.mtime is not None else node.mtime
        node.ctime = self._now()
        self.changed()
