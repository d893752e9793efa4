"""Commands that run while you talk to them: `sandbox.spawn` and `sandbox.pty`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, AnyStr, Generic

from belljar.abi.limits import Limits
from belljar.api.command import Command, OfCommand
from belljar.api.link_host import Link
from belljar.api.output import Lines, Output, collect
from belljar.api.owner_host import refuse_copy
from belljar.api.request import Data, raise_failure
from belljar.api.results import ExecResult
from belljar.api.stepper import finish


class Stream(Generic[AnyStr]):
    """Output as it comes: iterate over chunks of bytes; with `text=True`, over lines, as of a text file.

    What you do not read stays in the sandbox, which then waits.
    """

    def __init__(self, output: Output[AnyStr]) -> None:
        self._output: Output[AnyStr] = output

    def __iter__(self) -> Iterator[AnyStr]:
        chunks: Any = self._chunks() if self._output.text is None else self._lines(ends=True)
        return chunks  # type: ignore[no-any-return]

    def _chunks(self) -> Iterator[AnyStr]:
        while data := self.next_chunk():
            yield data

    def next_chunk(self, timeout: float | None = None) -> AnyStr:
        """The next piece; empty at the end, or when `timeout` seconds brought nothing."""
        return finish(self._output.next_chunk(timeout))

    def lines(self) -> Iterator[str]:
        """The lines as they come, without their ends; bytes that are no UTF-8 are replaced."""
        return self._lines(ends=False)

    def _lines(self, *, ends: bool) -> Iterator[str]:
        lines = Lines(ends=ends)
        for data in self._chunks():
            yield from lines.feed(data)
        yield from lines.feed(b"")

    def read(self) -> AnyStr:
        """Everything to the end."""
        empty: Any = b"" if self._output.text is None else ""
        return empty.join(self._chunks())  # type: ignore[no-any-return]


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


class Process(OfCommand, Generic[AnyStr]):
    """A started command. `wait` gives its exit code, `result` also its output; `kill` signals it."""

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
        text: bool = False,
        background: bool = False,
        timeout: float | None = None,
    ) -> None:
        self._link = link
        self._began, self._timeout = self._link.clock.monotonic(), timeout

        def send(frame: bytes) -> None:
            link.send(frame, deadline=self.command.deadline)

        self.command = command = Command(link.conversation, send, background=background)
        self.stdout: Stream[AnyStr] = Stream(Output(link, command, 1, text=text))
        self.stderr: Stream[AnyStr] = Stream(Output(link, command, 2, text=text))
        self.stdin = Stdin(link, command)
        command.deadline = link.patience(limits.wall_seconds)
        running = command.start(argv, env=env, cwd=cwd, stdin=stdin, limits=limits, size=size, merge=merge)
        try:
            link.expect(lambda: command.started, command.deadline)
        except BaseException:  # ^C, say
            if not link.closed:
                command.kill_all()
            raise
        # Its time began when it started: a fresh sandbox takes a moment.
        command.deadline = link.patience(limits.wall_seconds)
        raise_failure(running)
        link.serve_in_background()

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit code, or None if `timeout` seconds passed first."""
        if timeout is None:
            self._link.expect(lambda: self.command.state.done, self.command.deadline)
        elif not self._link.wait(self.command.state, self._link.clock.monotonic() + timeout):
            return None
        return self.command.exit_code()

    def result(self) -> ExecResult:
        """Wait for its end; exit code and the output that was not read yet, as `exec` gives them."""
        return finish(collect(self._link, self.command, self._timeout, self._began))

    def kill(self, signal: str | int = "TERM") -> None:
        """Send a signal, by name or number, to the command's process group; nothing if it has ended."""
        self.command.signal(signal)


class Terminal:
    """A command on a terminal: `sandbox.pty`. What you write is typed, what you read is shown."""

    __reduce__ = refuse_copy

    def __init__(self, process: Process[bytes]) -> None:
        self.process = process
        """The command: its pid, and how it ended."""

    def read(self, timeout: float | None = None) -> bytes:
        """The next piece of the screen; b"" at the end, or when `timeout` seconds brought nothing."""
        return self.process.stdout.next_chunk(timeout)

    def write(self, data: Data) -> None:
        self.process.stdin.write(data)

    def resize(self, rows: int, cols: int) -> None:
        self.process.command.resize(rows, cols)

    def wait(self, timeout: float | None = None) -> int | None:
        return self.process.wait(timeout)

    def kill(self, signal: str | int = "HUP") -> None:
        self.process.kill(signal)

    @property
    def exited(self) -> bool:
        return self.process.exited
