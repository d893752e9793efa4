"""Commands that run while you talk to them: `sandbox.spawn` and `sandbox.pty`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from belljar.abi.limits import Limits
from belljar.api.clock_host import monotonic
from belljar.api.command import Command, Lines, OfCommand
from belljar.api.link_host import Link
from belljar.api.owner_host import refuse_copy
from belljar.api.request import Data, raise_failure


class Stream:
    """Output as it comes: iterate over chunks. What you do not read stays in the sandbox, which then waits."""

    def __init__(self, link: Link, command: Command, number: int) -> None:
        self._link = link
        self._command = command
        self._number = number

    def __iter__(self) -> Iterator[bytes]:
        while data := self.next_chunk():
            yield data

    def next_chunk(self, timeout: float | None = None) -> bytes:
        """The next piece; b"" at the end, or when `timeout` seconds brought nothing."""
        if timeout is None:
            self._link.expect(lambda: self._command.has_news(self._number), self._command.deadline)
        else:
            self._link.wait_until(lambda: self._command.has_news(self._number), monotonic() + timeout)
        return self._command.take(self._number)

    def lines(self) -> Iterator[str]:
        """The lines as they come, without their ends; bytes that are no UTF-8 are replaced."""
        lines = Lines()
        for data in self:
            yield from lines.feed(data)
        yield from lines.end()

    def read(self) -> bytes:
        """Everything to the end."""
        return b"".join(self)


class Stdin:
    """The command's standard input."""

    def __init__(self, link: Link, command: Command) -> None:
        self._link = link
        self._command = command
        self._closed = False

    def write(self, data: Data) -> None:
        if self._closed:
            raise ValueError("stdin is closed")
        self._command.type(data)

    def send(self, data: Data) -> None:
        """Write, and wait until the command's pipe has taken it: for input that may be long.

        Somebody else must read the command's output meanwhile, if it has any.
        """
        if self._closed:
            raise ValueError("stdin is closed")
        end = self._command.type(data)
        self._link.expect(lambda: self._command.has_written(end), self._command.deadline)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._command.end_input()


class Process(OfCommand):
    """A started command. `wait` gives its exit code; `kill` signals it."""

    def __init__(
        self,
        link: Link,
        argv: str | list[str],
        *,
        env: Mapping[str, str],
        cwd: str | None,
        stdin: Data | int | None,
        limits: Limits,
        size: tuple[int, int] | None = None,
        merge: bool = False,
    ) -> None:
        self._link = link
        self.command = command = Command(link.conversation, link.send)
        self.stdout = Stream(link, command, 1)
        self.stderr = Stream(link, command, 2)
        self.stdin = Stdin(link, command)
        running = command.start(argv, env=env, cwd=cwd, stdin=stdin, limits=limits, size=size, merge=merge)
        try:
            link.expect(lambda: command.started)
        except BaseException:  # ^C, say
            if not link.closed:
                command.kill_all()
            raise
        command.deadline = link.patience()  # its time began when it started: a fresh sandbox takes a moment
        raise_failure(running)
        link.serve_in_background()

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit code, or None if `timeout` seconds passed first."""
        if timeout is None:
            self._link.expect(lambda: self.command.state.done, self.command.deadline)
        elif not self._link.wait(self.command.state, monotonic() + timeout):
            return None
        return self.command.exit_code()

    def kill(self, signal: str | int = "TERM") -> None:
        """Send a signal, by name or number, to the command's process group; nothing if it has ended."""
        self.command.signal(signal)


class Terminal:
    """A command on a terminal: `sandbox.pty`. What you write is typed, what you read is shown."""

    __reduce__ = refuse_copy

    def __init__(self, process: Process) -> None:
        self._process = process

    def read(self, timeout: float | None = None) -> bytes:
        """The next piece of the screen; b"" at the end, or when `timeout` seconds brought nothing."""
        return self._process.stdout.next_chunk(timeout)

    def write(self, data: Data) -> None:
        self._process.stdin.write(data)

    def resize(self, rows: int, cols: int) -> None:
        self._process.command.resize(rows, cols)

    def wait(self, timeout: float | None = None) -> int | None:
        return self._process.wait(timeout)

    def kill(self, signal: str | int = "HUP") -> None:
        self._process.kill(signal)

    @property
    def exited(self) -> bool:
        return self._process.exited
