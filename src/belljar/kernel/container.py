"""Containers: processes with a root, pids, terminals, /proc and a host name of their own.

A container is a pid space inside its parent's, and a namespace over a root server. Its first process is pid 1 there:
it adopts the container's orphans, and when it ends everything in the container does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belljar.abi.errno import EEXIST, EINVAL, ENOSPC, EPERM, ESRCH
from belljar.abi.errors import SysError
from belljar.kernel.fdtable import FdTable
from belljar.kernel.fs.dev import DevServer
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.proc import ProcServer
from belljar.kernel.pids import PidSpace, Session
from belljar.kernel.process import Body, Process
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.namespace import Mount, Namespace
from belljar.kernel.vfs.view import View

if TYPE_CHECKING:
    from belljar.kernel.vfs.openfile import OpenFile
    from belljar.kernel.vfs.server import FileServer

DEPTH_MAX: Final = 32
HOSTNAME_MAX: Final = 64
STANDARD: Final = (0, 1, 2)


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
    ) -> None:
        """Start `init` as pid 1. It belongs to the creator's budget, and gets only its standard streams.

        EPERM unless the creator is root, ENOSPC (nested too deep), EINVAL (host name), ENOENT (cwd, or no directory
        for /dev or /proc in a read-only root).
        """
        if creator.fs.credentials.uid != 0:
            raise SysError(EPERM)
        if not 0 < len(hostname) <= HOSTNAME_MAX:
            raise SysError(EINVAL)
        self.space = PidSpace(creator.space)
        self.space.hostname = hostname
        if _depth(self.space) > DEPTH_MAX:
            raise SysError(ENOSPC)
        view = self._view(creator, root, read_only=read_only)
        view.chdir(cwd)
        view.credentials = credentials
        self.init = self._start(creator, view, init, argv, dict(env or {}))

    def _view(self, creator: Process, root: FileServer, *, read_only: bool) -> View:
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
        for server, path in ((DevServer(kernel), "/dev"), (ProcServer(kernel, self.space), "/proc")):
            if not read_only:
                try:
                    view.mkdir(path)
                except SysError as error:
                    if error.errno != EEXIST:
                        raise
            kernel.register(server)
            view.mount(server, path, source=server.kind)
        shared = MemoryServer(kernel.now, kernel.quota, mode=0o1777)
        kernel.register(shared)
        view.mount(shared, "/dev/shm", source=shared.kind)
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

    def _start(self, creator: Process, view: View, body: Body, argv: list[str], env: dict[str, str]) -> Process:
        budget = creator.budget
        budget.charge(20)
        if budget.processes >= budget.limits.processes:
            budget.exceed("processes")
        fds = FdTable(budget.limits.open_files)
        for fd in STANDARD:
            file: OpenFile | None = creator.fds.get(fd)
            if file is not None:
                fds.put(fd, file)
        process = Process(
            creator.kernel,
            creator,
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
        creator.children.append(process)
        process.start_fiber(body)
        return process


def _depth(space: PidSpace | None) -> int:
    depth = -1
    while space is not None:
        depth, space = depth + 1, space.parent
    return depth
