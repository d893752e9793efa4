"""The worker's side of the conversation: messages in, the session at work, messages out. No I/O of its own."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from belljar.abi.errno import ENOSYS, EPERM, ESRCH
from belljar.abi.errors import BudgetExceeded, SysError
from belljar.abi.limits import Limits
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.termios import WinSize
from belljar.abi.wire import (
    CHUNK_MAX,
    CONTROL_IN,
    USER_RIGHTS,
    WINDOW,
    Answer,
    Boot,
    Call,
    Credit,
    Exited,
    Failure,
    HostMessage,
    Input,
    Output,
    Plain,
    Renew,
    Reply,
    Resize,
    Signal,
    Start,
    Started,
    WireError,
    WorkerMessage,
)
from belljar.kernel.engines import EngineLink
from belljar.kernel.fiber import WaitQueue
from belljar.kernel.process import Process
from belljar.net.guest.local import LocalStream
from belljar.worker.capture import Captures
from belljar.worker.descriptor_host import Descriptor
from belljar.worker.files import FileCalls
from belljar.worker.hosted import Hosted
from belljar.worker.services import ServiceCalls
from belljar.worker.session import Session
from belljar.worker.task import Task
from belljar.worker.watching import Watching

Send = Callable[[WorkerMessage], None]
"""Hands a message to the host; in a fiber it waits while the host does not read."""
Branch = Callable[[Descriptor, Mapping[int, Descriptor]], int]
"""Forks the worker: gives the branch's pid, and 0 in the branch, which then talks over the descriptor, and over the
others to copies of its engine processes. OSError."""

_SMALL: Final = 64 << 10
"""Output below this waits for the command's end, so that a short command is answered by one frame."""


_COLLECT_SHARE: Final = 10
"""A collection is followed by at least this many times its own duration without one."""
_COLLECT_LEAST: Final = 0.001


_REST_SECONDS: Final = 10.0
_MOMENT: Final = 0.05
_REST_LOOK: Final = 0.0005
"""Seconds to wait for interpreters and for programs that are to be copied, and between two checks."""


class _Stream:
    """One stream of a started command: what is held back, and how much the host still lets through."""

    __slots__ = ("_held", "credit", "size")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self.size = 0
        self.credit = WINDOW

    def put(self, data: bytes) -> None:
        self._held.append(data)
        self.size += len(data)

    def take(self, most: int) -> bytes:
        data, self._held, self.size = b"".join(self._held), [], 0
        if len(data) > most:
            self.put(data[most:])
            data = data[:most]
        return data


class _Job:
    """A Start under way."""

    __slots__ = ("began", "live", "streams", "task", "waiters")

    def __init__(self, session: Session, live: bool) -> None:
        self.began = session.kernel.hub.clock.monotonic()
        self.live = live
        self.streams: dict[int, _Stream] = {}
        """Streams with output."""
        self.waiters = WaitQueue(session.kernel.hub)
        self.task: Task | None = None

    def renew_credit(self) -> None:
        """Reset the streams' credit, in a branch, which has an owner connection of its own."""
        for stream in self.streams.values():
            stream.credit = WINDOW

    def take(self, stream: int) -> bytes:
        """Take a stream's buffered output, including that of a blocked writer."""
        held = self.streams.get(stream)
        return held.take(held.size) if held is not None else b""


