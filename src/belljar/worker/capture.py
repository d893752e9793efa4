"""Captures for the owner's snapshots: begun at once, then read page by page while commands go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from belljar.abi.capture import PAGE_BYTES, PAGE_ITEMS, Begun, CapturedContainer, CapturedTree, Record
from belljar.abi.paths import fsencode
from belljar.abi.wire import Plain, WireError
from belljar.kernel.container_state import keep
from belljar.kernel.containers import Contained
from belljar.kernel.fs.capture import Captured
from belljar.kernel.fs.memory import File, MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.overlay_node import OverlayNode
from belljar.kernel.fs.remote import RemoteServer
from belljar.kernel.vfs.server import FileServer
from belljar.worker.hosted import Hosted, lower_export
from belljar.worker.session import Session

_LOST_MAX: Final = 100
_SHM: Final = "/dev/shm"


class Captures:
    """One capture at a time: a new one ends the one before, whose owner has given it up."""

    def __init__(self, session: Session, hosted: Hosted) -> None:
        self._session = session
        self._hosted = hosted
        self._number = 0
        self._captured: Captured | None = None
        self.table: Final[dict[str, Callable[..., Plain]]] = {
            "capture": self.begin,
            "captured_records": self.records,
            "captured_data": self.data,
            "capture_end": self.end,
        }

    def begin(self, since: int, known: list[int]) -> Plain:
        """Capture what changed since a time; of a tree that is not among the known ones, everything."""
        captured = self._captured = Captured()
        self._number += 1
        trees: list[CapturedTree] = []
        lost: list[bytes] = []
        for path, server, over in self._trees():
            changed_since = since if server.dev in known else 0
            name = fsencode(path)
            if isinstance(server, MemoryServer):
                trees.append(CapturedTree(name, server.dev, captured.add_memory(server, changed_since)))
            elif isinstance(server, OverlayServer) and over is not None:
                trees.append(CapturedTree(name, server.dev, captured.add_overlay(server, changed_since), over))
            else:
                trees.append(CapturedTree(name, server.dev, 0, kept=False))
        lost += self._unlinked()
        containers: list[CapturedContainer] = []
        for each in reversed(self._session.containers.list()):
            state, without = keep(each)
            if state is not None:
                containers.append(CapturedContainer(state, self._container_files(captured, each, since, known)))
            if without:
                lost.append(fsencode(without))
        if captured.sockets:
            lost.append(b"%d socket files" % captured.sockets)
        return Begun(self._number, self._session.kernel.now(), trees, lost[:_LOST_MAX], containers)

    def records(self, number: int, start: int) -> Plain:
        """The records from `start` on that fit into one message; none after the last."""
        records = self._of(number).records
        size = items = 0
        end = start
        while end < len(records) and size < PAGE_BYTES and items < PAGE_ITEMS:
            record = records[end]
            size += len(record.data or b"") + len(record.target) + sum(map(len, record.names)) + 100
            items += 20 + 2 * len(record.names) + len(record.pieces)
            end += 1
        page: list[Record] = records[start:end]
        return page

    def data(self, number: int, tree: int, node: int, piece: int) -> Plain:
        try:
            return self._of(number).read(tree, node, piece)
        except KeyError:
            raise WireError("no such file was captured") from None

    def end(self, number: int) -> Plain:
        """End a capture, so that nothing is kept for it any more; 0: whichever there is."""
        if number in (0, self._number):
            self._captured = None
        return None

    def _of(self, number: int) -> Captured:
        if self._captured is None or number != self._number:
            raise WireError(f"capture {number} has ended")
        return self._captured

    def _trees(self) -> Iterator[tuple[str, FileServer, int | None]]:
        """Every file system that may be the sandbox's own: its path, its server, and the owner's export below it."""
        session = self._session
        mounted = self._hosted.mounted
        yield "/", session.root, session.root_over
        if _SHM not in mounted:
            yield _SHM, session.shared_memory, -1
        for path, (server, recipe) in mounted.items():
            yield path, server, lower_export(recipe)

    def _container_files(self, captured: Captured, each: Contained, since: int, known: list[int]) -> CapturedTree:
        root = each.root
        self._session.kernel.register(root)  # one that was never started is not yet
        changed_since = since if root.dev in known else 0
        if isinstance(root.lower, RemoteServer):
            assert root.lower.export is not None
            return CapturedTree(b"/", root.dev, captured.add_overlay(root, changed_since), root.lower.export)
        return CapturedTree(b"/", root.dev, captured.add_whole(root, changed_since))

    def _unlinked(self) -> Iterator[bytes]:
        """Name the open files that no directory has any more."""
        seen: set[int] = set()
        for process in self._session.kernel.init.space.table.values():
            for fd in process.fds.fds():
                file = process.fds[fd]
                node = file.place.node
                if (
                    isinstance(node, File | OverlayNode)
                    and not node.is_dir
                    and node.nlink == 0
                    and id(node) not in seen
                ):
                    seen.add(id(node))
                    yield b"an open file without a name, which was " + fsencode(file.name)
