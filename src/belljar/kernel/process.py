"""A process: what a program sees of the kernel. Utilities and the shell get one of these and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from belljar.abi.errno import ECHILD, EFBIG, EINTR, EINVAL, ENOTTY, EPERM, EPIPE, ESRCH
from belljar.abi.errors import SysError
from belljar.abi.flags import (
    O_APPEND,
    O_CLOEXEC,
    O_CREAT,
    O_RDONLY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
    POLLERR,
    POLLHUP,
    WCONTINUED,
    WNOHANG,
    WUNTRACED,
)
from belljar.abi.paths import fsencode, join, normalise
from belljar.abi.records import Stat
from belljar.abi.signals import IGNORED_BY_DEFAULT, STOPPING, UNCATCHABLE, Signal
from belljar.kernel.budget import Budget
from belljar.kernel.fdtable import FdTable
from belljar.kernel.fiber import Fiber, WaitQueue
from belljar.kernel.loader import load, search_path
from belljar.kernel.status import ExitStatus, ProcessExit, WaitResult
from belljar.kernel.stdio import Writer
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.view import View

if TYPE_CHECKING:
    from belljar.kernel.engines import EngineProgram
    from belljar.kernel.kernel import Kernel
    from belljar.kernel.pids import PidSpace, Session

CHUNK: Final = 1 << 18

Body = Callable[["Process"], int]
Handler = Callable[[int], None]
"""Called when a caught signal arrives, in whichever fiber is running: it must only record the number."""


class Ignore:
    """The disposition SIG_IGN."""


IGNORE: Final = Ignore()


class Process:
    """One virtual process. Files by path are `process.fs`; descriptors, children and signals are here."""

    __slots__ = (
        "_child_waiters",
        "_fatal",
        "_news",
        "argv",
        "blocked",
        "budget",
        "children",
        "children_cpu",
        "cpu",
        "depth",
        "engine",
        "env",
        "executable",
        "fds",
        "fibers",
        "fs",
        "handlers",
        "interrupted",
        "kernel",
        "nice",
        "on_exit",
        "parent",
        "pending",
        "pgid",
        "pid",
        "pids",
        "reaps_at_once",
        "rlimits",
        "session",
        "space",
        "start",
        "status",
        "stdout",
        "stopped",
    )

    def __init__(
        self,
        kernel: Kernel,
        parent: Process | None,
        space: PidSpace,
        session: Session,
        view: View,
        fds: FdTable,
        budget: Budget,
        env: Mapping[str, str],
        argv: list[str],
    ) -> None:
        self.kernel = kernel
        self.parent = parent
        self.space = space
        self.session = session
        self.fs = view
        self.fds = fds
        self.budget = budget
        self.env = env
        """Replaced, never changed in place: children share it."""
        self.argv = argv
        self.executable = ""
        self.depth = 0
        self.nice = 0
        self.cpu = 0.0
        """Processor seconds, as the CPU guard counts them."""
        self.children_cpu = 0.0
        """Processor seconds of children waited for, and of theirs."""
        self.children: list[Process] = []
        self.reaps_at_once = False
        """Whether a child's pid is free as soon as it ends, as if SIGCHLD's handler called wait (shells do)."""
        self.status: ExitStatus | None = None
        self.stopped: int = 0
        self.start = kernel.hub.clock.monotonic()
        self.fibers: list[Fiber] = []
        self.pids: dict[PidSpace, int] = {}
        self.pid = space.enroll(self)
        self.pgid = self.pid
        self.handlers: dict[int, Handler | Ignore] = {}
        self.rlimits: dict[str, tuple[int | None, int | None]] = {}
        """Soft and hard limits set by `ulimit`, by its letter; None is unlimited. Replaced, never changed in place."""
        self.blocked: frozenset[int] = frozenset()
        self.pending: list[int] = []
        self.interrupted = False
        self.on_exit: Callable[[Process], None] | None = None
        self.engine: EngineProgram | None = None
        """The engine that runs its program, if that is an interpreter driven by the owner."""
        self._fatal: ExitStatus | None = None
        self._news: list[WaitResult] = []
        self._child_waiters: WaitQueue | None = None
        self.stdout = Writer(self, 1)

    # Names and text.

    @property
    def name(self) -> str:
        """The program's name, without the path it was called by."""
        return self.argv[0].rpartition("/")[2] if self.argv else "?"

    @property
    def hostname(self) -> str:
        space: PidSpace | None = self.space
        while space is not None:
            if space.hostname is not None:
                return space.hostname
            space = space.parent
        return self.kernel.hostname

    def print(self, text: str, end: str = "\n") -> None:
        self.stdout.write(fsencode(text + end))

    @property
    def called(self) -> str:
        """The program as it was called, path and all: what GNU's messages begin with."""
        return self.argv[0] if self.argv else "?"

    def warn(self, message: str) -> None:
        """`name: message` on stderr, after what a utility has written to stdout so far, as error(3) does.

        Raises OutputError if that can't be written; the message is written all the same.
        """
        try:
            if self.stdout.guarded:
                self.stdout.flush()
        finally:
            self.error(f"{self.called}: {message}\n")

    def error(self, text: str) -> None:
        """Text on stderr as it is; nothing to do if even that can't be written."""
        try:
            self.write_all(2, fsencode(text))
        except SysError:
            return

    def absolute(self, path: str) -> str:
        """A relative path as it would be written from the root; itself if this directory was removed."""
        try:
            return normalise(join(self.fs.getcwd(), path))
        except SysError:
            return path

    def parent_namespace(self) -> View:
        """Our own view, sharing the mount table of whoever started us: what `bind` run from a shell must change.

        A process's mounts are its own; a command that changes them would change nothing for anyone. Only a process of
        the same user lends its table this way, and never init.
        """
        view = self.fs.fork()
        parent = self.parent
        if parent is not None and parent is not self.kernel.init and parent.fs.credentials == self.fs.credentials:
            view.namespace = parent.fs.namespace
        else:
            view.namespace = self.fs.namespace
        return view

    def system_namespace(self) -> View:
        """Our own view, sharing init's mount table, which every later command begins with. EPERM unless we are root."""
        if self.fs.credentials.uid != 0:
            raise SysError(EPERM)
        view = self.fs.fork()
        view.namespace = self.space.table[1].fs.namespace
        return view

    # Files by descriptor.

    def open(self, path: str, flags: int = O_RDONLY, mode: int = 0o666) -> int:
        file = self.fs.open(path, flags, mode)
        if path[0] != "/":
            file.base = self.fs.cwd
        return self.fds.add(file, cloexec=bool(flags & O_CLOEXEC))

    def close(self, fd: int) -> None:
        self.fds.close(fd)

    def read(self, fd: int, size: int = CHUNK) -> bytes:
        file = self.fds[fd]
        self.budget.charge()
        return file.read(size)

    def write(self, fd: int, data: bytes) -> int:
        """Write at most all of `data`. A pipe without readers: SIGPIPE, then EPIPE if that is ignored or caught."""
        file = self.fds[fd]
        self.budget.charge()
        if self.rlimits:
            start = file.handle.size() if file.flags & O_APPEND and file.handle.seekable else file.offset
            data = self._within_file_size(file, data, start)
        try:
            return file.write(data)
        except SysError as error:
            if error.errno == EPIPE:
                self.raise_signal(Signal.PIPE)
            raise

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        file = self.fds[fd]
        return file.pwrite(self._within_file_size(file, data, offset) if self.rlimits else data, offset)

    def _within_file_size(self, file: OpenFile, data: bytes, start: int) -> bytes:
        """The part of `data` that RLIMIT_FSIZE allows. SIGXFSZ, then EFBIG, if that is nothing."""
        soft, _ = self.rlimits.get("f", (None, None))
        if soft is None or not file.handle.seekable:
            return data
        room = soft - start
        if room <= 0 and data:
            self.raise_signal(Signal.XFSZ)
            raise SysError(EFBIG)
        return data[:room]

    def write_all(self, fd: int, data: bytes) -> None:
        count = self.write(fd, data)
        while count < len(data):
            data = data[count:]
            count = self.write(fd, data)

    def seek(self, fd: int, offset: int, whence: int = 0) -> int:
        return self.fds[fd].seek(offset, whence)

    def fstat(self, fd: int) -> Stat:
        return self.fds[fd].stat()

    def dup(self, fd: int, lowest: int = 0, *, cloexec: bool = False) -> int:
        return self.fds.add(self.fds[fd], lowest=lowest, cloexec=cloexec)

    def dup2(self, fd: int, target: int, *, cloexec: bool = False) -> None:
        self.fds.put(target, self.fds[fd], cloexec=cloexec)

    def pipe(self, *, cloexec: bool = False) -> tuple[int, int]:
        """The read end and the write end."""
        reader, writer = self.kernel.open_pipe(self)
        fd = self.fds.add(reader, cloexec=cloexec)
        try:
            return fd, self.fds.add(writer, cloexec=cloexec)
        except SysError:
            self.fds.close(fd)
            raise

    def isatty(self, fd: int) -> bool:
        file = self.fds.get(fd)
        if file is None or not file.handle.may_be_terminal:
            return False
        try:
            file.handle.ioctl("isatty")
        except SysError:
            return False
        return True

    def ioctl(self, fd: int, request: str, argument: object = None) -> object:
        """Device control by name. ENOTTY, EBADF."""
        return self.fds[fd].handle.ioctl(request, argument)

    def poll(self, wanted: Mapping[int, int], timeout: float | None = None) -> dict[int, int]:
        """Wait until one of the descriptors is ready for what is wanted of it (or hung up, or broken).

        {} when the timeout (seconds) passed. EINTR if a caught signal arrived.
        """
        hub = self.kernel.hub
        fiber = hub.current
        assert fiber is not None
        until = None if timeout is None else hub.clock.monotonic() + timeout
        self.interrupted = False
        while True:
            ready: dict[int, int] = {}
            queues: list[WaitQueue] = []
            for fd, events in wanted.items():
                handle = self.fds[fd].handle
                if found := handle.poll() & (events | POLLERR | POLLHUP):
                    ready[fd] = found
                elif handle.waiters is not None:
                    queues.append(handle.waiters)
            if ready or (until is not None and hub.clock.monotonic() >= until):
                return ready
            self.check_interrupted()
            timer = hub.call_at(until, lambda: hub.unpark(fiber)) if until is not None else None
            for queue in queues:
                queue.add(fiber)
            try:
                hub.park()
            finally:
                for queue in queues:
                    queue.discard(fiber)
                if timer is not None:
                    timer.cancel()

    # Whole files, for utilities.

    def chunks(self, name: str, size: int = CHUNK) -> Iterator[bytes]:
        """The contents of a file piece by piece; `-` is standard input."""
        if name == "-":
            while data := self.read(0, size):
                yield data
            return
        fd = self.open(name, O_RDONLY | O_CLOEXEC)
        try:
            while data := self.read(fd, size):
                yield data
        finally:
            if fd in self.fds:
                self.close(fd)

    def read_file(self, name: str) -> bytes:
        """Read all of a file; `-` is standard input. Refused past the expansion limit before memory is taken."""
        return self._gather(self.chunks(name, 1 << 22))

    def read_to_end(self, fd: int) -> bytes:
        """Read a descriptor to its end, as `read_file` does."""
        return self._gather(iter(partial(self.read, fd), b""))

    def _gather(self, chunks: Iterable[bytes]) -> bytes:
        parts: list[bytes] = []
        total = 0
        for data in chunks:
            total += len(data)
            self.budget.charge_size(total)
            parts.append(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def try_read(self, name: str) -> bytes | None:
        """As `read_file`; None for any error."""
        try:
            return self.read_file(name)
        except SysError:
            return None

    def write_file(self, name: str, data: bytes, mode: int = 0o666, flags: int = O_WRONLY | O_CREAT | O_TRUNC) -> None:
        fd = self.open(name, flags | O_CLOEXEC, mode)
        try:
            self.write_all(fd, data)
        finally:
            self.close(fd)

    # Time.

    def sleep(self, seconds: float) -> None:
        """EINTR if a caught signal arrived."""
        hub = self.kernel.hub
        fiber = hub.current
        assert fiber is not None
        until = hub.clock.monotonic() + seconds
        timer = hub.call_at(until, lambda: hub.unpark(fiber))
        self.interrupted = False
        try:
            while hub.clock.monotonic() < until:
                hub.park()
                self.check_interrupted()
        finally:
            timer.cancel()

    # Children.

    def fork(self, body: Body, *, argv: list[str] | None = None, pgid: int | None = None) -> Process:
        """A copy of this process that runs `body` and exits with what it returns.

        The copy shares open files, and has its own descriptors, namespace, directory, umask and environment.
        """
        child = self.kernel.fork(self, argv if argv is not None else self.argv)
        if pgid is not None:
            child.pgid = pgid or child.pid
        child.start_fiber(body)
        return child

    def spawn(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: OpenFile | None = None,
        stdout: OpenFile | None = None,
        stderr: OpenFile | None = None,
        pgid: int | None = None,
    ) -> Process:
        """Start a program (found through PATH unless its name has a slash). ENOENT, EACCES, ENOEXEC."""
        environment = self.env if env is None else env
        path = search_path(self, argv[0], environment.get("PATH"))
        program, full_argv = load(self, path, argv)

        def body(child: Process) -> int:
            child.prepare_exec(path, full_argv, environment)
            return program(child)

        child = self.kernel.fork(self, argv)
        # Now, not when it first runs: the caller may let go of the files at once.
        for fd, file in ((0, stdin), (1, stdout), (2, stderr)):
            if file is not None:
                child.fds.put(fd, file)
        if pgid is not None:
            child.pgid = pgid or child.pid
        child.start_fiber(body)
        return child

    def run(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: OpenFile | None = None,
        stdout: OpenFile | None = None,
        stderr: OpenFile | None = None,
    ) -> ExitStatus:
        """Start a program and wait for its end."""
        self.stdout.flush()
        child = self.spawn(argv, env=env, stdin=stdin, stdout=stdout, stderr=stderr)
        return self.wait_for(child)

    def execute(self, path: str, argv: list[str], env: Mapping[str, str] | None = None) -> NoReturn:
        """Replace the program (execve): never returns; raises before anything changed if it can't. ENOEXEC, ..."""
        program, full_argv = load(self, path, argv)
        self.stdout.flush()
        self.prepare_exec(path, full_argv, self.env if env is None else env)
        raise ProcessExit(ExitStatus(program(self) & 0xFF))

    def prepare_exec(self, path: str, argv: list[str], env: Mapping[str, str]) -> None:
        """Replace argv and environment, close close-on-exec descriptors and reset signal handlers, as execve does."""
        self.executable = path if path[0] == "/" else self.absolute(path)
        self.argv = argv
        self.env = env
        if self.fds.cloexec:
            self.fds.close_on_exec()
        if self.handlers:
            self.handlers = {n: h for n, h in self.handlers.items() if h is IGNORE}
        self.reaps_at_once = False
        self.stdout.reset()

    def wait(self, pid: int = -1, options: int = 0) -> WaitResult | None:
        """A child's end (or stop/continue, by WUNTRACED/WCONTINUED): any (-1), of a group (0, -pgid), or one.

        None with WNOHANG if there is no news. ECHILD, EINTR.
        """
        self.interrupted = False
        while True:
            for index, news in enumerate(self._news):
                if self._matches(pid, news) and (
                    (not news.stopped or options & WUNTRACED) and (not news.continued or options & WCONTINUED)
                ):
                    del self._news[index]
                    if not news.stopped and not news.continued:
                        self.kernel.reap(self, next(c for c in self.children if c.pids[self.space] == news.pid))
                    return news
            if not any(self._matches(pid, WaitResult(c.pids[self.space], ExitStatus())) for c in self.children):
                raise SysError(ECHILD)
            if options & WNOHANG:
                return None
            self.check_interrupted()
            self._wait_for_news()

    def _matches(self, pid: int, news: WaitResult) -> bool:
        if pid == -1 or pid == news.pid:
            return True
        if pid >= 0 and pid != 0:
            return False
        child = next((c for c in self.children if c.pids[self.space] == news.pid), None)
        return child is not None and child.pgid == (self.pgid if pid == 0 else -pid)

    def wait_for(self, child: Process) -> ExitStatus:
        """Wait for one child's end, whatever signals are caught meanwhile. ECHILD if it is not ours."""
        self.interrupted = False
        while (status := child.status) is None:
            if child.parent is not self:
                raise SysError(ECHILD)
            self._wait_for_news()
        if child in self.children:  # with SIGCHLD ignored nobody has to reap it
            pid = child.pids[self.space]
            self._news = [news for news in self._news if news.pid != pid]
            self.kernel.reap(self, child)
        return status

    def _wait_for_news(self) -> None:
        if self._child_waiters is None:
            self._child_waiters = WaitQueue(self.kernel.hub)
        self._child_waiters.wait()

    def tell_parent(self, news: WaitResult) -> None:
        """Called by the kernel: a child ended, stopped or continues."""
        # Only the latest counts: a stop that was not asked about is forgotten when the child goes on or ends.
        if self._news:
            self._news = [old for old in self._news if old.pid != news.pid]
        self._news.append(news)
        self.wake_waiters()

    def wake_waiters(self) -> None:
        """Wake the waiters for a child that was reaped without a status."""
        if self._child_waiters is not None:
            self._child_waiters.wake_all()

    def exit(self, code: int) -> NoReturn:
        raise ProcessExit(ExitStatus(code & 0xFF))

    # Depth: nested calls, sources, substitutions.

    def enter(self) -> None:
        if self.depth >= self.budget.limits.depth:
            self.budget.exceed("depth")
        self.depth += 1

    def leave(self) -> None:
        self.depth -= 1

    # Signals.

    def catch(self, number: int, handler: Handler | Ignore | None) -> Handler | Ignore | None:
        """Set what a signal does: call a handler, IGNORE, or None for the default; returns the old. EINVAL."""
        if number in UNCATCHABLE:
            raise SysError(EINVAL)
        old = self.handlers.get(number)
        if handler is None:
            self.handlers.pop(number, None)
        else:
            self.handlers[number] = handler
        return old

    def block(self, numbers: frozenset[int]) -> None:
        """Set the mask; signals that were waiting behind it are delivered now."""
        self.blocked = numbers - UNCATCHABLE
        self._deliver_pending()
        self.check_fatal()

    def _deliver_pending(self) -> None:
        waiting, self.pending = self.pending, []
        for number in sorted(waiting):
            self.deliver(number)

    def kill(self, pid: int, number: int) -> None:
        """Send a signal: to one process, a group (0, -pgid) or all (-1) of this pid space. ESRCH, EPERM, EINVAL."""
        if not 0 <= number <= 64:
            raise SysError(EINVAL)
        targets = self.space.select(self, pid)
        if not targets:
            raise SysError(ESRCH)
        allowed = [target for target in targets if self._may_signal(target, number)]
        if not allowed:
            raise SysError(EPERM)
        if number:
            for target in allowed:
                # An init hears from its own space only what it has a handler for.
                if target.pids[self.space] != 1 or callable(target.handlers.get(number)):
                    target.deliver(number)
        self.check_fatal()

    def _may_signal(self, target: Process, number: int) -> bool:
        uid = self.fs.credentials.uid
        return uid in (0, target.fs.credentials.uid) or (number == Signal.CONT and self.session is target.session)

    def raise_signal(self, number: int) -> None:
        """Send a signal to this process."""
        self.deliver(number)
        self.check_fatal()

    def deliver(self, number: int) -> None:
        """Act on a signal, by its disposition. Never raises: a fatal one only marks the process for termination."""
        if self.status is not None or self is self.kernel.init:
            return
        if number == Signal.KILL:
            self.terminate(ExitStatus(0, number))
            return
        if number == Signal.CONT:
            self._continue()
        elif number in STOPPING:
            self.pending = [n for n in self.pending if n != Signal.CONT]
        handler = self.handlers.get(number)
        if number in self.blocked or (self.stopped and not isinstance(handler, Ignore)):
            if number not in self.pending:
                self.pending.append(number)
            return
        if isinstance(handler, Ignore):
            return
        if handler is not None:
            handler(number)
            self.interrupted = True
            if self.fibers:
                self.kernel.hub.unpark(self.fibers[0])
        elif number in STOPPING:
            # A group that nobody could continue is not stopped, but for SIGSTOP.
            if number == Signal.STOP or not self.kernel.is_orphaned(self):
                self._stop(number)
        elif number not in IGNORED_BY_DEFAULT and self.pid != 1:
            self.terminate(ExitStatus(0, number))

    def terminate(self, status: ExitStatus) -> None:
        """End every fiber of the process; it is gone when they have unwound."""
        if self.status is not None:
            return
        if self._fatal is None:
            self._fatal = status
        self.stopped = 0
        for fiber in self.fibers:
            self.kernel.hub.kill(fiber)
        if not self.fibers or not self.fibers[0].started:
            # Nothing of it will unwind through `run_main`, so its end is now.
            self.kernel.finish(self, self._fatal)

    def check_fatal(self) -> None:
        """Unwind now if a fatal signal reached the process that is running."""
        if self._fatal is not None:
            raise ProcessExit(self._fatal)
        while self.stopped:
            self.kernel.hub.pause()

    def _stop(self, number: int) -> None:
        if self.stopped:
            return
        self.stopped = number
        for fiber in self.fibers:
            self.kernel.hub.freeze(fiber)
        self.kernel.announce(self, WaitResult(0, ExitStatus(0, number), stopped=True))

    def _continue(self) -> None:
        self.pending = [n for n in self.pending if n not in STOPPING]
        if self.stopped:
            self.stopped = 0
            for fiber in self.fibers:
                self.kernel.hub.thaw(fiber)
            self.kernel.announce(self, WaitResult(0, ExitStatus(0, Signal.CONT), continued=True))
            self._deliver_pending()

    def check_interrupted(self) -> None:
        """Raise EINTR if a handler ran since this was last asked."""
        if self.interrupted:
            self.interrupted = False
            raise SysError(EINTR)

    # Groups, sessions, terminal.

    def setpgid(self, pid: int, pgid: int) -> None:
        """Move this process (0) or a child to a process group (0: a new one). EINVAL, ESRCH, EPERM."""
        if pgid < 0:
            raise SysError(EINVAL)
        target = self if pid in (0, self.pid) else self.space.find(pid)
        if target is not self and target.parent is not self:
            raise SysError(ESRCH)
        if target.session is not self.session or target.pid == target.session.leader:
            raise SysError(EPERM)
        group = pgid or target.pid
        if group != target.pid and not any(
            other.pgid == group and other.session is self.session for other in self.space.table.values()
        ):
            raise SysError(EPERM)
        target.pgid = group

    def setsid(self) -> None:
        """EPERM for the leader of a group."""
        self.kernel.new_session(self)

    def tty_file(self) -> OpenFile:
        """The controlling terminal. ENXIO is for the opener to say; ENOTTY here."""
        if self.session.tty is None:
            raise SysError(ENOTTY)
        return self.fs.open("/dev/tty", O_RDWR)

    # The kernel's side.

    def start_fiber(self, body: Body) -> Fiber:
        """Run `body` as the process's main fiber."""
        fiber = self.kernel.hub.spawn(partial(self.kernel.run_main, self, body), self)
        self.fibers.append(fiber)
        return fiber

    def add_fiber(self, run: Callable[[], object]) -> Fiber:
        """Start a further fiber of the process; it ends with the process at the latest."""

        def body() -> None:
            try:
                run()
            finally:
                if fiber in self.fibers:
                    self.fibers.remove(fiber)

        fiber = self.kernel.hub.spawn(body, self)
        self.fibers.append(fiber)
        return fiber

    @property
    def fatal(self) -> ExitStatus | None:
        return self._fatal
