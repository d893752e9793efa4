"""The kernel: the processes, the programs they can run, and the machine underneath."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from belljar.abi.errno import EPERM
from belljar.abi.errors import BudgetExceeded, OutputError, SysError
from belljar.abi.flags import O_RDONLY, O_WRONLY, S_IFSOCK
from belljar.abi.limits import Limits
from belljar.abi.signals import Signal
from belljar.kernel.budget import Budget
from belljar.kernel.engines import Companion, Engines, NoEngines
from belljar.kernel.fdtable import FdTable
from belljar.kernel.fiber import Fiber, FiberKilled, Hub
from belljar.kernel.fs.proc_net import TcpSocket
from belljar.kernel.fs.quota import Quota
from belljar.kernel.loader import Program
from belljar.kernel.lookup_cache import LookupCache
from belljar.kernel.machine import Machine, never_backwards
from belljar.kernel.pids import PidSpace, Session
from belljar.kernel.pipe import Outlet, Pipe, PipeEnd, PipeNode, PipeServer
from belljar.kernel.process import IGNORE, Body, Process
from belljar.kernel.status import EXITED, ExitStatus, ProcessExit, WaitResult
from belljar.kernel.stdio import NOWHERE
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.namespace import Mount, Namespace, Place
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.server import FileServer
from belljar.kernel.vfs.view import View

BugReport = Callable[[Process, BaseException], str]
"""Takes an exception that is our own fault, returns the id the guest may see."""


def no_programs(_name: str) -> Program | None:
    return None


def no_binaries(_head: bytes) -> Callable[[str], Program] | None:
    return None


class Kernel:
    """One sandbox's virtual kernel. `init` (pid 1) exists from the start and adopts orphans."""

    def __init__(
        self,
        machine: Machine,
        root: FileServer,
        *,
        limits: Limits | None = None,
        quota: Quota | None = None,
        programs: Callable[[str], Program | None] = no_programs,
        binary_loader: Callable[[bytes], Callable[[str], Program] | None] = no_binaries,
        hostname: str = "belljar",
        now: Callable[[], int] | None = None,
    ) -> None:
        self.machine = machine
        self.now = never_backwards(machine.clock.time_ns) if now is None else now
        """The time of changes to files, in ns."""
        self.limits = limits if limits is not None else Limits()
        self.quota = quota if quota is not None else Quota(self.limits.file_bytes, self.limits.files)
        self.hub = Hub(machine.clock, machine.poller)
        self.hub.on_crash = self._fiber_crashed
        self.programs = programs
        self.binary_loader = binary_loader
        self.engines: Engines = NoEngines()
        self.companion: Companion | None = None
        """Runs native programs, where the owner granted some."""
        self.outer_programs: set[str] = set()
        """Programs that reach beyond the kernel (the owner's tools, native ones): not to be run in containers."""
        self.elf_loader: Callable[[str], Program] | None = None
        """Gives the program that an ELF file is, where the owner granted all."""
        self.branched = 0
        """How often this kernel was forked: earlier random state is shared with the other branch."""
        self.hostname = hostname
        self.boot_ns = machine.clock.time_ns()
        self.boot_monotonic = machine.clock.monotonic()
        self.cpu = 0.0
        self._steps = 0
        """Steps of execs that have ended."""
        self.lookup_cache = LookupCache()
        """Cached lookups of commands and directories."""
        self._mounts_gone = False
        """Whether a process with mounts of its own has ended since the cache was cleared."""
        self.report_bug: BugReport = _raise_bug
        self.tcp_sockets: Callable[[], list[TcpSocket]] = list
        """The listeners and connections that /proc/net shows."""
        self._next_dev = 1
        self.pipes = PipeServer(self.hub)
        self._pipe_mount = Mount(self.pipes, self.pipes.root, None)
        self.register(self.pipes)
        self.register(root)
        namespace = Namespace(Mount(root, root.root, None, source=root.kind))
        view = View(
            namespace,
            Credentials(),
            open_fifo=self.pipes.open_fifo,
            now=self.now,
            lookup_cache=self.lookup_cache,
        )
        space = PidSpace()
        self.init = Process(
            self,
            None,
            space=space,
            session=Session(1),
            view=view,
            fds=FdTable(self.limits.open_files),
            budget=Budget(self.limits, self.hub),
            env={},
            argv=["init"],
        )

    def register(self, server: FileServer) -> None:
        """Give a server the device number that tells its files from others'."""
        if server.dev == 0:
            server.dev = self._next_dev
            server.changes = self.lookup_cache.changes
            self._next_dev += 1

    def configure(self, hostname: str, limits: Limits) -> None:
        """Set hostname and limits of a kernel made in advance; execs already started keep theirs."""
        self.hostname = hostname
        self.boot_ns = self.machine.clock.time_ns()
        self.boot_monotonic = self.init.start = self.machine.clock.monotonic()
        self.limits = limits
        self.quota.bytes_limit = limits.file_bytes
        self.quota.files_limit = limits.files

    @property
    def memory_bytes(self) -> int:
        """Memory as programs see it: the sandbox's limit, or the host's memory if that is less."""
        return min(self.limits.memory_bytes, self.machine.memory_bytes)

    @property
    def steps(self) -> int:
        """Steps charged to all execs so far."""
        running = {process.budget for process in self.init.space.table.values()} - {self.init.budget}
        return self._steps + sum(budget.earlier + budget.steps for budget in running)

    def caller(self) -> Process:
        """The process on whose behalf we run; init for the host's own requests."""
        fiber = self.hub.current
        owner = fiber.owner if fiber is not None else None
        return owner if isinstance(owner, Process) else self.init

    # Starting.

    def start(
        self,
        body: Body,
        argv: list[str],
        *,
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        credentials: Credentials | None = None,
        cwd: str = "/",
        files: dict[int, OpenFile] | None = None,
        on_exit: Callable[[Process], None] | None = None,
    ) -> Process:
        """The first process of an exec: a child of init with a session and a budget of its own."""
        budget = Budget(self.limits.narrowed(limits) if limits is not None else self.limits, self.hub)
        process = self._copy(self.init, argv, FdTable(budget.limits.open_files), budget)
        process.env = env if env is not None else {}
        if credentials is not None:
            process.fs.credentials = credentials
        process.session = Session(process.pid)
        try:
            process.fs.chdir(cwd)
            if files is not None:
                process.fds.fill(files)
                self._give(files, process.fs.credentials)
        except SysError:
            self.finish(process, ExitStatus(1))
            raise
        process.on_exit = on_exit
        budget.timer = self.hub.call_at(budget.deadline, lambda: self._out_of_time(budget))
        process.start_fiber(body)
        return process

    def _give(self, files: Mapping[int, OpenFile], owner: Credentials) -> None:
        """Give pipes among its streams to the user, so that a process can reopen them by name (/dev/stdout)."""
        for file in files.values():
            node = file.place[1]
            if isinstance(node, PipeNode):
                node.uid, node.gid = owner.uid, owner.gid

    def fork(self, parent: Process, argv: list[str], fds: FdTable | None = None) -> Process:
        """A child that is the same in everything; its descriptors are `fds` (taken over) if they were made already."""
        budget = parent.budget
        budget.charge(20)
        if budget.processes >= budget.limits.processes:
            budget.exceed("processes")
        child = self._copy(parent, argv, fds if fds is not None else parent.fds.fork(), budget)
        child.depth = parent.depth
        child.nice = parent.nice
        child.pgid = parent.pgid
        child.executable = parent.executable
        if parent.handlers:
            child.handlers = dict(parent.handlers)
        child.rlimits = parent.rlimits
        child.blocked = parent.blocked
        return child

    def _copy(self, parent: Process, argv: list[str], fds: FdTable, budget: Budget) -> Process:
        # By position: Python makes a dictionary of what a class is called with by name.
        child = Process(self, parent, parent.space, parent.session, parent.fs.fork(), fds, budget, parent.env, argv)
        budget.processes += 1
        parent.children.append(child)
        return child

    def new_session(self, process: Process) -> None:
        if process.pgid == process.pid:
            raise SysError(EPERM)
        process.session = Session(process.pid)
        process.pgid = process.pid

    def open_pipe(self, process: Process) -> tuple[OpenFile, OpenFile]:
        node = self.new_pipe(process)
        place = Place(self._pipe_mount, node)
        name = f"pipe:[{node.ino}]"
        return (
            OpenFile(PipeEnd(node.pipe, O_RDONLY), O_RDONLY, place, name),
            OpenFile(PipeEnd(node.pipe, O_WRONLY), O_WRONLY, place, name),
        )

    def open_socket(self, process: Process) -> tuple[OpenFile, OpenFile]:
        """A pipe that looks like a socket: programs that read a pipe unasked (rg) don't take it for input."""
        reader, writer = self.open_pipe(process)
        reader.place.node.mode = S_IFSOCK | 0o777
        return reader, writer

    def open_inlet(self, process: Process, data: bytes) -> OpenFile:
        """The read end of a pipe that holds all of its input already, however much that is."""
        node = self.new_pipe(process)
        reader = self.open_end(node, O_RDONLY)
        node.pipe.hold(data)
        return reader

    def open_outlet(self, process: Process, outlet: Outlet) -> OpenFile:
        """The write end of a pipe to `outlet`."""
        return self.open_end(self.new_pipe(process, outlet), O_WRONLY)

    def new_pipe(self, process: Process, pipe: Pipe | None = None) -> PipeNode:
        """The file of a pipe, which is a new one if none is given."""
        who = process.fs.credentials
        return self.pipes.new(who.uid, who.gid, self.now(), pipe)

    def open_end(self, node: PipeNode, access: int) -> OpenFile:
        return OpenFile(PipeEnd(node.pipe, access), access, Place(self._pipe_mount, node), f"pipe:[{node.ino}]")

    # Running and ending.

    def run_main(self, process: Process, body: Body) -> None:
        """The frame that owns a process's main fiber: everything a program can do ends here."""
        status = ExitStatus(0, Signal.KILL)
        try:
            try:
                code = body(process)
                process.stdout.flush()
                status = EXITED[code & 0xFF]
            except ProcessExit as end:
                if not end.status.signal:
                    process.stdout.flush()
                status = end.status
        except ProcessExit as end:
            status = end.status
        except FiberKilled:
            status = process.fatal or status
        except BudgetExceeded as spent:
            self.kill_budget(process.budget, spent)
        except RecursionError:
            process.budget.spend("depth")
            self.kill_budget(process.budget)
        except MemoryError:
            process.budget.spend("memory_bytes")
            self.kill_budget(process.budget)
        except (SysError, OutputError):
            # A flush at exit that failed (EPIPE with SIGPIPE ignored, ENOSPC) or a program that let one through.
            status = ExitStatus(1)
        except Exception as error:  # noqa: BLE001 - the frame that owns the process: our bug, not the guest's
            self._bug(process, error)
            status = ExitStatus(0, Signal.ABRT)
        finally:
            self.finish(process, status)

    def finish(self, process: Process, status: ExitStatus) -> None:
        """End a process: close its files, reparent its children, notify its parent."""
        if process.status is not None:
            return
        process.status = status
        current = self.hub.current
        for fiber in process.fibers:
            if fiber is not current:
                self.hub.kill(fiber)
        process.fibers = []
        process.fds.close_all()
        if process.fs.namespace.tops is not self.init.fs.namespace.tops:
            process.fs.let_go()
            self._mounts_gone = True
        budget = process.budget
        budget.processes -= 1
        if budget.processes == 0:
            self._steps += budget.earlier + budget.steps
            if budget.timer is not None:
                budget.timer.cancel()
            if budget.spent is not None:
                budget.spent.__traceback__ = None  # it leads back to the budget, and to all that was in hand
            if self._mounts_gone:
                self._mounts_gone = False
                self.lookup_cache.clear()  # it keeps mount tables
        if process.pid == 1 and process is not self.init:
            for other in list(process.space.table.values()):
                if other is not process:
                    other.deliver(Signal.KILL)
        if process.children:
            self._orphan(process)
        if process.session.leader == process.pid and process.session.tty is not None:
            self.signal_group(process.session.foreground, Signal.HUP, but=process, space=process.space)
            self.signal_group(process.session.foreground, Signal.CONT, but=process, space=process.space)
            process.session.tty.release()
        self.announce(process, WaitResult(0, status))
        process.handlers = {}
        process.stdout = NOWHERE
        on_exit, process.on_exit = process.on_exit, None
        if on_exit is not None:
            on_exit(process)

    def announce(self, process: Process, news: WaitResult) -> None:
        """Notify the parent of a child's change; children of init are reaped at once."""
        parent = process.parent
        if parent is None or parent is self.init or parent.handlers.get(Signal.CHLD) is IGNORE:
            if process.status is not None:
                process.space.remove(process)
                if parent is not None and process in parent.children:
                    parent.children.remove(process)
                    parent.wake_waiters()
            return
        if parent.reaps_at_once and process.status is not None:
            process.space.remove(process)
        parent.tell_parent(WaitResult(process.pids[parent.space], news.status, news.stopped, news.continued))
        if parent.handlers or parent.blocked:
            parent.deliver(Signal.CHLD)

    def _orphan(self, process: Process) -> None:
        """Reparent the children of an ended process to the init of their pid space."""
        children, process.children = process.children, []
        stopped = {(p.space, p.pgid) for p in self.init.space.table.values() if p.stopped}
        for child in children:
            # A container's init is told of them; the kernel's forgets at once.
            heir = child.space.table.get(1, self.init)
            if heir is process or heir.status is not None:
                heir = self.init
            child.parent = heir
            if child.status is None:
                heir.children.append(child)
                if (child.space, child.pgid) in stopped and self.is_orphaned(child):
                    self.signal_group(child.pgid, Signal.HUP, space=child.space)
                    self.signal_group(child.pgid, Signal.CONT, space=child.space)
            elif heir is self.init:
                child.space.remove(child)
            else:
                heir.children.append(child)
                self.announce(child, WaitResult(0, child.status))

    def group(self, member: Process) -> list[Process]:
        """The live processes of a process's group."""
        space, pgid = member.space, member.pgid
        return [p for p in space.table.values() if p.pgid == pgid and p.space is space and p.status is None]

    def is_orphaned(self, member: Process) -> bool:
        """Whether no parent outside a process's group, but in its session, could continue it."""
        return not any(
            p.parent is not None and p.parent.session is p.session and p.parent.pgid != p.pgid
            for p in self.group(member)
        )

    def reap(self, parent: Process, child: Process) -> None:
        """An ended child was waited for: its number is free."""
        parent.children.remove(child)
        parent.children_cpu += child.cpu + child.children_cpu
        child.space.remove(child)

    def signal_group(self, pgid: int, number: int, *, space: PidSpace | None, but: Process | None = None) -> None:
        """Signal a group, by its number in a pid space; None: of a session that never had a terminal."""
        space = space if space is not None else self.init.space
        for process in list(space.table.values()):
            if process.pgid == pgid and process.space is space and process is not but:
                process.deliver(number)

    def members(self, budget: Budget) -> list[Process]:
        """The live processes of one exec."""
        return [
            p for p in self.init.space.table.values() if p.budget is budget and p.status is None and p is not self.init
        ]

    def kill_budget(self, budget: Budget, spent: BudgetExceeded | None = None) -> None:
        """End every process of an exec."""
        if spent is not None and budget.spent is None:
            budget.spend(spent.limit)
        for process in self.members(budget):
            process.terminate(ExitStatus(0, Signal.KILL))

    def _out_of_time(self, budget: Budget) -> None:
        budget.spend("wall_seconds")
        self.kill_budget(budget)

    def _bug(self, process: Process, error: BaseException) -> None:
        token = self.report_bug(process, error)
        process.error(f"{process.name}: internal error {token}\n")

    def _fiber_crashed(self, fiber: Fiber, error: BaseException) -> None:
        """A further fiber of a process ended badly: as if its main one had."""
        process = fiber.owner
        if not isinstance(process, Process):
            raise error
        if isinstance(error, BudgetExceeded):
            self.kill_budget(process.budget, error)
        elif isinstance(error, ProcessExit):
            process.terminate(error.status)
        elif isinstance(error, (SysError, OutputError)):
            process.terminate(ExitStatus(1))
        else:
            self._bug(process, error)
            process.terminate(ExitStatus(0, Signal.ABRT))


def _raise_bug(_process: Process, error: BaseException) -> str:
    raise error
