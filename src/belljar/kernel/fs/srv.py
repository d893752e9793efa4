"""/mnt/srv: servers and directories posted under a name, for other processes to mount (Plan 9's srv(3)).

The host posts a server with `post`. A guest posts a directory it has open by creating a file here and writing the
descriptor's number to it (`exec 3<dir; echo 3 >/mnt/srv/name`); whoever may read the file may mount it.

A program that serves files of its own by 9P2000.L posts the kernel's end of a connection the same way, by the number of
one descriptor, or of two: answers are read from the first, requests written to the second. Or it opens its name for
reading and writing and writes `9p`: what it then reads are requests, and what it writes answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct

from belljar.abi.errno import EBADF, EBUSY, EEXIST, EINVAL, EIO, ENOENT, ENOSPC, ENOTDIR, ENXIO, EPERM
from belljar.abi.errors import SysError
from belljar.abi.flags import O_ACCMODE, O_RDONLY, O_WRONLY, S_IFDIR, S_IFMT, S_IFREG
from belljar.abi.paths import check_name
from belljar.abi.records import Dirent, Owner, SetAttr, Stat
from belljar.kernel.fs.ninep import NinePServer
from belljar.kernel.fs.ninep_link import MESSAGE, NinePLink
from belljar.kernel.vfs.server import FileServer, Handle, Node

if TYPE_CHECKING:
    from belljar.kernel.fiber import WaitQueue
    from belljar.kernel.kernel import Kernel
    from belljar.kernel.vfs.namespace import Order
    from belljar.kernel.vfs.openfile import OpenFile
    from belljar.kernel.vfs.view import View

POSTS_MAX: Final = 1024


class Posted(Struct, frozen=True):
    """The subtree of a server that is posted under a name."""

    server: FileServer
    root: Node
    read_only: bool = False
    held: OpenFile | None = None
    """The guest's open directory, kept open while it is posted."""


class Serving:
    """A program that serves by 9P; its tree is attached to when it is first mounted."""

    def __init__(self, link: NinePLink) -> None:
        self.link = link
        self.posted: Posted | None = None

    def attach(self, kernel: Kernel) -> Posted:
        """EIO."""
        if self.posted is None:
            server = NinePServer(self.link.call, MESSAGE)
            kernel.register(server)
            self.posted = Posted(server, server.root)
        return self.posted


class SrvNode(Node):
    __slots__ = ("ctime", "ino", "mtime", "posted", "serving")

    def __init__(self, mode: int, owner: Owner, ino: int, now: int) -> None:
        super().__init__(mode, owner.uid, owner.gid)
        self.ino = ino
        self.mtime = self.ctime = now
        self.posted: Posted | None = None
        self.serving: Serving | None = None


class SrvServer(FileServer):
    """Serves the directory of names. Any user may post; as in /tmp, only the owner of a name may remove it."""

    kind = "srv"

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._root = SrvNode(S_IFDIR | 0o1777, Owner(0, 0), 1, kernel.now())
        self._names: dict[str, SrvNode] = {}
        self._next_ino = 2

    # The host's side.

    def post(
        self,
        name: str,
        server: FileServer,
        *,
        read_only: bool = False,
        mode: int = 0o444,
        owner: Owner = Owner(0, 0),  # noqa: B008 - frozen
    ) -> None:
        """Offer a server. EEXIST."""
        self._kernel.register(server)
        node = self._add(name, S_IFREG | mode, owner)
        node.posted = Posted(server, server.root, read_only)

    def find(self, name: str) -> Posted:
        """ENOENT."""
        node = self._names.get(name)
        if node is None or node.posted is None:
            raise SysError(ENOENT, name)
        return node.posted

    def _add(self, name: str, mode: int, owner: Owner) -> SrvNode:
        check_name(name)
        if name in self._names:
            raise SysError(EEXIST, name)
        if len(self._names) >= POSTS_MAX:
            raise SysError(ENOSPC, name)
        node = self._names[name] = SrvNode(mode, owner, self._next_ino, self._kernel.now())
        self._next_ino += 1
        self._root.mtime = node.mtime
        return node

    # The guest's side.

    @property
    def root(self) -> Node:
        return self._root

    def walk(self, directory: Node, name: str) -> Node:
        if directory is not self._root:
            raise SysError(ENOTDIR)
        node = self._names.get(name)
        if node is None:
            check_name(name)
            raise SysError(ENOENT)
        return node

    def locate(self, directory: Node) -> None:
        return None

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        if directory is not self._root:
            raise SysError(ENOTDIR)
        return [Dirent(name, node.ino, S_IFREG) for name, node in self._names.items()]

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, SrvNode)
        links = 2 if node is self._root else int(node in self._names.values())
        return Stat(
            node.mode, node.ino, self.dev, links, node.uid, node.gid, 0, node.mtime, node.mtime, node.ctime
        )  # fmt: skip

    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        if mode & S_IFMT != S_IFREG:
            raise SysError(EPERM)
        return self._add(name, mode, owner)

    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        raise SysError(EPERM)

    def symlink(self, directory: Node, name: str, target: str, owner: Owner) -> Node:
        raise SysError(EPERM)

    def link(self, node: Node, directory: Node, name: str) -> None:
        raise SysError(EPERM)

    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        raise SysError(EPERM)

    def unlink(self, directory: Node, name: str) -> None:
        node = self.walk(directory, name)
        assert isinstance(node, SrvNode)
        del self._names[name]
        self._root.mtime = self._kernel.now()
        if node.posted is not None and node.posted.held is not None:
            node.posted.held.release()
        if node.serving is not None and node.serving.posted is None:
            node.serving.link.close("its name was removed")
        node.posted = node.serving = None

    def setattr(self, node: Node, change: SetAttr) -> None:
        assert isinstance(node, SrvNode)
        node.mode = node.mode if change.mode is None else node.mode & S_IFMT | change.mode
        node.uid = node.uid if change.uid is None else change.uid
        node.gid = node.gid if change.gid is None else change.gid
        node.mtime = node.mtime if change.mtime is None else change.mtime
        node.ctime = self._kernel.now()

    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, SrvNode)
        return SrvHandle(self, node, may_take=flags & O_ACCMODE == O_RDONLY or flags & O_ACCMODE == 2)

    def accept(self, node: SrvNode, data: bytes) -> None:
        """A guest posts an open directory of its own by number, or its end of a connection by one or two.

        EBUSY if something is posted already, EBADF, EINVAL, ENOTDIR (one number, neither a directory nor a stream).
        """
        self._check_free(node)
        words = data.split()
        if not 1 <= len(words) <= 2 or not all(word.isdigit() and len(word) < 10 for word in words):
            raise SysError(EINVAL)
        files = [self._kernel.caller().fds.get(int(word)) for word in words]
        if None in files:
            raise SysError(EBADF)
        first, last = cast("OpenFile", files[0]), cast("OpenFile", files[-1])
        mount, place = first.place
        if len(files) == 1 and place.is_dir:
            if mount.server is self:
                raise SysError(EINVAL)
            node.posted = Posted(mount.server, place, mount.read_only, first.retain())
            return
        if first.handle.seekable or last.handle.seekable:
            raise SysError(ENOTDIR)
        if first.flags & O_ACCMODE == O_WRONLY or last.flags & O_ACCMODE == O_RDONLY:
            raise SysError(EBADF)
        node.serving = Serving(NinePLink(self._kernel.hub, first, last))

    def _check_free(self, node: SrvNode) -> None:
        if node.posted is not None or node.serving is not None:
            raise SysError(EBUSY)
        if node not in self._names.values():
            raise SysError(EINVAL)

    def serve(self, node: SrvNode) -> tuple[OpenFile, OpenFile]:
        """Begin a connection with whoever has the name open: its end to read requests from, and to write answers to."""
        self._check_free(node)
        kernel = self._kernel
        requests, ask = kernel.open_pipe(kernel.caller())
        answers, answer = kernel.open_pipe(kernel.caller())
        node.serving = Serving(NinePLink(kernel.hub, answers, ask))
        return requests.retain(), answer.retain()

    def posted(self, node: SrvNode) -> Posted:
        """What is to be mounted. ENXIO, EIO."""
        if node.serving is not None:
            return node.serving.attach(self._kernel)
        if node.posted is None:
            raise SysError(ENXIO)
        return node.posted


