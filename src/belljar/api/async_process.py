"""Commands that run while you talk to them, for asyncio: `AsyncSandbox.spawn` and `AsyncSandbox.pty`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from belljar.abi.limits import Limits
from belljar.api.async_link_host import AsyncLink
from belljar.api.clock_host import monotonic
from belljar.api.command import Command, Lines, OfCommand
from belljar.api.owner_host import refuse_copy
from belljar.api.request import Data, raise_failure


class AsyncStream:
    """Output as it comes: `async for chunk in process.stdout`. See `Stream`."""

    def __init__(self, link: AsyncLink, command: Command, number: int) -> None:
        self._link = link
        self._command = command
        self._number = number

    async def next_chunk(self, timeout: float | None = None) -> bytes:
        """The next piece; b"" at the end, or when `timeout` seconds brought nothing."""
        if timeout is None:
            await self._link.expect(lambda: self._command.has_news(self._number), self._command.deadline)
        else:
            await self._link.wait_until(lambda: self._command.has_news(self._number), monotonic() + timeout)
        return self._command.take(self._number)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.next_chunk():
            yield data

    async def lines(self) -> AsyncIterator[str]:
        """The lines as they come, without their ends; bytes that are no UTF-8 are replaced."""
        lines = Lines()
        async for data in self:
            for line in lines.feed(data):
                yield line
        for line in lines.end():
            yield line

    async def read(self) -> bytes:
        """Everything to the end."""
        return b"".join([data async for data in self])


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


class AsyncProcess(OfCommand):
    """A started command. See `Process`."""

    def __init__(self, link: AsyncLink) -> None:
        self._link = link
        self.command = command = Command(link.conversation, link.send)
        self.stdout = AsyncStream(link, command, 1)
        self.stderr = AsyncStream(link, command, 2)
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
        running = self.command.start(argv, env=env, cwd=cwd, stdin=stdin, limits=limits, size=size, merge=merge)
        try:
            await self._link.sent()
            await self._link.expect(lambda: self.command.started)
        except BaseException:  # it was cancelled, say
            if not self._link.closed:
                self.command.kill_all()
            raise
        self.command.deadline = self._link.patience()
        raise_failure(running)

    async def wait(self, timeout: float | None = None) -> int | None:
        """The exit code, or None if `timeout` seconds passed first."""
        if timeout is None:
            await self._link.expect(lambda: self.command.state.done, self.command.deadline)
        elif not await self._link.wait(self.command.state, monotonic() + timeout):
            return None
        return self.command.exit_code()

    async def kill(self, signal: str | int = "TERM") -> None:
        """Send a signal, by name or number, to the command's process group; nothing if it has ended."""
        self.command.signal(signal)


class AsyncTerminal:
    """A command on a terminal. See `Terminal`."""

    __reduce__ = refuse_copy

    def __init__(self, process: AsyncProcess) -> None:
        self._process = process

    async def read(self, timeout: float | None = None) -> bytes:
        """The next piece of the screen; b"" at the end, or when `timeout` seconds brought nothing."""
        return await self._process.stdout.next_chunk(timeout)

    async def write(self, data: Data) -> None:
        await self._process.stdin.write(data)

    async def resize(self, rows: int, cols: int) -> None:
        self._process.command.resize(rows, cols)

    async def wait(self, timeout: float | None = None) -> int | None:
        return await self._process.wait(timeout)

    async def kill(self, signal: str | int = "HUP") -> None:
        await self._process.kill(signal)

    @property
    def exited(self) -> bool:
        return self._process.exited
