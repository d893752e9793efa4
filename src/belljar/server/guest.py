"""A running sandbox as the server holds it: its sandbox, and the processes, watchers and contexts of its clients."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from belljar.abi.clock import Clock
from belljar.api.async_interpreter import AsyncInterpreter
from belljar.api.async_js import AsyncJsInterpreter
from belljar.api.async_process import AsyncProcess, AsyncStream, AsyncTerminal
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.command import DEVNULL, PIPE
from belljar.api.errors import FileError, SandboxError
from belljar.server.errors import RpcError, rpc_error

HOME: Final = "/home/user"
USER: Final = "user"
_ENDED_KEPT: Final = 1000
_ENDED_SECONDS: Final = 30.0
"""How long the end of a process can still be asked for."""
_WATCHERS_MAX: Final = 256
_READY_SECONDS: Final = 60.0
_READY_LOOK: Final = 0.05
"""Seconds that the start command of a template has to get ready, and between two looks at it."""
_NAMES_MAX: Final = 64 << 10
"""Bytes of /etc/passwd that are read."""
_EVENTS_MAX: Final = 10_000
"""Changes that a watcher keeps for a client that does not ask; then it fails."""
_LINE_MAX: Final = 500
_QUEUE: Final = 8
"""Pieces of output under way to one client."""

_SIGNALS: Final = {1: "hangup", 2: "interrupt", 3: "quit", 6: "aborted", 9: "killed", 11: "segmentation fault"}
_SIGNALS_MORE: Final = {13: "broken pipe", 14: "alarm clock", 15: "terminated"}

Event = dict[str, Any]


def run_as(user: str, argv: list[str], cwd: str) -> tuple[list[str], str]:
    """A command and its directory, for whoever is to run it."""
    return (["sudo", "-E", "-H", "--", "env", "-C", cwd, *argv], "/") if user == "root" else (argv, cwd)


class LogLine(Struct, frozen=True):
    """What happened to a sandbox, for those who ask for its log."""

    at: float
    message: str
    fields: dict[str, str] = {}
    level: str = "info"


Log = deque[LogLine]


class Patience(Struct, frozen=True):
    """How long a stream's client waits: for a sign of life, and at all."""

    clock: Clock
    keepalive: float | None = None
    until: float | None = None

    async def next(self, queue: asyncio.Queue[Any]) -> Any:
        """The next event of a queue, or a sign of life. RpcError when the client's time is over."""
        if not queue.empty():
            return queue.get_nowait()
        left = None if self.until is None else self.until - self.clock.monotonic()
        waits = [seconds for seconds in (self.keepalive, left) if seconds is not None]
        try:
            async with self.clock.timeout(min(waits, default=None)):
                return await queue.get()
        except TimeoutError:
            if self.until is not None and self.clock.monotonic() >= self.until:
                raise RpcError("deadline_exceeded", "context deadline exceeded") from None
            return {"keepalive": {}}