class SrvHandle(Handle):
    """An open name: written to, to post; asked for `posted`, to mount. After `9p` it is an end of a connection."""

    __slots__ = ("_ends", "_may_take", "_node", "_server")

    def __init__(self, server: SrvServer, node: SrvNode, *, may_take: bool) -> None:
        self.nonblocking = False
        self._server = server
        self._node = node
        self._may_take = may_take
        self._ends: tuple[OpenFile, OpenFile] | None = None

    @property
    def seekable(self) -> bool:  # type: ignore[override]
        return self._ends is None

    def read(self, offset: int, size: int) -> bytes:
        if self._ends is None:
            raise SysError(EIO)
        return self._end(0).read(size)

    def write(self, offset: int | None, data: bytes) -> int:
        if self._ends is not None:
            return self._end(1).write(data)
        if data.strip() == b"9p":
            self._ends = self._server.serve(self._node)
        else:
            self._server.accept(self._node, data)
        return len(data)

    def _end(self, which: int) -> OpenFile:
        assert self._ends is not None
        end = self._ends[which]
        end.handle.nonblocking = self.nonblocking
        return end

    def poll(self) -> int:
        if self._ends is None:
            return super().poll()
        return self._ends[0].handle.poll() | self._ends[1].handle.poll()

    @property
    def waiters(self) -> WaitQueue | None:
        return None if self._ends is None else self._ends[0].handle.waiters

    def close(self) -> None:
        ends, self._ends = self._ends, None
        for end in ends or ():
            end.release()

    def truncate(self, size: int) -> None:
        """Accepted and ignored: there is nothing to truncate."""

    def size(self) -> int:
        return 0

    def ioctl(self, request: str, argument: object = None) -> object:
        if request != "posted":
            return super().ioctl(request, argument)
        if not self._may_take:
            raise SysError(EBADF)
        return self._server.posted(self._node)


def find_posted(view: View, name: str) -> Posted:
    """Return the subtree posted at `name`. EACCES, ENOENT, ENXIO (nothing yet), EIO (its program does not answer),
    EINVAL if it is no posting file.
    """
    file = view.open(name, O_RDONLY).retain()
    try:
        posted = file.handle.ioctl("posted")
    except SysError as error:
        raise SysError(error.errno if error.errno in (ENXIO, EIO) else EINVAL, name, error.why) from None
    finally:
        file.release()
    assert isinstance(posted, Posted)
    return posted


def mount_posted(
    view: View, name: str, path: str, *, order: Order = "replace", creates: bool = True, read_only: bool = False
) -> None:
    """Mount what is posted at the path `name` (mount(1)). The errors of `find_posted` and of mounting."""
    posted = find_posted(view, name)
    view.namespace.mount(
        view.resolve(path),
        posted.server,
        posted.root,
        order=order,
        creates=creates,
        read_only=read_only or posted.read_only,
        source=name,
    )


def set_timeout(view: View, name: str, seconds: float) -> None:
    """Say how long the program that serves what is posted at `name` may take for an answer."""
    node = view.resolve(name).node
    if isinstance(node, SrvNode) and node.serving is not None:
        node.serving.link.seconds = seconds
