"""Reading a started command's output, for both fronts, as generators (`stepper.py`)."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any, AnyStr, Final, Generic

from belljar.api.command import Command
from belljar.api.request import exec_result, raise_failure
from belljar.api.results import ExecResult
from belljar.api.stepper import Link, Waits

_STREAMS: Final = (1, 2)


class Text:
    """Makes text of a stream's bytes, however they are cut; what is not UTF-8 becomes U+FFFD."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes, *, final: bool = False) -> str:
        return self._decoder.decode(data, final)


class Lines:
    """Cuts a stream into lines of text, without their ends or with them."""

    def __init__(self, *, ends: bool = False) -> None:
        self._text = Text()
        self._rest = ""
        self._end = "\n" if ends else ""

    def feed(self, data: bytes | str) -> Iterator[str]:
        """Empty data is the end."""
        text = data if isinstance(data, str) else self._text.feed(data, final=not data)
        *whole, self._rest = (self._rest + text).split("\n")
        for line in whole:
            yield line + self._end
        if not data and self._rest:
            yield self._rest


class Output(Generic[AnyStr]):
    """One stream of a command: bytes, or text."""

    def __init__(self, link: Link, command: Command, number: int, *, text: bool) -> None:
        self._link = link
        self._command = command
        self._number = number
        self.text = Text() if text else None

    def next_chunk(self, timeout: float | None) -> Waits[AnyStr]:
        deadline = None if timeout is None else self._link.clock.monotonic() + timeout
        while True:
            yield _news(self._link, self._command, (self._number,), deadline)
            data = self._command.take(self._number)
            ended = not data and self._command.exited
            given: Any = data if self.text is None else self.text.feed(data, final=ended)
            if given or not data:  # else it is a part of a character
                return given  # type: ignore[no-any-return]


def collect(link: Link, command: Command, timeout: float | None, began: float) -> Waits[ExecResult]:
    """Wait for a command's end; the result has the output that nobody has read."""
    parts: dict[int, list[bytes]] = {1: [], 2: []}
    while not command.exited or any(command.chunks[stream].waiting for stream in _STREAMS):
        yield _news(link, command, _STREAMS, None)
        for stream in _STREAMS:
            parts[stream].append(command.take(stream))
    raise_failure(command.state)
    return exec_result(command.state, parts, link.clock.monotonic() - began, timeout)


def _news(link: Link, command: Command, streams: tuple[int, ...], deadline: float | None) -> Any:
    """Wait for output, or the command's end; without a deadline, until the sandbox must have ended it."""

    def ready() -> bool:
        return any(map(command.has_news, streams))

    return link.expect(ready, command.deadline) if deadline is None else link.wait_until(ready, deadline)
