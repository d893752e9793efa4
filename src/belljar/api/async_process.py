"""Commands that run while you talk to them, for asyncio: `AsyncSandbox.spawn` and `AsyncSandbox.pty`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, AnyStr, Generic

from belljar.abi.limits import Limits
from belljar.api.async_link_host import AsyncLink
from belljar.api.command import Command, OfCommand
from belljar.api.output import Lines, Output, collect
from belljar.api.owner_host import refuse_copy
from belljar.api.request import Data, raise_failure
from belljar.api.results import ExecResult
from belljar.api.stepper import finish_async


class AsyncStream(Generic[AnyStr]):
    """Output as it comes: `async for chunk in process.stdout`. See `Stream`."""

    def __init__(self, output: Output[AnyStr]) -> None:
        self._output: Output[AnyStr] = output

    def __aiter__(self) -> AsyncIterator[AnyStr]:
        chunks: Any = self._chunks() if self._output.text is None else self._lines(ends=True)
        return chunks  # type: ignore[no-any-return]

    async def _chunks(self) -> AsyncIterator[AnyStr]:
        while data := await self.next_chunk():
            yield data

    async def next_chunk(self, timeout: float | None = None) -> AnyStr:
        """The next piece; empty at the end, or when `timeout` seconds brought nothing."""
        return await finish_async(self._output.next_chunk(timeout))

    def lines(self) -> AsyncIterator[str]:
        """The lines as they come, without their ends; bytes that are no UTF-8 are replaced."""
        return self._lines(ends=False)

    async def _lines(self, *, ends: bool) -> AsyncIterator[str]:
        lines = Lines(ends=ends)
        async for data in self._chunks():
            for line in lines.feed(data):
                yield line
        for line in lines.feed(b""):
            yield line

    async def read(self) -> AnyStr:
        """Everything to the end."""
        empty: Any = b"" if self._output.text is None else ""
        return empty.join([data async for data in self._chunks()])  # type: ignore[no-any-return]


class AsyncStdin:
    """The command's standard input. See `Stdin`."""

    def __init__(self, link: AsyncLink, command: Command) -> None:
        self._link = link
        self._command = command
        self._closed = False

    async def write(self, data: Data) -> None:
        self._check()
        self._command.type(data)

    async def send(self, data: Data) -> None:
        """Write, and wait until the command's pipe has taken it: for input that may be long."""
        self._check()
        end = self._command.type(data)
        await self._link.expect(lambda: self._command.has_written(end), self._command.deadline)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._command.end_input()

    def _check(self) -> None:
        if self._closed:
            raise ValueError("stdin is closed")


class AsyncProcess(OfCommand, Generic[AnyStr]):
    """A started command. See `Process`."""

    def __init__(
        self, link: AsyncLink, *, text: bool = False, background: bool = False, timeout: float | None = None
    ) -> None:
        self._link = link
        self._began, self._timeout = self._link.clock.monotonic(), timeout
        self.command = command = Command(link.conversation, link.send, background=background)
        self.stdout: AsyncStream[AnyStr] = AsyncStream(Output(link, command, 1, text=text))
        self.stderr: AsyncStream[AnyStr] = AsyncStream(Output(link, command, 2, text=text))
        self.stdin = AsyncStdin(link, command)

    async def start(
        self,
        argv: str | list[str],
        env: Mapping[str, str],
        cwd: str | None,
        stdin: Data | int | None,
        limits: Limits,
        size: tuple[int, int] | None,
        merge: bool = False,
    ) -> None:
        self.command.deadline = deadline = self._link.patience(limits.wall_seconds)
        running = self.command.start(argv, env=env, cwd=cwd, stdin=stdin, limits=limits, size=size, merge=merge)
        try:
            await self._link.sent(deadline)
            await self._link.expect(lambda: self.command.started, deadline)
        except BaseException:  # it was cancelled, say
            if not self._link.closed:
                self.command.kill_all()
            raise
        self.command.deadline = self._link.patience(limits.wall_seconds)
        raise_failure(running)

    async def wait(self, timeout: float | None = None) -> int | None:
        """The exit code, or None if `timeout` seconds passed first."""
        if timeout is None:
            await self._link.expect(lambda: self.command.state.done, self.command.deadline)
        elif not await self._link.wait(self.command.state, self._link.clock.monotonic() + timeout):
            return None
        return self.command.exit_code()

    async def result(self) -> ExecResult:
        """Wait for its end; exit code and the output that was not read yet, as `exec` gives them."""
        return await finish_async(collect(self._link, self.command, self._timeout, self._began))

    async def kill(self, signal: str | int = "TERM") -> None:
        """Send a signal, by name or number, to the command's process group; nothing if it has ended."""
        self.command.signal(signal)


class AsyncTerminal:
    """A command on a terminal. See `Terminal`."""

    __reduce__ = refuse_copy

    def __init__(self, process: AsyncProcess[bytes]) -> None:
        self.process = process
        """The command: its pid, and how it ended."""

    async def read(self, timeout: float | None = None) -> bytes:
        """The next piece of the screen; b"" at the end, or when `timeout` seconds brought nothing."""
        return await self.process.stdout.next_chunk(timeout)

    async def write(self, data: Data) -> None:
        await self.process.stdin.write(data)

    async def resize(self, rows: int, cols: int) -> None:
        self.process.command.resize(rows, cols)

    async def wait(self, timeout: float | None = None) -> int | None:
        return await self.process.wait(timeout)

    async def kill(self, signal: str | int = "HUP") -> None:
        await self.process.kill(signal)

    @property
    def exited(self) -> bool:
        return self.process.exited
