"""Nodes of an overlay: where a file is in each layer, and how a directory differs from the lower one."""

from __future__ import annotations

from weakref import WeakSet

from belljar.kernel.vfs.server import Handle, Node


class OverlayNode(Node):
    """One file of the merged tree, whichever layer has it."""

    __slots__ = (
        "anchor", "atime", "copied", "ctime", "ino", "kept", "lower", "mtime", "name", "nlink", "number", "own",
        "parent", "readers", "stage", "upper",
    )  # fmt: skip

    def __init__(self, mode: int, uid: int, gid: int, *, upper: Node | None, lower: Node | None) -> None:
        super().__init__(mode, uid, gid)
        self.upper = upper
        """The file in the upper server; then its contents, and a file's times, are there."""
        self.lower = lower
        """The file in the lower server it came from; of a directory: what shows through it."""
        self.copied: tuple[int, int] | None = None
        """The lower file's version when it was copied up."""
        self.ino = 0
        self.number = 0
        """See `OverlayServer.number`."""
        self.kept = 0
        """When a changed node was last entered among the names of this directory, which is no change of it."""
        self.nlink: int | None = None
        """None: what the layer says."""
        self.parent: OverlayDirectory | None = None
        """A directory's place; of a file with several names the place of one of them, or None once that is gone."""
        self.name = ""
        self.own = False
        """Whether mode, owner and times here count rather than the lower layer's."""
        self.atime = self.mtime = self.ctime = 0
        self.readers: WeakSet[SwitchingHandle] | None = None
        """Open readers of the lower file: they switch to the upper one when it is copied up."""
        self.stage = ""
        """The upper server's root has it under this name, because no name of it is known."""
        self.anchor: SwitchingHandle | None = None
        """Keeps a file in existence that was removed before it was copied up."""


class OverlayDirectory(OverlayNode):
    __slots__ = ("names", "removed")

    def __init__(self, mode: int, uid: int, gid: int, *, upper: Node | None, lower: Node | None) -> None:
        super().__init__(mode, uid, gid, upper=upper, lower=lower)
        self.names: dict[str, OverlayNode | None] = {}
        """Differences from the lower directory: another node, or None for a removed name."""
        self.removed = False


class SwitchingHandle(Handle):
    """A reader of a lower file that goes on with the upper one once there is one."""

    __slots__ = ("__weakref__", "_handle")

    def __init__(self, handle: Handle) -> None:
        self.nonblocking = False
        self._handle: Handle | None = handle

    def switch(self, handle: Handle) -> None:
        self.close()
        self._handle = handle

    def read(self, offset: int, size: int) -> bytes:
        assert self._handle is not None
        return self._handle.read(offset, size)

    def size(self) -> int:
        assert self._handle is not None
        return self._handle.size()

    def seek_data(self, offset: int, *, hole: bool) -> int:
        assert self._handle is not None
        return self._handle.seek_data(offset, hole=hole)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def __del__(self) -> None:
        # An anchor has no descriptor that would close it.
        self.close()
