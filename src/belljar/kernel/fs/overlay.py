"""A writable tree over one that is never written: what changes goes to the upper server, the rest shows through.

The names of a directory are our own records, not files: `names` of an overlay directory says what differs from the
lower one (a node: that is it now, whichever layer holds it; None: removed), so there is no whiteout a guest could
forge. A directory without a lower one is opaque. Moving something that only the lower layer has moves its node
here and copies nothing; contents are copied when they are first written, everything else is kept on the node.

Nobody else may change the upper server while it is mounted here. It holds every file that was created or written,
under its own path; the whole truth is this server's tree.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final
from weakref import WeakSet, WeakValueDictionary

from belljar.abi.errno import EEXIST, EINVAL, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY, EPERM
from belljar.abi.errors import SysError
from belljar.abi.flags import (
    FILE_MAX,
    O_ACCMODE,
    O_RDONLY,
    O_TRUNC,
    PERMISSIONS,
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
)
from belljar.abi.paths import check_name
from belljar.abi.records import Dirent, Owner, SetAttr, Stat, StatFs
from belljar.kernel.fs.overlay_copy import copy_contents
from belljar.kernel.fs.overlay_node import OverlayDirectory, OverlayNode, SwitchingHandle
from belljar.kernel.vfs.namespace import Place
from belljar.kernel.vfs.server import FileServer, Handle, Node

RECENT: Final = 4096


class OverlayServer(FileServer):
    """`upper` over `lower`. A lower may itself be an overlay."""

    kind = "overlay"

    def __init__(self, lower: FileServer, upper: FileServer, now: Callable[[], int]) -> None:
        if not lower.root.is_dir or not upper.root.is_dir:
            raise SysError(ENOTDIR)
        self.lower = lower
        self.upper = upper
        self._now = now
        self._by_lower: WeakValueDictionary[Node, OverlayNode] = WeakValueDictionary()
        """Unchanged nodes are referenced weakly; changed ones are referenced by `names`."""
        self._recent: deque[OverlayNode] = deque(maxlen=RECENT)
        """References the latest nodes, so that directories of frequent paths are not recreated each time."""
        self.pinned: dict[Node, OverlayNode] = {}
        """Files that changed, lost the name they were held by, and have others in the lower layer still."""
        self._stages = 0
        self._numbered = 0
        root = lower.root
        self._root = OverlayDirectory(root.mode, root.uid, root.gid, upper=None, lower=root)
        self._own(self._root)
        self._root.upper = upper.root
        upper.setattr(upper.root, SetAttr(mode=root.mode & PERMISSIONS, uid=root.uid, gid=root.gid))
        self._by_lower[root] = self._root
        self._adopt()

    def _adopt(self) -> None:
        """Load the files that the upper server already has."""
        known: dict[Node, OverlayNode] = {}
        todo = [self._root]
        while todo:
            directory = todo.pop()
            assert directory.upper is not None
            for entry in self.upper.readdir(directory.upper):
                found = self.upper.walk(directory.upper, entry.name)
                node = known.get(found)
                if node is None:
                    below = self._lower_entry(directory, entry.name) if found.is_dir else None
                    below = below if below is not None and below.is_dir else None
                    make = OverlayDirectory if found.is_dir else OverlayNode
                    node = known[found] = make(found.mode, found.uid, found.gid, upper=found, lower=below)
                    if below is not None:
                        self._by_lower[below] = node
                directory.names[entry.name] = node
                node.parent, node.name = directory, entry.name
                if isinstance(node, OverlayDirectory):
                    todo.append(node)

    @property
    def root(self) -> OverlayDirectory:
        return self._root

    # Looking.

    def walk(self, directory: Node, name: str) -> OverlayNode:
        if not isinstance(directory, OverlayDirectory):
            raise SysError(ENOTDIR)
        node = directory.names.get(name)
        if node is not None:
            return node
        if directory.lower is None or name in directory.names:
            if not directory.removed:
                check_name(name)
            raise SysError(ENOENT)
        found = self.lower.walk(directory.lower, name)
        node = self._by_lower.get(found)
        if node is None:
            make = OverlayDirectory if found.is_dir else OverlayNode
            node = self._by_lower[found] = make(found.mode, found.uid, found.gid, upper=None, lower=found)
            self._recent.append(node)
        elif not node.own and node.upper is None:
            node.mode, node.uid, node.gid = found.mode, found.uid, found.gid
        if node.parent is None or not node.is_dir:
            node.parent, node.name = directory, name
        return node

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        assert isinstance(directory, OverlayDirectory)
        parent = directory.parent
        return None if parent is None else (parent, directory.name)

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, OverlayNode)
        found = self._layer_stat(node)
        _, ino, _, nlink, _, _, size, atime, mtime, ctime, rdev, blocks = found
        if not node.ino:
            if node.upper is not None and node.lower is not None:
                self._ino(node)
            else:
                node.ino = self._number(ino, lower=node.lower is not None)
        if node.nlink is not None:
            nlink = node.nlink
        elif node.upper is not None and node.is_dir:
            nlink = self._links(node)
        if node.own and (node.upper is None or node.is_dir):
            atime, mtime = node.atime, node.mtime
        return Stat(
            node.mode, node.ino, self.dev, nlink, node.uid, node.gid, size,
            atime, mtime, max(ctime, node.ctime), rdev, blocks,
        )  # fmt: skip

    def _layer_stat(self, node: OverlayNode) -> Stat:
        if node.upper is not None:
            return self.upper.stat(node.upper)
        assert node.lower is not None
        return self.lower.stat(node.lower)

    @staticmethod
    def path_of(node: OverlayNode) -> list[str]:
        """The names from the root to a node."""
        names: list[str] = []
        while node.parent is not None:
            names.append(node.name)
            node = node.parent
        return names[::-1]

    @staticmethod
    def _number(ino: int, *, lower: bool) -> int:
        """Inode numbers of the two layers kept apart, and the same each time a file is looked up."""
        return (ino << 1 | (not lower)) & FILE_MAX

    def _ino(self, node: OverlayNode) -> int:
        if not node.ino:
            if node.lower is not None:
                node.ino = self._number(self.lower.stat(node.lower).ino, lower=True)
            else:
                node.ino = self._number(self._layer_stat(node).ino, lower=False)
        return node.ino

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        if not isinstance(directory, OverlayDirectory):
            raise SysError(ENOTDIR)
        names = directory.names
        entries: list[Dirent] = []
        seen: set[str] = set()
        if directory.lower is not None:
            for name, ino, kind in self.lower.readdir(directory.lower):
                if name not in names:
                    entries.append(Dirent(name, self._number(ino, lower=True), kind))
                elif (node := names[name]) is not None:
                    entries.append(Dirent(name, self._ino(node), node.mode & S_IFMT))
                    seen.add(name)
        entries += [
            Dirent(name, self._ino(node), node.mode & S_IFMT)
            for name, node in names.items()
            if node is not None and name not in seen
        ]
        return entries

    def readlink(self, node: Node) -> str:
        assert isinstance(node, OverlayNode)
        if node.upper is not None:
            return self.upper.readlink(node.upper)
        assert node.lower is not None
        return self.lower.readlink(node.lower)

    def magic_link(self, node: Node) -> Place | None:
        assert isinstance(node, OverlayNode)
        return None if node.lower is None else self.lower.magic_link(node.lower)

    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, OverlayNode)
        if node.upper is None:
            assert node.lower is not None
            kind = node.mode & S_IFMT
            if kind != S_IFREG:
                return self.lower.open(node.lower, flags)
            if flags & O_ACCMODE == O_RDONLY and not flags & O_TRUNC:
                return self._follow(node, self.lower.open(node.lower, flags))
            self._copy_up(node, 0 if flags & O_TRUNC else None)
        assert node.upper is not None
        return self.upper.open(node.upper, flags)

    def hold(self, node: Node) -> Handle:
        assert isinstance(node, OverlayNode)
        if node.upper is not None:
            return self.upper.hold(node.upper)
        assert node.lower is not None
        return self._follow(node, self.lower.hold(node.lower))

    @staticmethod
    def _follow(node: OverlayNode, handle: Handle) -> Handle:
        """A handle of the lower file, which becomes one of the upper when there is one."""
        following = SwitchingHandle(handle)
        if node.readers is None:
            node.readers = WeakSet()
        node.readers.add(following)
        return following

    def statfs(self) -> StatFs:
        return self.upper.statfs()._replace(kind=self.kind)

    def close(self) -> None:
        self.upper.close()
        self.lower.close()

    # Creating.

    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        parent = self._vacant(directory, name)
        made = self.upper.create(self._copy_up_directory(parent), name, mode, owner)
        return self._enter(parent, name, OverlayNode(made.mode, made.uid, made.gid, upper=made, lower=None))

    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        parent = self._vacant(directory, name)
        made = self.upper.mkdir(self._copy_up_directory(parent), name, mode, owner)
        node = OverlayDirectory(made.mode, made.uid, made.gid, upper=made, lower=None)
        node.nlink = 2
        self._links_change(parent, 1)
        return self._enter(parent, name, node)

    def symlink(self, directory: Node, name: str, target: str, owner: Owner) -> Node:
        parent = self._vacant(directory, name)
        made = self.upper.symlink(self._copy_up_directory(parent), name, target, owner)
        return self._enter(parent, name, OverlayNode(made.mode, made.uid, made.gid, upper=made, lower=None))

    def link(self, node: Node, directory: Node, name: str) -> None:
        assert isinstance(node, OverlayNode)
        if node.is_dir:
            raise SysError(EPERM)
        links = self._links(node)
        if links == 0:
            raise SysError(ENOENT)
        parent = self._vacant(directory, name)
        self._copy_up(node, None)
        assert node.upper is not None
        self.upper.link(node.upper, self._copy_up_directory(parent), name)
        home, old = node.parent, node.name
        self._enter(parent, name, node)
        node.parent, node.name = home, old
        node.nlink = links + 1
        node.ctime = self._now()

    def _vacant(self, directory: Node, name: str) -> OverlayDirectory:
        """The directory, checked to be alive and without that name."""
        if not isinstance(directory, OverlayDirectory):
            raise SysError(ENOTDIR)
        check_name(name)
        if self._find(directory, name) is not None:
            raise SysError(EEXIST)
        if directory.removed:
            raise SysError(ENOENT)
        return directory

    def _find(self, directory: OverlayDirectory, name: str) -> OverlayNode | None:
        try:
            return self.walk(directory, name)
        except SysError as error:
            if error.errno == ENOENT:
                return None
            raise

    def _enter(self, parent: OverlayDirectory, name: str, node: OverlayNode) -> OverlayNode:
        parent.names[name] = node
        node.parent, node.name = parent, name
        self._touch(parent)
        return node

    # Removing.

    def unlink(self, directory: Node, name: str) -> None:
        node = self.walk(directory, name)
        if node.is_dir:
            raise SysError(EISDIR)
        assert isinstance(directory, OverlayDirectory)
        links = self._links(node)
        if self._is_in_upper(directory, name, node):
            self._drop(directory, name, node, links)
        self._erase(directory, name)
        self._lose_link(node, links, directory, name)

    def rmdir(self, directory: Node, name: str) -> None:
        node = self.walk(directory, name)
        if not isinstance(node, OverlayDirectory):
            raise SysError(ENOTDIR)
        if self.readdir(node):
            raise SysError(ENOTEMPTY)
        assert isinstance(directory, OverlayDirectory)
        self._links(directory)
        if self._is_in_upper(directory, name, node):
            assert directory.upper is not None
            self.upper.rmdir(directory.upper, name)
        self._erase(directory, name)
        self._detach_directory(node, directory)

    def _detach_directory(self, node: OverlayDirectory, parent: OverlayDirectory) -> None:
        self._links_change(parent, -1)
        node.removed = True
        node.name, node.nlink = "", 0
        self._own(node)
        node.ctime = self._now()
        if node.lower is not None:
            # To processes with it as working directory it is empty; a new directory of that name is another one.
            self._by_lower.pop(node.lower, None)
            node.lower = None
            node.names.clear()
            if node.upper is None:
                node.upper = self._unnamed_directory(node)

    def _unnamed_directory(self, node: OverlayDirectory) -> Node:
        """A removed directory still has metadata: a directory of the upper server that is gone too."""
        owner = Owner(node.uid, node.gid)
        stage = self._stage()
        made = self.upper.mkdir(self._upper_root(), stage, node.mode & PERMISSIONS, owner)
        self.upper.rmdir(self._upper_root(), stage)
        return made

    def _erase(self, directory: OverlayDirectory, name: str) -> None:
        """Remove a name; recorded as None if the lower layer has it too."""
        if self._lower_entry(directory, name) is not None:
            directory.names[name] = None
        else:
            del directory.names[name]
        self._touch(directory)

    def _drop(self, directory: OverlayDirectory, name: str, node: OverlayNode, links: int) -> None:
        """Take a file's name out of the upper server, but not its last one while the lower layer has others."""
        assert directory.upper is not None
        assert node.upper is not None
        if links > 1 and self.upper.stat(node.upper).nlink == 1:
            stage = self._stage()
            self.upper.rename(directory.upper, name, self._upper_root(), stage, 0)
            node.stage = stage
        else:
            self.upper.unlink(directory.upper, name)

    def _lower_entry(self, directory: OverlayDirectory, name: str) -> Node | None:
        if directory.lower is None:
            return None
        try:
            return self.lower.walk(directory.lower, name)
        except SysError as error:
            if error.errno == ENOENT:
                return None
            raise

    def _lose_link(self, node: OverlayNode, links: int, directory: OverlayDirectory, name: str) -> None:
        node.nlink = links - 1
        node.ctime = self._now()
        if node.nlink > 0:
            if node.lower is not None:
                self.pinned[node.lower] = node
            if node.parent is directory and node.name == name:
                node.parent = None
            return
        node.parent = None
        if node.lower is not None:
            self.pinned.pop(node.lower, None)
        if node.stage and node.upper is not None:
            self.upper.unlink(self._upper_root(), node.stage)
            node.stage = ""

    # Renaming.

    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        node = self.walk(source, old)
        if not isinstance(source, OverlayDirectory) or not isinstance(target, OverlayDirectory):
            raise SysError(ENOTDIR)
        check_name(new)
        replaced = self._find(target, new)
        if replaced is not None and flags & RENAME_NOREPLACE:
            raise SysError(EEXIST)
        if flags & RENAME_EXCHANGE:
            if replaced is None:
                raise SysError(ENOENT)
            if replaced is not node:
                self._check_outside(node, target)
                self._check_outside(replaced, source)
                if node.is_dir or replaced.is_dir:
                    self._links(source)
                    self._links(target)
                self._exchange(source, old, node, target, new, replaced)
            return
        if replaced is node:
            return
        self._check_outside(node, target)
        if target.removed:
            raise SysError(ENOENT)
        if node.is_dir:
            self._links(source)
            self._links(target)
        if replaced is not None:
            if isinstance(replaced, OverlayDirectory):
                if not node.is_dir:
                    raise SysError(EISDIR)
                if self.readdir(replaced):
                    raise SysError(ENOTEMPTY)
            elif node.is_dir:
                raise SysError(ENOTDIR)
        self._replace(source, old, node, target, new, replaced)

    @staticmethod
    def _check_outside(node: OverlayNode, directory: OverlayDirectory) -> None:
        """EINVAL if a directory would move into itself."""
        above: OverlayDirectory | None = directory
        while above is not None:
            if above is node:
                raise SysError(EINVAL)
            above = above.parent

    def _replace(
        self,
        source: OverlayDirectory,
        old: str,
        node: OverlayNode,
        target: OverlayDirectory,
        new: str,
        replaced: OverlayNode | None,
    ) -> None:
        in_upper = self._is_in_upper(source, old, node)
        into = self._copy_up_directory(target) if in_upper else target.upper
        links = self._links(replaced) if replaced is not None else 0
        if replaced is not None and self._is_in_upper(target, new, replaced):
            if not replaced.is_dir:
                self._drop(target, new, replaced, links)
            elif into is not None:
                self.upper.rmdir(into, new)
        if in_upper:
            assert source.upper is not None
            assert into is not None
            self.upper.rename(source.upper, old, into, new, 0)
        if replaced is not None:
            target.names.pop(new, None)
            if isinstance(replaced, OverlayDirectory):
                self._detach_directory(replaced, target)
            else:
                self._lose_link(replaced, links, target, new)
        self._own(node)
        source.names.setdefault(old, node)
        self._erase(source, old)
        self._attach(node, source, target, new)

    def _exchange(
        self,
        source: OverlayDirectory,
        old: str,
        node: OverlayNode,
        target: OverlayDirectory,
        new: str,
        other: OverlayNode,
    ) -> None:
        first, second = self._is_in_upper(source, old, node), self._is_in_upper(target, new, other)
        if first or second:
            here, there = self._copy_up_directory(source), self._copy_up_directory(target)
            if first and second:
                self.upper.rename(here, old, there, new, RENAME_EXCHANGE)
            elif first:
                self.upper.rename(here, old, there, new, 0)
            else:
                self.upper.rename(there, new, here, old, 0)
        self._own(node)
        self._own(other)
        self._attach(node, source, target, new)
        self._attach(other, target, source, old)

    def _attach(self, node: OverlayNode, source: OverlayDirectory, target: OverlayDirectory, name: str) -> None:
        """Make the node `name` in `target`."""
        target.names[name] = node
        node.parent, node.name = target, name
        node.ctime = self._now()
        if node.is_dir and source is not target:
            self._links_change(source, -1)
            self._links_change(target, 1)
        self._touch(source)
        self._touch(target)

    # Attributes.

    def setattr(self, node: Node, change: SetAttr) -> None:
        assert isinstance(node, OverlayNode)
        if change.size is not None:
            if node.mode & S_IFMT != S_IFREG:
                raise SysError(EISDIR if node.is_dir else EINVAL)
            self._copy_up(node, change.size)
        if node.upper is not None:
            self.upper.setattr(node.upper, change)
            node.mode, node.uid, node.gid = node.upper.mode, node.upper.uid, node.upper.gid
        self._own(node)
        if node.upper is None:
            node.mode = node.mode if change.mode is None else node.mode & S_IFMT | change.mode
            node.uid = node.uid if change.uid is None else change.uid
            node.gid = node.gid if change.gid is None else change.gid
        node.atime = node.atime if change.atime is None else change.atime
        node.mtime = node.mtime if change.mtime is None else change.mtime
        node.ctime = self._now()
        self._keep(node)

    def _own(self, node: OverlayNode) -> None:
        """Make the node's own metadata override the lower layer's."""
        if not node.own:
            found = self._layer_stat(node)
            node.atime, node.mtime, node.ctime = found.atime, found.mtime, found.ctime
            node.own = True

    def _touch(self, directory: OverlayDirectory) -> None:
        self._own(directory)
        directory.mtime = directory.ctime = self._now()
        self._keep(directory)

    def _keep(self, node: OverlayNode) -> None:
        """Reference a changed node and its parents by `names`."""
        while (parent := node.parent) is not None and node.name and parent.names.get(node.name) is not node:
            parent.names[node.name] = node
            parent.kept = self._now()
            node = parent

    def number(self, node: OverlayNode) -> int:
        """A number that no other node of this server ever has."""
        if not node.number:
            self._numbered += 1
            node.number = self._numbered
        return node.number

    def _links(self, node: OverlayNode) -> int:
        """The link count, ours from now on."""
        if node.nlink is None:
            if node.lower is not None and (node.upper is None or not node.is_dir):
                node.nlink = self.lower.stat(node.lower).nlink
            elif node.lower is not None:
                node.nlink = 2 + sum(entry.is_dir for entry in self.readdir(node))
            else:
                node.nlink = self._layer_stat(node).nlink
        return node.nlink

    def _links_change(self, directory: OverlayDirectory, by: int) -> None:
        """One subdirectory more or less. Servers that do not count them say 1."""
        links = self._links(directory)
        if links > 1:
            directory.nlink = links + by

    # Copying up.

    def _is_in_upper(self, directory: OverlayDirectory, name: str, node: OverlayNode) -> bool:
        """Whether the upper server has this node under this name (another name of it may be the lower's alone)."""
        if directory.upper is None or node.upper is None:
            return False
        try:
            return self.upper.walk(directory.upper, name) is node.upper
        except SysError as error:
            if error.errno == ENOENT:
                return False
            raise

    def _upper_root(self) -> Node:
        assert self._root.upper is not None
        return self._root.upper

    def _copy_up_directory(self, directory: OverlayDirectory) -> Node:
        """The directory in the upper server; creates it and its parents if missing."""
        missing: list[OverlayDirectory] = []
        above = directory
        while above.upper is None:
            missing.append(above)
            assert above.parent is not None
            above = above.parent
        for step in reversed(missing):
            assert step.parent is not None
            assert step.parent.upper is not None
            self._own(step)
            self._links(step)
            self._own(step.parent)
            made = self.upper.mkdir(step.parent.upper, step.name, step.mode & PERMISSIONS, Owner(step.uid, step.gid))
            self._ino(step)
            step.upper = made
            self._keep(step)
        assert directory.upper is not None
        return directory.upper

    def _stage(self) -> str:
        """A free name in the upper server's root, for a file not yet in place."""
        while True:
            self._stages += 1
            name = f".belljar-stage-{self._stages}"
            if name not in self._root.names:
                return name

    def _copy_up(self, node: OverlayNode, size: int | None) -> None:
        """Copy a lower file to the upper server: its metadata, and the first `size` bytes (None: all).

        It is put in place only when complete, so that a full disk half-way changes nothing.
        """
        if node.upper is not None:
            return
        self._own(node)
        self._ino(node)
        links = self._links(node)
        root, stage = self._upper_root(), self._stage()
        owner = Owner(node.uid, node.gid)
        assert node.lower is not None
        copied = self.version(node.lower)
        if node.mode & S_IFMT == S_IFLNK:
            made = self.upper.symlink(root, stage, self.readlink(node), owner)
        else:
            made = self.upper.create(root, stage, node.mode, owner)
        try:
            if node.mode & S_IFMT == S_IFREG:
                copy_contents(self.lower, node.lower, self.upper, made, size)
            self.upper.setattr(
                made,
                SetAttr(node.mode & PERMISSIONS, node.uid, node.gid, None, node.atime, node.mtime),
            )
            parent = node.parent
            named = parent is not None and not parent.removed and self._find(parent, node.name) is node
            if named and not self._is_up(node):
                assert parent is not None
                self.upper.rename(root, stage, self._copy_up_directory(parent), node.name, 0)
        except BaseException:
            self.upper.unlink(root, stage)
            raise
        if self._is_up(node):
            # Reading the lower layer may have let another fiber run, which was faster.
            self.upper.unlink(root, stage)
            return
        node.upper, node.copied = made, copied
        for reader in node.readers or ():
            reader.switch(self.upper.open(made, O_RDONLY))
        node.readers = None
        if named:
            self._keep(node)
        elif links > 0:
            node.stage = stage
        else:
            node.anchor = SwitchingHandle(self.upper.open(made, O_RDONLY))
            self.upper.unlink(root, stage)

    def detach(self, node: OverlayNode) -> None:
        """Copy a file, or a directory with all below it, to the upper layer. It no longer depends on the lower one."""
        todo = [node]
        while todo:
            node = todo.pop()
            if isinstance(node, OverlayDirectory):
                self._copy_up_directory(node)
                children = {entry.name: self.walk(node, entry.name) for entry in self.readdir(node)}
                if node.lower is not None:
                    self._links(node)
                    self._by_lower.pop(node.lower, None)
                    node.lower = None
                    node.names = {**children}
                    node.kept = self._now()
                todo += children.values()
            elif node.mode & S_IFMT in (S_IFREG, S_IFLNK):
                self._copy_up(node, None)

    def version(self, lower: Node) -> tuple[int, int]:
        """Modification time and size of a file of the lower layer: they tell whether it has changed."""
        found = self.lower.stat(lower)
        return found.mtime, found.size

    @staticmethod
    def _is_up(node: OverlayNode) -> bool:
        return node.upper is not None