class Server:
    """One sandbox, as the host talks to it. `handle` is called on the hub's loop and never blocks."""

    def __init__(self, session: Session, send: Send, branch: Branch | None = None) -> None:
        self._session = session
        self._send = send
        self._branch = branch
        self._jobs: dict[int, _Job] = {}
        self._starting: dict[int, list[HostMessage]] = {}
        """Messages for commands that are being started."""
        self._booted = False
        self._collecting = False
        """Whether a garbage collection is scheduled."""
        self._collect_seconds = _COLLECT_LEAST
        self._collected = 0.0
        self.hosted = Hosted(session, send)
        self.join_port: Callable[[int, LocalStream], object] | None = None
        """Carries bytes between a descriptor of the owner's and a connection inside."""
        self._watching = Watching(session.kernel)
        self._view = session.kernel.init.fs.fork()
        self._view.namespace = session.kernel.init.fs.namespace
        self._captures = Captures(session, self.hosted)
        self._services = ServiceCalls(session)
        self._files: dict[str, Callable[..., Plain]] | None = None
        """Made when first needed, as the sandbox then is."""
        self.more_operations: dict[str, Callable[..., Plain]] = {}
        """Further calls that the owner may make, by name."""

    def handle(self, message: HostMessage, descriptors: Sequence[Descriptor] = ()) -> None:
        """Act on one message and the descriptors that came with it. Raises WireError for one that makes no sense."""
        if not isinstance(message, Answer | Credit | Resize):
            self.hosted.renew()
        if self._starting and (waiting := self._starting.get(_command_of(message))) is not None:
            waiting.append(message)
            return
        match message:
            case Start() if self.hosted.may_park:
                self._starting[message.id] = []
                self._spawn(lambda: self._start_in_fiber(message))
            case Start():
                self._start(message)
            case Call(name="fork"):
                self.hosted.when_quiet(lambda: self._fork(message, descriptors))
            case Call(name="port"):
                self._open_port(message, descriptors)
            case Call(name="input"):
                self._take_input(message)
            case Call():
                self._spawn(lambda: self._call(message))
            case Credit(id=number, stream=stream, count=count):
                self._credit(number, stream, count)
            case Input(id=number, data=data, stream=stream):
                self._input(number, stream, data)
            case Signal(id=number):
                self._signal(number, message)
            case Boot():
                self._boot(message)
            case Renew(id=number, limits=limits):
                job = self._jobs.get(number)
                if job is not None and job.task is not None:
                    job.task.renew(_limits(limits) if limits else None)
            case Resize(id=number, rows=rows, columns=columns):
                job = self._jobs.get(number)
                if job is not None and job.task is not None:
                    job.task.resize(_winsize((rows, columns)))
            case Answer():
                self.hosted.take(message, descriptors)

    def _spawn(self, run: Callable[[], None]) -> None:
        self._session.kernel.hub.spawn(run)

    def _boot(self, message: Boot) -> None:
        if self._booted:
            raise WireError("booted twice")
        self._booted = True
        session = self._session
        session.reconfigure(
            env={fsdecode(k): fsdecode(v) for k, v in message.env.items()},
            cwd=fsdecode(message.cwd),
            user=fsdecode(message.user),
            hostname=fsdecode(message.hostname),
            limits=_limits(message.limits) if message.limits else session.kernel.limits,
        )
        if message.seed:
            session.replay(message.seed)

    def _start(self, message: Start) -> None:
        if message.id in self._jobs:
            raise WireError(f"id {message.id} is in use")
        job = _Job(self._session, message.live)
        number = message.id

        def on_output(stream: int, data: bytes) -> None:
            self._output(number, job, stream, data)

        def on_end(task: Task) -> None:
            self._ended(number, job, task)

        try:
            job.task = self._session.start(
                [fsdecode(a) for a in message.argv],
                env={fsdecode(k): fsdecode(v) for k, v in message.env.items()} if message.env else None,
                cwd=None if message.cwd is None else fsdecode(message.cwd),
                stdin=message.stdin,
                merge_stderr=message.merge,
                limits=_limits(message.limits) if message.limits else None,
                on_output=on_output,
                on_end=on_end,
                terminal=None if message.size is None else _winsize(message.size),
                control=message.control,
                forks=self._original(message.forks),
                follows=message.follows,
            )
        except SysError as error:
            failure = _failure(number, error)
            self._spawn(lambda: self._send(failure))
            return
        self._jobs[number] = job
        if message.live:
            self._send(Started(number, job.task.process.pid))  # at once: it may have ended when a fiber would

    def _start_in_fiber(self, message: Start) -> None:
        """Start a command whose directory may be on a mount of the owner's; what comes for it meanwhile waits."""
        try:
            self._start(message)
        finally:
            waiting = self._starting.pop(message.id)
        for later in waiting:
            self.handle(later)

    def _original(self, number: int) -> Process | None:
        """The process to be a copy of. ESRCH if it is gone."""
        if not number:
            return None
        job = self._jobs.get(number)
        if job is None or job.task is None:
            raise SysError(ESRCH)
        return job.task.process

    def _output(self, number: int, job: _Job, stream: int, data: bytes) -> None:
        """Runs in the fiber that writes: hold small amounts back, wait for the host's credit with large ones."""
        if number not in self._jobs:
            return
        pipe = job.streams.get(stream)
        if pipe is None:
            pipe = job.streams[stream] = _Stream()
        pipe.put(data)
        if pipe.size < _SMALL and not job.live:
            return
        while pipe.size:
            if number not in self._jobs:
                return
            if pipe.credit <= 0:
                job.waiters.wait()
                continue
            piece = pipe.take(min(CHUNK_MAX, pipe.credit))
            pipe.credit -= len(piece)
            self._send(Output(number, stream, piece))

    def _credit(self, number: int, stream: int, count: int) -> None:
        job = self._jobs.get(number)
        if job is not None and stream in job.streams and 0 < count <= WINDOW:
            job.streams[stream].credit = min(WINDOW, job.streams[stream].credit + count)
            job.waiters.wake_all()

    def _ended(self, number: int, job: _Job, task: Task) -> None:
        told = self._jobs.pop(number, None) is not None
        job.task = None
        if task.limit is not None or self._now() - job.began > self._collect_pause:
            self._schedule_collection()
        if not told:
            return
        status = task.status
        job.waiters.wake_all()
        output, error = job.take(1), job.take(2)
        if (said := task.limit_line) and task.merged:
            output += said
        else:
            error += said
        self._send(
            Exited(
                number,
                status.code,
                status.signal,
                task.limit,
                output,
                error,
                task.truncated,
                left=self._others(task),
            )
        )

    def _others(self, task: Task) -> bool:
        """Whether something runs besides init, what has ended, and what the owner started and waits for."""
        table = self._session.kernel.init.space.table
        if len(table) == 1:
            return False
        known = [task, *(job.task for job in self._jobs.values() if job.task is not None)]
        return len(table) > 1 + sum(each.process.pid in table for each in known)

    def _now(self) -> float:
        return self._session.kernel.hub.clock.monotonic()

    @property
    def _collect_pause(self) -> float:
        """Seconds between collections. A command that took less leaves little to collect."""
        return _COLLECT_SHARE * self._collect_seconds

    def _schedule_collection(self) -> None:
        """Free, soon but not often, what ended commands held in cycles: the next ones have the whole memory."""
        if not self._collecting:
            self._collecting = True
            wait = self._collected + self._collect_pause - self._now()
            self._session.kernel.hub.call_later(max(0.0, wait), self._collect)

    def _collect(self) -> None:
        self._collecting = False
        began = self._now()
        gc.collect()
        self._collected = self._now()
        self._collect_seconds = max(self._collected - began, _COLLECT_LEAST)

    def _input(self, number: int, stream: int, data: bytes) -> None:
        job = self._jobs.get(number)
        if job is None or job.task is None:
            return  # it ended while the data was on its way
        if data:
            job.task.give_input(stream, data)
        else:
            job.task.end_input(stream)

    def _take_input(self, message: Call) -> None:
        """Queue standard input; the answer tells when it was written, or (False) that nobody will read it."""
        match message.arguments:
            case [int(number), bytes(data)]:
                job = self._jobs.get(number)
                if job is None or job.task is None:
                    self._send(Reply(message.id, False))
                else:
                    job.task.give_input(0, data, lambda taken: self._send(Reply(message.id, taken)))
            case _:
                raise WireError("input needs a command and bytes")

    def _open_port(self, message: Call, descriptors: Sequence[Descriptor]) -> None:
        """Connect the owner, by a socket of theirs, to a program that listens on a port."""
        match message.arguments:
            case [int(port)] if len(descriptors) == 1 and self.join_port is not None:
                try:
                    stream = self._session.ports.connect(port)
                except SysError as error:
                    self._send(_failure(message.id, error))
                else:
                    self.join_port(descriptors[0].take(), stream)
                    self._send(Reply(message.id, None))
            case _:
                raise WireError("a port needs a number and a descriptor")

    def _signal(self, number: int, message: Signal) -> None:
        job = self._jobs.get(number)
        if job is None or job.task is None:
            return
        if message.all:
            job.task.kill()
        else:
            job.task.signal(message.number)

    def _call(self, message: Call) -> None:
        if self._files is None:
            self._files = self._file_calls()
        operation = self._files.get(message.name) or self._operations().get(message.name)
        try:
            if operation is None:
                raise WireError(f"no operation {message.name!r}")
            value = operation(*message.arguments)
        except SysError as error:
            self._send(_failure(message.id, error))
        except (TypeError, WireError, BudgetExceeded) as error:
            self._send(Failure(message.id, 0, str(error).encode()))
        except Exception as error:  # noqa: BLE001 - the frame that owns the call: our bug ends it, not the sandbox
            incident = self._session.kernel.report_bug(self._session.kernel.init, error)
            self._send(Failure(message.id, 0, f"internal error {incident}".encode()))
        else:
            self._send(Reply(message.id, value))

    def _hold(self, jobs: list[int]) -> Plain:
        """Find the engine processes that can be copied in a fork, each with the job it is the interpreter of, or 0.

        What they wait for is held back from here on, until the fork. Those of `jobs` will be at rest: they have no run.
        Programs have a moment to come to it.
        """
        kernel = self._session.kernel
        clock = kernel.hub.clock
        began = clock.monotonic()
        while True:
            driven = {link.number: job for job in jobs if (link := self._interpreter(job)) is not None}
            held, working = kernel.engines.hold()
            patience = _REST_SECONDS if driven.keys() & working else _MOMENT
            if not working or clock.monotonic() - began > patience:
                return [[number, driven.get(number, 0)] for number in held]
            kernel.engines.release()
            kernel.hub.sleep(_REST_LOOK)

    def _interpreter(self, number: int) -> EngineLink | None:
        job = self._jobs.get(number)
        engine = job.task.process.engine if job is not None and job.task is not None else None
        return engine.link if engine is not None else None

    def _release(self) -> Plain:
        self._session.kernel.engines.release()
        return None

    def _fork(self, message: Call, descriptors: Sequence[Descriptor]) -> None:
        """On the loop, where no fiber runs: from here on there are two of us, each with all that is under way.

        The arguments: the jobs that the branch's owner goes on with, and the engine processes it has copied.
        """
        match message.arguments:
            case [list(kept), list(copied)] if self._branch is not None and len(descriptors) == 1 + len(copied):
                self._split(message.id, kept, descriptors[0], dict(zip(copied, descriptors[1:], strict=True)))
            case _:
                self._send(Failure(message.id, ENOSYS, b""))
        self._release()

    def _split(self, number: int, kept: list[int], descriptor: Descriptor, engines: Mapping[int, Descriptor]) -> None:
        assert self._branch is not None
        answer: WorkerMessage
        try:
            pid = self._branch(descriptor, engines)
            answer = Reply(number, pid)
        except OSError as error:
            pid, answer = -1, Failure(number, error.errno or EPERM, b"")
        if pid:
            for given in (descriptor, *engines.values()):
                given.close()
            self._send(answer)
            return
        self._session.kernel.branched += 1
        # What was started goes on, but here nobody waits for it: its output is read and dropped.
        jobs = self._jobs
        self._jobs = {number: job for number, job in jobs.items() if number in kept}
        for number, job in jobs.items():
            if number in kept:
                job.renew_credit()
            elif job.task is not None:
                job.task.close_input(CONTROL_IN)  # an interpreter that nobody drives
            job.waiters.wake_all()
        self.hosted.lose_all()
        self._watching.end_all()

    def _operations(self) -> dict[str, Callable[..., Plain]]:
        return {
            "stats": self._stats,
            "mount": self._mount,
            "unmount": self.hosted.unmount,
            "root": self._root,
            "tool": self.hosted.add_tool,
            "native": self._session.add_native,
            "containers_ready": self._session.add_container_programs,
            "container_image": self.hosted.add_image,
            "container": self.hosted.add_container,
            "watch": self._watch,
            "changes": self._watching.changes,
            "unwatch": self._watching.unwatch,
            "hold": self._hold,
            "release": self._release,
            **self._captures.table,
            **self._services.table,
            **self.more_operations,
        }

    def _mount(self, path: bytes, recipe: list[Any], read_only: bool) -> Plain:
        self.hosted.mount(path, recipe, read_only)
        self._watching.cover()
        return None

    def _root(self, recipe: list[Any], user: bytes) -> Plain:
        self.hosted.replace_root(recipe, user)
        self.root_replaced()
        return None

    def root_replaced(self) -> None:
        """Follow the session to another root."""
        self._view.root = self._view.cwd = self._session.kernel.init.fs.root
        self._files = None
        self._watching.cover()

    def _file_calls(self) -> dict[str, Callable[..., Plain]]:
        """Calls about files by name, with all rights and, so marked, with those of the sandbox's commands."""
        session = self._session
        self._view.credentials = session.owner_rights()
        as_user = self._view.fork()
        as_user.namespace = self._view.namespace
        as_user.credentials = session.credentials
        with_all, with_theirs = (FileCalls(view, session.cwd).table for view in (self._view, as_user))
        return with_all | {USER_RIGHTS + name: call for name, call in with_theirs.items()}

    def _watch(self, path: bytes, recursive: bool) -> Plain:
        return self._watching.watch(self._session.cwd, path, recursive)

    def _stats(self) -> Plain:
        kernel = self._session.kernel
        return {
            b"steps": kernel.steps,
            b"processes": len(kernel.init.space.table) - 1,
            b"files": kernel.quota.files_used,
            b"bytes": kernel.quota.bytes_used,
            b"uptime": kernel.hub.clock.monotonic() - kernel.boot_monotonic,
        }


def _command_of(message: HostMessage) -> int:
    """The id of the command that a message is for; 0: none."""
    match message:
        case Input(id=number) | Credit(id=number) | Signal(id=number) | Resize(id=number) | Renew(id=number):
            return number
        case Call(name="input", arguments=[int(number), *_]):
            return number
    return 0


def _winsize(size: tuple[int, int]) -> WinSize:
    rows, columns = (min(max(number, 0), 65535) for number in size)
    return WinSize(rows, columns)


def _limits(given: Mapping[str, Any]) -> Limits:
    try:
        return _known_limits(tuple(given.items()))
    except (TypeError, ValueError) as error:
        raise WireError(f"bad limits: {error}") from None


@lru_cache(maxsize=32)
def _known_limits(given: tuple[tuple[str, Any], ...]) -> Limits:
    """Convert limits, cached: they are the same for most commands and runs."""
    return Limits(**dict(given))


def _failure(number: int, error: SysError) -> Failure:
    return Failure(number, error.errno, error.reason.encode(), None if error.path is None else fsencode(error.path))
