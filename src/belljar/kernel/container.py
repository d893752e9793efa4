"""Containers: processes with a root, pids, terminals, /proc and a host name of their own.

A container is a pid space inside its parent's, and a namespace over a root server. Its first process is pid 1 there:
it adopts the container's orphans, and when it ends everything in the container does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from belljar.abi.errno import EINVAL, ENOSPC, EPERM, ESRCH
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT
from belljar.abi.paths import dirname
from belljar.kernel.budget import Budget
from belljar.kernel.fdtable import FdTable
from belljar.kernel.fs.dev import DevServer
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.proc import ProcServer
from belljar.kernel.fs.quota import PartialQuota
from belljar.kernel.pids import PidSpace, Session
from belljar.kernel.process import Body, Process
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.namespace import Mount, Namespace
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.server import FileServer, Node
from belljar.kernel.vfs.view import View

if TYPE_CHECKING:
    from belljar.kernel.fs.proc_net import TcpSocket

DEPTH_MAX: Final = 32
HOSTNAME_MAX: Final = 64
STANDARD: Final = (0, 1, 2)


class Network(Protocol):
    """A container's network: its file servers and where they are mounted, its address, its sockets."""

    servers: list[tuple[FileServer, str]]
    address: str

    def sockets(self) -> list[TcpSocket]: ...
    def publish(self, outside: int, inside: int) -> None:
        """Have a port of the sandbox lead to one in here. EADDRINUSE."""

    def close(self) -> None:
        """End all connections, and free the ports. Idempotent."""


class Volume(Struct, frozen=True):
    """A directory or file from outside, and where it is to appear; missing directories are made."""

    mount_of: Mount
    node: Node
    target: str
    read_only: bool = False

    def mount(self, view: View) -> None:
        view.makedirs(self.target if self.node.is_dir else dirname(self.target), 0o755)
        if not self.node.is_dir:
            view.open(self.target, O_CREAT).retain().release()
        view.namespace.mount(
            view.resolve(self.target),
            self.mount_of.server,
            self.node,
            read_only=self.read_only or self.mount_of.read_only,
            source=self.mount_of.source,
        )


class Settle(Struct, frozen=True):
    """Where a container's init belongs."""

    parent: Process
    budget: Budget
    files: dict[int, OpenFile]
    on_exit: Callable[[Process], None]


class Container:
    """One container, from the start of its init to its end."""

    def __init__(
        self,
        creator: Process,
        root: FileServer,
        init: Body,
        argv: list[str],
        *,
        hostname: str = "container",
        env: dict[str, str] | None = None,
        credentials: Credentials = Credentials(),  # noqa: B008 - frozen
        cwd: str = "/",
        read_only: bool = False,
        volumes: Sequence[Volume] = (),
        network: Network | None = None,
        settle: Settle | None = None,
        shared_bytes: int | None = None,
    ) -> None:
        """Start `init` as pid 1. It belongs to the creator's budget, and gets only its standard streams, unless there
        is a `settle`, which says whose child it is, within which budget and with which descriptors. `shared_bytes`
        limits what is in /dev/shm.

        EPERM unless the creator is root, ENOSPC (nested too deep), EINVAL (host name), ENOENT (cwd, or no directory
        for /dev or /proc in a read-only root).
        """
        if creator.fs.credentials.uid != 0:
            raise SysError(EPERM)
        if not 0 < len(hostname) <= HOSTNAME_MAX:
            raise SysError(EINVAL)
        self.space = PidSpace(creator.space)
        self.space.hostname = hostname
        if network is not None:
            self.space.address, self.space.tcp_sockets = network.address, network.sockets
        if _depth(self.space) > DEPTH_MAX:
            raise SysError(ENOSPC)
        kernel = creator.kernel
        quota = kernel.quota if shared_bytes is None else PartialQuota(kernel.quota, shared_bytes)
        self.shared_memory = MemoryServer(kernel.now, quota, mode=0o1777)
        """/dev/shm; whoever hears of the container's end clears it."""
        view = self._view(creator, root, network, read_only=read_only)
        for volume in volumes:
            volume.mount(view)
        view.chdir(cwd)
        view.credentials = credentials
        self.init = self._start(creator, view, init, argv, dict(env or {}), settle)

    def _view(self, creator: Process, root: FileServer, network: Network | None, *, read_only: bool) -> View:
        kernel = creator.kernel
        kernel.register(root)
        namespace = Namespace(Mount(root, root.root, None, read_only=read_only, source=root.kind))
        view = View(
            namespace,
            Credentials(),
            open_fifo=creator.fs.open_fifo,
            now=creator.fs.now,
            lookup_cache=creator.fs.lookup_cache,
        )
        servers: list[tuple[FileServer, str]] = [(DevServer(kernel), "/dev"), (ProcServer(kernel, self.space), "/proc")]
        if network is not None:
            servers += network.servers
        for server, path in servers:
            if not read_only:
                view.makedirs(path, 0o755)
            kernel.register(server)
            view.mount(server, path, source=server.kind)
        kernel.register(self.shared_memory)
        view.mount(self.shared_memory, "/dev/shm", source=self.shared_memory.kind)
        return view

    def run(
        self,
        creator: Process,
        body: Body,
        argv: list[str],
        *,
        env: dict[str, str] | None = None,
        credentials: Credentials | None = None,
        cwd: str = "/",
    ) -> Process:
        """A further process in the container, a child of one outside it. ESRCH once the container has ended."""
        if self.init.status is not None:
            raise SysError(ESRCH)
        view = self.init.fs.fork()
        view.chdir(cwd)
        if credentials is not None:
            view.credentials = credentials
        return self._start(creator, view, body, argv, dict(self.init.env if env is None else env))

    def _start(
        self,
        creator: Process,
        view: View,
        body: Body,
        argv: list[str],
        env: dict[str, str],
        settle: Settle | None = None,
    ) -> Process:
        creator.budget.charge(20)
        parent, budget = (creator, creator.budget) if settle is None else (settle.parent, settle.budget)
        if budget.processes >= budget.limits.processes:
            budget.exceed("processes")
        fds = FdTable(budget.limits.open_files)
        for fd in STANDARD:
            file = creator.fds.get(fd) if settle is None else settle.files.get(fd)
            if file is not None:
                fds.put(fd, file)
        process = Process(
            creator.kernel,
            parent,
            space=self.space,
            session=Session(0),
            view=view,
            fds=fds,
            budget=budget,
            env=env,
            argv=list(argv),
        )
        process.session = Session(process.pid)
        budget.processes += 1
        parent.children.append(process)
        if settle is not None:
            process.on_exit = settle.on_exit
        process.start_fiber(body)
        return process


def _depth(space: PidSpace | None) -> int:
    depth = -1
    while space is not None:
        depth, space = depth + 1, space.parent
    return depth
