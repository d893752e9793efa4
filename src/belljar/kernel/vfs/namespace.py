"""The mount table of a process: which servers appear where, and how a directory becomes a union of several.

A table maps a place (a node as reached through a mount) to what covers it. It is replaced, never changed in place:
forked processes share it until one of them mounts something, so a child's binds are invisible to its parent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from belljar.abi.errno import EBUSY, EINVAL, ENOSPC, ENOTDIR
from belljar.abi.errors import SysError
from belljar.kernel.vfs.server import FileServer, Node

Order = Literal["replace", "before", "after"]

MOUNTS_MAX: Final = 1000
"""Maximum mounts of one table: each change copies it."""


class Place(NamedTuple):
    """A node as reached through a mount: the same file bound at two paths is two places."""

    mount: Mount
    node: Node


class Member(NamedTuple):
    """One directory of a union; new files go into the first that `creates`."""

    mount: Mount
    node: Node
    creates: bool


class Mount:
    """One server's tree, from `root` down, covering `point` (None for the root of the namespace)."""

    __slots__ = ("members", "point", "read_only", "root", "server", "source")

    def __init__(
        self,
        server: FileServer,
        root: Node,
        point: Place | None,
        *,
        read_only: bool = False,
        source: str = "none",
        members: tuple[Member, ...] = (),
    ) -> None:
        self.server = server
        self.root = root
        self.point = point
        self.read_only = read_only
        self.source = source
        self.members = members
        """The directories searched in turn at `root`, if this is a union; server and root are then the first's."""


class Namespace:
    """A mount table."""

    __slots__ = ("root", "tops")

    def __init__(self, root: Mount) -> None:
        self.root = Place(root, root.root)
        self.tops: dict[Node, dict[Mount, Mount]] = {}
        """Each covered node with its uppermost cover, by the mount it is reached through. Resolution looks in here.

        Another dict after every change: the same one means that nothing was mounted meanwhile.
        """

    def fork(self) -> Namespace:
        """The same view for a child, until one of the two changes its own."""
        child = Namespace.__new__(Namespace)
        child.root = self.root
        child.tops = self.tops
        return child

    def enter(self, place: Place) -> Place:
        """The place itself, or the root of the topmost mount stacked on it."""
        while (covers := self.tops.get(place[1])) is not None and (top := covers.get(place[0])) is not None:
            if top.root is place[1] and top.server is place[0].server and top.members:
                return Place(top, top.root)  # a union whose first member is the covered directory itself
            place = Place(top, top.root)
        return place

    def is_mount_point(self, node: Node) -> bool:
        """Whether something is mounted on this node: it can't be removed or renamed."""
        return node in self.tops

    def mount(
        self,
        point: Place,
        server: FileServer,
        root: Node | None = None,
        *,
        order: Order = "replace",
        creates: bool = True,
        read_only: bool = False,
        source: str = "none",
    ) -> None:
        """Cover what is seen at `point`, or add to the union there.

        ENOTDIR if one is a directory and the other is not, EBUSY for the root of the namespace, ENOSPC (too many).
        """
        root = root if root is not None else server.root
        if root.is_dir != point.node.is_dir or (order != "replace" and not root.is_dir):
            raise SysError(ENOTDIR)
        if point == self.root:
            raise SysError(EBUSY)
        if sum(len(top.members) or 1 for covers in self.tops.values() for top in covers.values()) >= MOUNTS_MAX:
            raise SysError(ENOSPC)
        if order == "replace":
            self._cover(point, Mount(server, root, point, read_only=read_only, source=source))
            return
        members = point.mount.members if point.node is point.mount.root else ()
        base = point.mount.point if members else point
        assert base is not None
        new = Mount(server, root, base, read_only=read_only, source=source)
        old = members or (Member(point.mount, point.node, creates=True),)
        added = Member(new, root, creates)
        self._unite(base, (added, *old) if order == "before" else (*old, added))

    def unmount(self, visible: Place, source: Node | None = None) -> None:
        """Uncover what is seen at `visible`; with `source`, only if it is that, and of a union only that member.

        EINVAL if nothing is mounted there, EBUSY for the root of the namespace.
        """
        mount = visible.mount
        if visible.node is not mount.root:
            raise SysError(EINVAL)
        if mount.point is None:
            raise SysError(EBUSY)
        if source is not None and (mount.members or mount.root is not source):
            rest = tuple(member for member in mount.members if member.node is not source)
            if len(rest) == len(mount.members):
                raise SysError(EINVAL)
            if len(rest) > 1:
                self._unite(mount.point, rest)
                return
            if (rest[0].mount, rest[0].node) != mount.point:
                self._cover(mount.point, rest[0].mount)  # what was covered first is out; the other one stays
                return
        self.tops = self._copy()
        covers = self.tops[mount.point.node]
        del covers[mount.point.mount]
        if not covers:
            del self.tops[mount.point.node]

    def mounts(self) -> Iterator[Mount]:
        """Every mount, the root first, in the order made; a union gives each of its members."""
        yield self.root.mount
        for covers in self.tops.values():
            for top in covers.values():
                if top.members:
                    yield from (member.mount for member in top.members if member.mount.point is top.point)
                else:
                    yield top

    def every_mount(self) -> Iterator[Mount]:
        """All mounts, those of unions and of their members too; some more than once."""
        yield self.root.mount
        for covers in self.tops.values():
            for top in covers.values():
                yield top
                yield from (member.mount for member in top.members)

    def _unite(self, base: Place, members: tuple[Member, ...]) -> None:
        first = members[0]
        self._cover(
            base,
            Mount(
                first.mount.server,
                first.node,
                base,
                read_only=first.mount.read_only,
                source=first.mount.source,
                members=members,
            ),
        )

    def _cover(self, base: Place, top: Mount) -> None:
        self.tops = self._copy()
        self.tops.setdefault(base.node, {})[base.mount] = top

    def _copy(self) -> dict[Node, dict[Mount, Mount]]:
        return {node: dict(covers) for node, covers in self.tops.items()}
