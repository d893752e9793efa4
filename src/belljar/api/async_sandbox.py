"""The asynchronous front: `AsyncSandbox`, the same as `Sandbox`, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self, Unpack

from belljar.abi.limits import Limits
from belljar.abi.signals import parse_signal
from belljar.abi.wire import CHUNK_MAX, Credit, Input, Resize, Signal
from belljar.api import operations
from belljar.api.async_link_host import AsyncLink, take_worker
from belljar.api.clock_host import monotonic
from belljar.api.core import Conversation, OnChunk, Running
from belljar.api.errors import FileError, SandboxClosed, SandboxCreationError, SandboxError
from belljar.api.files import AsyncFiles
from belljar.api.mounts import Mount
from belljar.api.operations import Ask, Run, Stepper, Steps
from belljar.api.request import (
    GRACE,
    check_command,
    check_environment,
    exec_result,
    limits_for_exec,
    raise_failure,
)
from belljar.api.results import ExecResult, Info
from belljar.api.settings import SandboxOptions, Settings
from belljar.worker.supervisor_host import WorkerUnavailable


class AsyncSandbox:
    """A sandbox for asyncio programs.

    >>> async with AsyncSandbox() as sandbox:
    ...     (await sandbox.exec("echo hi")).stdout
    'hi\\n'
    """

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        self._settings = Settings.check(options)
        self._started: AsyncLink | None = None
        self.files = AsyncFiles(self._run)

    async def start(self) -> Self:
        """Make the sandbox; `async with` does this for you."""
        settings = self._settings
        try:
            worker = await take_worker(settings.limits.memory_bytes)
        except WorkerUnavailable as error:
            raise SandboxCreationError(f"could not start a sandbox: {error}. Try `belljar doctor`.") from error
        self._started = link = AsyncLink(worker, Conversation())
        try:
            link.send(link.conversation.message(settings.boot()))
            if settings.require:
                settings.check_layers(await self._layers())
            await self._run(operations.set_up(settings, link.offers))
        except BaseException:
            link.close()
            raise
        return self

    @property
    def _link(self) -> AsyncLink:
        if self._started is None:
            raise SandboxClosed("the sandbox was not started: use `async with AsyncSandbox()` or `await .start()`")
        return self._started

    async def _layers(self) -> list[str]:
        conversation = self._link.conversation
        await asyncio.wait_for(self._link.wait_until(lambda: conversation.ready is not None), GRACE)
        assert conversation.ready is not None
        return conversation.ready.layers

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
        link = self._link
        sent_limits, effective = limits_for_exec(self._settings.limits, limits, timeout)
        callbacks = {stream: f for stream, f in ((1, on_stdout), (2, on_stderr)) if f is not None}
        began = monotonic()
        number, running, frame = link.conversation.start(
            check_command(command),
            env=check_environment(env),
            cwd=cwd,
            stdin=stdin.encode() if isinstance(stdin, str) else stdin,
            merge=merge_stderr,
            live=bool(callbacks),
            limits=sent_limits,
            allowed_output=effective.output_bytes,
            on_chunk=callbacks,
        )
        link.send(frame)
        try:
            await asyncio.wait_for(link.wait(running), effective.wall_seconds + GRACE)
        except TimeoutError:
            link.close()
            raise SandboxError("the sandbox stopped answering past the command's time limit and was ended") from None
        except asyncio.CancelledError:
            if not link.closed:
                link.send(link.conversation.message(Signal(number, 9, True)))
            raise
        raise_failure(running, cwd or self._settings.cwd)
        return exec_result(running, monotonic() - began, timeout)

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
        data = stdin.encode() if isinstance(stdin, str) else stdin
        await process.start(check_command(command), check_environment(env), cwd, data, self._settings.limits, None)
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
        environment = {"TERM": "xterm-256color", **check_environment(env)}
        await process.start(check_command(command), environment, cwd, None, self._settings.limits, (rows, cols))
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
                    await self._link.wait(pending)
                    try:
                        raise_failure(pending, path)
                    except FileError as error:
                        stepper.fail(error)
                    else:
                        stepper.answer(pending.value)
        return stepper.result

    async def mount(self, path: str, mount: Mount) -> None:
        await self._run(operations.mount(path, mount, self._link.offers))

    async def unmount(self, path: str) -> None:
        await self._run(operations.unmount(path))

    async def stats(self) -> dict[str, float]:
        return dict(await self._run(operations.stats()))

    async def close(self) -> None:
        """End every process and release everything. Idempotent."""
        if self._started is not None:
            self._started.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncStream:
    """Output as it comes: `async for chunk in process.stdout`."""

    def __init__(self, process: AsyncProcess, number: int) -> None:
        self._process = process
        self._number = number
        self._chunks: list[bytes] = []

    def put(self, data: bytes) -> None:
        self._chunks.append(data)

    async def next_chunk(self) -> bytes:
        """The next piece; b"" at the end."""
        await self._process.wait_output(lambda: bool(self._chunks))
        if not self._chunks:
            return b""
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._process.grant(self._number, len(data))
        return data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.next_chunk():
            yield data

    async def read(self) -> bytes:
        """Everything to the end."""
        return b"".join([data async for data in self])


class AsyncStdin:
    def __init__(self, process: AsyncProcess) -> None:
        self._process = process

    async def write(self, data: str | bytes) -> None:
        raw = data.encode() if isinstance(data, str) else data
        for start in range(0, len(raw), CHUNK_MAX):
            self._process.send_input(raw[start : start + CHUNK_MAX])

    async def close(self) -> None:
        self._process.send_input(b"")


class AsyncProcess:
    """A started command. See `Process`."""

    def __init__(self, link: AsyncLink) -> None:
        self._link = link
        self._number = 0
        self._running: Running | None = None
        self.stdout = AsyncStream(self, 1)
        self.stderr = AsyncStream(self, 2)
        self.stdin = AsyncStdin(self)

    async def start(
        self,
        argv: list[str],
        env: dict[str, str],
        cwd: str | None,
        stdin: bytes | None,
        limits: Limits,
        size: tuple[int, int] | None,
    ) -> None:
        self._number, running, frame = self._link.conversation.start(
            argv,
            env=env,
            cwd=cwd,
            stdin=stdin,
            merge=False,
            live=True,
            limits={},
            allowed_output=limits.output_bytes,
            on_chunk={1: self.stdout.put, 2: self.stderr.put},
            size=size,
        )
        running.granted_by_reader = True
        self._running = running
        self._link.send(frame)
        await self._link.wait_until(lambda: running.pid > 0 or running.done)
        raise_failure(running)

    @property
    def _state(self) -> Running:
        assert self._running is not None
        return self._running

    @property
    def pid(self) -> int:
        return self._state.pid

    @property
    def exited(self) -> bool:
        return self._state.done

    async def wait(self) -> int:
        """The exit code; bound the wait with `asyncio.timeout`."""
        await self._link.wait(self._state)
        raise_failure(self._state)
        exited = self._state.exited
        assert exited is not None
        return 128 + exited.signal if exited.signal else exited.code

    async def kill(self, signal: str | int = "TERM") -> None:
        number = parse_signal(str(signal))
        if number is None:
            raise ValueError(f"no such signal: {signal!r}")
        if not self.exited:
            self._link.send(self._link.conversation.message(Signal(self._number, number)))

    async def wait_output(self, ready: Any) -> None:
        await self._link.wait_until(lambda: ready() or self._state.done)
        if isinstance(self._state.error, SandboxError):
            raise self._state.error

    def grant(self, stream: int, count: int) -> None:
        if not self.exited:
            self._state.granted[stream] += count
            self._link.send(self._link.conversation.message(Credit(self._number, stream, count)))

    def send_input(self, data: bytes) -> None:
        if not self.exited:
            self._link.send(self._link.conversation.message(Input(self._number, data)))

    def send_resize(self, rows: int, columns: int) -> None:
        if not self.exited:
            self._link.send(self._link.conversation.message(Resize(self._number, rows, columns)))


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
        self._process.send_resize(rows, cols)

    async def wait(self) -> int:
        return await self._process.wait()

    async def kill(self, signal: str | int = "HUP") -> None:
        await self._process.kill(signal)
