"""The asynchronous front: `AsyncSandbox`, the same as `Sandbox`, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from belljar.abi.limits import Limits
from belljar.api import operations
from belljar.api.async_interpreter import AsyncInterpreter
from belljar.api.async_js import AsyncJsInterpreter
from belljar.api.async_link_host import AsyncLink, take_worker
from belljar.api.clock_host import monotonic
from belljar.api.command import Command, request_exec
from belljar.api.core import Conversation, OnChunk
from belljar.api.dialogue import PYTHON
from belljar.api.errors import FileError, SandboxClosed, SandboxCreationError, SandboxError
from belljar.api.events import Events
from belljar.api.files import AsyncFiles
from belljar.api.forking import check_count
from belljar.api.mounts import Mount
from belljar.api.network_host import NetworkDoor
from belljar.api.operations import Ask, Run, Steps
from belljar.api.request import GRACE, START_SECONDS, STOPPED, exec_result, raise_failure
from belljar.api.results import ExecResult, Info
from belljar.api.settings import SandboxOptions, Settings
from belljar.api.stepper import Stepper
from belljar.worker.handle_host import WorkerUnavailable

if TYPE_CHECKING:
    from belljar.net.gate_host import Gate


class AsyncSandbox:
    """A sandbox for asyncio programs.

    >>> async with AsyncSandbox() as sandbox:
    ...     (await sandbox.exec("echo hi")).stdout
    'hi\\n'
    """

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        self._assemble(Settings.check(options), None)

    def _assemble(self, settings: Settings, link: AsyncLink | None) -> None:
        self._settings = settings
        self._started = link
        limits, functions = self._settings.limits, self._settings.functions()
        self.python = AsyncInterpreter(lambda: self._link, PYTHON, limits, tools=functions)
        network = None if settings.network is None else self._gate
        self.js = AsyncJsInterpreter(tools=functions, output_bytes=limits.output_bytes, network=network)
        self.files = AsyncFiles(self._run, lambda: self._link)

    async def start(self) -> Self:
        """Make the sandbox; `async with` does this for you."""
        settings = self._settings
        try:
            worker = await take_worker(settings.limits.memory_bytes)
        except WorkerUnavailable as error:
            raise SandboxCreationError(f"could not start a sandbox: {error}. Try `belljar doctor`.") from error
        settings.confine(worker)
        self._started = link = AsyncLink(worker, Conversation(), settings.limits)
        self._open_network()
        try:
            link.send(link.conversation.message(settings.boot()))
            if settings.require:
                settings.check_layers(await self._layers())
            self._watch_events()
            await self._run(operations.set_up(settings, link.offers))
        except BaseException:
            link.close()
            raise
        return self

    def _open_network(self) -> None:
        settings = self._settings
        if settings.network is not None:
            self._link.offers.network = NetworkDoor(settings.network, settings.name, asyncio.get_running_loop())

    def _gate(self) -> Gate:
        assert self._link.offers.network is not None
        return self._link.offers.network.gate(self._link.conversation.observe)

    def _watch_events(self) -> None:
        if self._settings.on_event is not None:
            events = Events(self._settings.name, self._settings.on_event, self._link.conversation)
            self._link.send(events.watch_files())

    @property
    def _link(self) -> AsyncLink:
        if self._started is None:
            raise SandboxClosed("the sandbox was not started: use `async with AsyncSandbox()` or `await .start()`")
        return self._started

    async def _layers(self) -> list[str]:
        conversation = self._link.conversation
        await asyncio.wait_for(self._link.wait_until(lambda: conversation.ready is not None), START_SECONDS)
        return self._link.layers

    @property
    def name(self) -> str:
        """What it was named, or a random id."""
        return self._settings.name

    async def info(self) -> Info:
        return self._settings.info(await self._layers())

    async def exec(
        self,
        command: str | list[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes = b"",
        timeout: float | None = None,
        limits: Limits | None = None,
        on_stdout: OnChunk | None = None,
        on_stderr: OnChunk | None = None,
        merge_stderr: bool = False,
    ) -> ExecResult:
        """Run a command to its end. Cancelling kills its processes; the sandbox stays usable."""
        link, began = self._link, monotonic()
        request = request_exec(
            link.conversation,
            self._settings.limits,
            command,
            {
                "cwd": cwd,
                "env": env,
                "stdin": stdin,
                "timeout": timeout,
                "limits": limits,
                "on_stdout": on_stdout,
                "on_stderr": on_stderr,
                "merge_stderr": merge_stderr,
            },
        )
        link.send(request.frame)
        try:
            await asyncio.wait_for(link.wait(request.running), request.wall_seconds + GRACE)
        except TimeoutError:
            link.close()
            raise SandboxError(STOPPED) from None
        except asyncio.CancelledError:
            if not link.closed:
                link.send(request.kill(link.conversation))
            raise
        raise_failure(request.running, cwd or self._settings.cwd)
        return exec_result(request.running, monotonic() - began, timeout)

    async def spawn(
        self,
        command: str | list[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes | None = None,
    ) -> AsyncProcess:
        """Start a command and talk to it while it runs."""
        process = AsyncProcess(self._link)
        await process.start(command, env or {}, cwd, stdin, self._settings.limits, None)
        return process

    async def pty(
        self,
        command: str | list[str] = "exec bash -il",
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        rows: int = 24,
        cols: int = 80,
    ) -> AsyncTerminal:
        """Start a command on a terminal of its own."""
        process = AsyncProcess(self._link)
        environment = {"TERM": "xterm-256color", **(env or {})}
        await process.start(command, environment, cwd, None, self._settings.limits, (rows, cols))
        return AsyncTerminal(process)

    async def _run(self, steps: Steps[Any]) -> Any:
        stepper = Stepper(steps)
        while not stepper.done:
            match stepper.step:
                case Run(argv=argv):
                    stepper.answer(await self.exec(argv))
                case Ask(path=path, name=name, arguments=arguments):
                    pending, frame = self._link.conversation.call(name, *arguments)
                    self._link.send(frame)
                    await self._link.expect(lambda pending=pending: pending.done)  # type: ignore[misc]
                    try:
                        raise_failure(pending, path)
                    except FileError as error:
                        stepper.fail(error)
                    else:
                        stepper.answer(pending.value)
        return stepper.result

    @overload
    async def fork(self, count: Literal[1] = 1) -> Self: ...

    @overload
    async def fork(self, count: int) -> Self | list[Self]: ...

    async def fork(self, count: int = 1) -> Self | list[Self]:
        """An independent branch of everything, live; a list if `count` > 1. Started already; close it when done.

        See `Sandbox.fork`.
        """
        branches: list[Self] = []
        try:
            for _ in range(check_count(count)):
                branch = type(self).__new__(type(self))
                async with self.python.at_rest() as stem:
                    branch._assemble(self._settings.branch(), await self._link.fork(stem.jobs))
                    branches.append(branch)
                    branch.python.grow(stem)
                await self.js.branch_into(branch.js)
                branch._open_network()
                branch._watch_events()
        except BaseException:
            for branch in branches:
                await branch.close()
            raise
        return branches[0] if count == 1 else branches

    async def mount(self, path: str, mount: Mount) -> None:
        await self._run(operations.mount(path, mount, self._link.offers))

    async def unmount(self, path: str) -> None:
        await self._run(operations.unmount(path))

    async def stats(self) -> dict[str, float]:
        return {**await self._run(operations.stats()), **self._link.offers.network_stats()}

    async def close(self) -> None:
        """End every process and release everything. Idempotent."""
        await self.js.close()
        if self._started is not None:
            self._started.close()

    async def __aenter__(self) -> Self:
        return self if self._started is not None else await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncStream:
    """Output as it comes: `async for chunk in process.stdout`."""

    def __init__(self, link: AsyncLink, command: Command, number: int) -> None:
        self._link = link
        self._command = command
        self._number = number

    async def next_chunk(self) -> bytes:
        """The next piece; b"" at the end."""
        await self._link.wait_until(lambda: self._command.has_news(self._number))
        return self._command.take(self._number)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.next_chunk():
            yield data

    async def read(self) -> bytes:
        """Everything to the end."""
        return b"".join([data async for data in self])


class AsyncStdin:
    def __init__(self, command: Command) -> None:
        self._command = command

    async def write(self, data: str | bytes) -> None:
        self._command.type(data)

    async def close(self) -> None:
        self._command.end_input()


class AsyncProcess:
    """A started command. See `Process`."""

    def __init__(self, link: AsyncLink) -> None:
        self._link = link
        self.command = command = Command(link.conversation, link.send)
        self.stdout = AsyncStream(link, command, 1)
        self.stderr = AsyncStream(link, command, 2)
        self.stdin = AsyncStdin(command)

    async def start(
        self,
        argv: str | list[str],
        env: Mapping[str, str],
        cwd: str | None,
        stdin: str | bytes | None,
        limits: Limits,
        size: tuple[int, int] | None,
    ) -> None:
        running = self.command.start(argv, env=dict(env), cwd=cwd, stdin=stdin, limits=limits, size=size)
        self._over = monotonic() + limits.wall_seconds + GRACE
        await self._link.expect(lambda: self.command.started)
        raise_failure(running)

    @property
    def pid(self) -> int:
        return self.command.state.pid

    @property
    def exited(self) -> bool:
        return self.command.exited

    async def wait(self) -> int:
        """The exit code; bound the wait with `asyncio.timeout`."""
        await self._link.expect(lambda: self.command.state.done, max(0.0, self._over - monotonic()))
        return self.command.exit_code()

    async def kill(self, signal: str | int = "TERM") -> None:
        self.command.signal(signal)


class AsyncTerminal:
    """A command on a terminal. See `Terminal`."""

    def __init__(self, process: AsyncProcess) -> None:
        self._process = process

    async def read(self) -> bytes:
        """What is shown next; b"" at the end."""
        return await self._process.stdout.next_chunk()

    async def write(self, data: str | bytes) -> None:
        await self._process.stdin.write(data)

    async def resize(self, rows: int, cols: int) -> None:
        self._process.command.resize(rows, cols)

    async def wait(self) -> int:
        return await self._process.wait()

    async def kill(self, signal: str | int = "HUP") -> None:
        await self._process.kill(signal)