class Job:
    """A process that a client started, for all clients that listen to it."""

    def __init__(
        self,
        process: AsyncProcess[bytes],
        terminal: AsyncTerminal | None,
        config: Event,
        tag: str | None,
        stdin: bool,
        clock: Clock,
    ) -> None:
        self.clock = clock
        self.process = process
        self.terminal = terminal
        self.config = config
        self.tag = tag
        self.stdin = stdin
        self.end: Event | None = None
        self.ended = 0.0
        self._listeners: set[asyncio.Queue[Event]] = set()
        self._deadline: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    def listen(self) -> asyncio.Queue[Event]:
        queue: asyncio.Queue[Event] = asyncio.Queue(_QUEUE)
        self._listeners.add(queue)
        return queue

    def leave(self, queue: asyncio.Queue[Event]) -> None:
        """Hear no more; whoever waits for room in the queue goes on."""
        self._listeners.discard(queue)
        while not queue.empty():
            queue.get_nowait()

    def end_after(self, seconds: float) -> None:
        """Kill it then."""
        self._deadline = asyncio.create_task(self._kill_after(seconds))

    async def _kill_after(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        self.kill_now()

    def kill_now(self) -> None:
        with suppress(SandboxError, OSError):
            self.process.command.kill_all()

    async def pump(self) -> None:
        """Hand output on until the process has ended. A slow listener holds it, and so the process, back."""
        try:
            if self.terminal is not None:
                await self._carry("pty", self.process.stdout)
            else:
                await asyncio.gather(
                    self._carry("stdout", self.process.stdout), self._carry("stderr", self.process.stderr)
                )
            await self.process.wait()
            end = _end_event(self.process)
        except SandboxError as error:
            end = {"failure": rpc_error(error)}
        finally:
            if self._deadline is not None:
                self._deadline.cancel()
        self.ended = self.clock.monotonic()
        self.end = end
        await self._tell({"end": end})

    async def _carry(self, name: str, output: AsyncStream[bytes]) -> None:
        async for data in output:
            await self._tell({"data": {name: data}})

    async def _tell(self, event: Event) -> None:
        for queue in list(self._listeners):
            await queue.put(event)

    async def events(self, patience: Patience, queue: asyncio.Queue[Event]) -> AsyncGenerator[Event, None]:
        """Events for one listener, from the start event on. RpcError if the sandbox ended first."""
        yield {"event": {"start": {"pid": self.pid}}}
        while True:
            has_ended = self.end is not None and queue.empty()
            event: Event = {"end": self.end} if has_ended else await patience.next(queue)
            end = event.get("end")
            if end is not None and "failure" in end:
                raise end["failure"]
            yield {"event": event}
            if end is not None:
                return


def _end_event(process: AsyncProcess[bytes]) -> Event:
    """The end of a process in Go's words, which clients of the protocol know."""
    exited = process.command.state.exited
    if exited is None:
        process.command.exit_code()  # raises what kept it from running
        raise SandboxError("the process has no exit status")
    if exited.signal:
        said = _SIGNALS.get(exited.signal) or _SIGNALS_MORE.get(exited.signal, f"signal {exited.signal}")
        status = f"signal: {said}"
        return {"exitCode": -1, "exited": False, "status": status, "error": status}
    status = f"exit status {exited.code}"
    end: Event = {"exitCode": exited.code, "exited": True, "status": status}
    return end if exited.code == 0 else {**end, "error": status}


class Context:
    """An interpreter with its variables."""

    def __init__(
        self, number: str, language: str, cwd: str, runner: AsyncInterpreter | AsyncJsInterpreter | None
    ) -> None:
        self.id = number
        self.language = language
        self.cwd = cwd
        self.runner = runner
        """None: bash, each run of which is a process."""
        self.count = 0
        self.lock = asyncio.Lock()

    def show(self) -> Event:
        return {"id": self.id, "language": self.language, "cwd": self.cwd}

    async def reset(self) -> None:
        self.count = 0
        if self.runner is not None:
            await self.runner.reset()


class Watcher:
    """Changes below a directory, kept for a client that asks now and then."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._kept: deque[Event] = deque()
        self._error: RpcError | None = None
        self._task = asyncio.ensure_future(self._collect(events))

    async def _collect(self, events: AsyncIterator[Event]) -> None:
        try:
            async for event in events:
                self._kept.append(event)
                if len(self._kept) > _EVENTS_MAX:
                    raise RpcError("internal", "watcher error: too many changes were not asked for")
        except RpcError as error:
            self._error = error

    def take(self) -> list[Event]:
        """The changes since the last time. RpcError if the watch has failed."""
        if self._error is not None:
            raise self._error
        kept = list(self._kept)
        self._kept.clear()
        return kept

    def close(self) -> None:
        self._task.cancel()


class Guest:
    """A sandbox that runs."""

    def __init__(self, sandbox: AsyncSandbox, clock: Clock, log: Log | None = None) -> None:
        self.sandbox = sandbox
        self._clock = clock
        self._log: Log = deque(maxlen=1) if log is None else log
        self.jobs: dict[int, Job] = {}
        self.watchers: dict[str, Watcher] = {}
        self.contexts: dict[str, Context] = {}
        """Contexts of the code interpreter, by id."""
        self.busy = 0
        """Calls under way that are not streams; a pause waits for them."""
        self.streams = 0
        self.used = self.kept = clock.monotonic()
        """When it was last used, and last kept in the store."""
        self.samples: deque[Event] = deque(maxlen=720)
        self.sampled = 0.0
        """When the last was made."""
        self._owners: dict[str, dict[int, str]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended: deque[Job] = deque()

    async def owners(self) -> dict[str, dict[int, str]]:
        """Names of users and groups by number, as the sandbox's files had them when somebody first asked."""
        if self._owners is None:
            self._owners = {kind: await self._names(f"/etc/{kind}") for kind in ("passwd", "group")}
        return self._owners

    async def _names(self, path: str) -> dict[int, str]:
        try:
            text = (await self.sandbox.files.read_range(path, 0, _NAMES_MAX)).decode("utf-8", "replace")
        except FileError:
            return {}
        rows = [line.split(":") for line in text.splitlines()]
        return {int(row[2]): row[0] for row in rows if len(row) > 2 and row[2].isascii() and row[2].isdigit()}

    async def spawn(
        self,
        config: Event,
        argv: list[str],
        *,
        env: dict[str, str],
        cwd: str,
        stdin: bool,
        size: tuple[int, int] | None,
        tag: str | None,
        timeout: float | None,
    ) -> tuple[Job, asyncio.Queue[Event]]:
        """Start a process, and listen to it from its beginning. SandboxError, ValueError."""
        terminal = None
        if size is not None:
            terminal = await self.sandbox.pty(argv, env=env, cwd=cwd, rows=size[0], cols=size[1])
            process = terminal.process
        else:
            process = await self.sandbox.spawn(argv, env=env, cwd=cwd, stdin=PIPE if stdin else DEVNULL)
        job = Job(process, terminal, config, tag, stdin, self._clock)
        queue = job.listen()
        self.jobs[job.pid] = job
        shown = " ".join([config["cmd"], *config["args"]])[:_LINE_MAX]
        self._log.append(LogLine(self._clock.time(), "process started", {"pid": str(job.pid), "command": shown}))
        if timeout is not None:
            job.end_after(timeout)
        task = asyncio.ensure_future(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job, queue

    async def launch(self, start: str, ready: str, user: str, cwd: str) -> None:
        """Start the command of a template, and wait until it is ready. SandboxError."""
        config = {"cmd": "/bin/bash", "args": ["-l", "-c", start], "envs": {}}
        argv, cwd = run_as(user, ["/bin/bash", "-l", "-c", start], cwd or HOME)
        job, queue = await self.spawn(config, argv, env={}, cwd=cwd, stdin=False, size=None, tag="start", timeout=None)
        job.leave(queue)
        until = self._clock.monotonic() + _READY_SECONDS
        while ready:
            left = until - self._clock.monotonic()
            if left <= 0 or (await self.sandbox.exec(["/bin/bash", "-c", ready], timeout=left)).exit_code == 0:
                break
            await self._clock.sleep(_READY_LOOK)
        if ready and left <= 0:
            raise SandboxError(f"the start command was not ready within {_READY_SECONDS:g} s: {ready[:200]}")

    async def _run(self, job: Job) -> None:
        await job.pump()
        status = str((job.end or {}).get("status", "lost"))
        self._log.append(LogLine(self._clock.time(), "process ended", {"pid": str(job.pid), "status": status}))
        if self.jobs.get(job.pid) is job:
            del self.jobs[job.pid]
        self._ended.append(job)
        oldest = self._clock.monotonic() - _ENDED_SECONDS
        while self._ended and (len(self._ended) > _ENDED_KEPT or self._ended[0].ended < oldest):
            self._ended.popleft()

    def find(self, pid: int | None, tag: str | None, *, ended: bool = False) -> Job:
        """A process by its pid or tag; with `ended`, also one that has ended a moment ago. RpcError."""
        if pid is not None:
            if (job := self.jobs.get(pid)) is not None:
                return job
            what = f"process with pid {pid} not found"
        elif tag is not None:
            for job in self.jobs.values():
                if job.tag == tag:
                    return job
            what = f"process with tag {tag} not found"
        else:
            raise RpcError("unimplemented", "invalid input type <nil>")
        if ended:
            for job in reversed(self._ended):
                if job.ended >= self._clock.monotonic() - _ENDED_SECONDS and (
                    job.pid == pid or (tag is not None and job.tag == tag)
                ):
                    return job
        raise RpcError("not_found", what)

    def add_watcher(self, number: str, watcher: Watcher) -> None:
        if len(self.watchers) >= _WATCHERS_MAX:
            watcher.close()
            raise RpcError("resource_exhausted", "too many watchers: remove some")
        self.watchers[number] = watcher

    async def close(self) -> None:
        """End the sandbox and everything that listens to it."""
        for watcher in self.watchers.values():
            watcher.close()
        with suppress(SandboxError):
            await self.sandbox.close()
        _, pending = await asyncio.wait(self._tasks, timeout=2.0) if self._tasks else (set(), set())
        for task in pending:
            task.cancel()
