"""Questions of a worker to its owner: checked against what was offered, counted and bounded, for both fronts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from belljar.abi.errno import EAGAIN
from belljar.abi.wire import Answer, Ask, Plain, encode
from belljar.api.await_host import exclusive
from belljar.api.core import Conversation
from belljar.api.engines_host import EngineBroker, Opening
from belljar.api.offers import FileAnswer, Offers

if TYPE_CHECKING:
    from belljar.api.offers import ParseCall
    from belljar.api.tools import Tool

CALLS_MAX: Final = 1024
"""Calls of the owner's functions that one sandbox may have waiting, those that run included."""
CALL_BYTES_MAX: Final = 64 << 20
"""Bytes of their arguments."""
_HANDED_OVER: Final = ("open", "fork")
"""Operations whose answer brings a descriptor."""


class Front(Protocol):
    """Methods by which a link answers."""

    def post(self, frame: bytes, fds: Sequence[int] = ()) -> None:
        """Send an answer, without waiting until the worker takes it."""

    def takes_descriptors(self) -> bool:
        """Whether the worker has taken nearly all of the descriptors that it was sent."""

    def work_on_files(self, work: Callable[[], FileAnswer], done: Callable[[FileAnswer], None]) -> None:
        """Do this, which may take a while, and call `done` where frames are received; none is taken before that."""

    def open_engine(self, opening: Opening) -> None:
        """Do this, which takes a while, and send the answer."""

    def call_function(self, number: int, parse: ParseCall, size: int, ended: Callable[[], None]) -> None:
        """Parse a call of so many bytes, make it, and send the answer."""

    def call_tool(self, number: int, tool: Tool, args: list[str], ended: Callable[[], None]) -> None: ...

    def serve_in_background(self) -> None:
        """From now on something may arrive unasked."""


class Asks:
    """Answers one worker. `take` is called with each question, on whichever thread receives."""

    def __init__(self, front: Front, conversation: Conversation, offers: Offers, engines: EngineBroker) -> None:
        self._front = front
        self._conversation = conversation
        self._offers = offers
        self._engines = engines
        self._lock = exclusive()
        self._calls = 0
        self._call_bytes = 0

    def take(self, ask: Ask) -> None:
        """Answer, or have it answered. Raises WireError for what was never offered."""
        if ask.target in (b"engine", b"net") and ask.operation in _HANDED_OVER and not self._front.takes_descriptors():
            self._front.post(encode(Answer(ask.id, None, EAGAIN)))
        elif ask.target == b"engine":
            self._engine(ask)
        elif ask.target == b"net":
            self._front.serve_in_background()
            self._front.post(*self._offers.network_answer(ask, self._conversation.observe))
        elif (answer := self._offers.file_answer(ask)) is not None:
            self._front.work_on_files(answer, self._files_answered)
        elif (parse := self._offers.value_call(ask)) is not None:
            if ended := self._admit(ask):
                self._front.call_function(ask.id, parse, _size(ask.arguments), ended)
        else:
            tool, args = self._offers.tool_call(ask)
            if ended := self._admit(ask):
                self._front.call_tool(ask.id, tool, args, ended)

    def _files_answered(self, answer: FileAnswer) -> None:
        frame, events = answer
        observe = self._conversation.observe
        if observe is not None:
            for kind, data in events:
                observe(kind, data)
        self._front.post(frame)

    def _engine(self, ask: Ask) -> None:
        todo = self._engines.take(ask)
        if not isinstance(todo, Opening):
            self._front.post(todo)
            return
        # A program that runs on after its command's end opens files, ends, and so on.
        self._front.serve_in_background()
        given = self._engines.give(todo)
        if given is not None:
            self._front.post(*given)
        else:
            self._front.open_engine(todo)

    def _admit(self, ask: Ask) -> Callable[[], None] | None:
        """Count a call of a function. Gives what to call at its end; None if there are too many, and it was refused."""
        size = _size(ask.arguments)
        if self._calls >= CALLS_MAX or self._call_bytes + size > CALL_BYTES_MAX:
            self._front.post(encode(Answer(ask.id, None, EAGAIN)))
            return None
        self._count(1, size)
        return lambda: self._count(-1, -size)

    def _count(self, calls: int, size: int) -> None:
        with self._lock:  # they end on threads of their own
            self._calls += calls
            self._call_bytes += size


def _size(arguments: Plain) -> int:
    """Bytes of a call's arguments: a line, or words."""
    match arguments:
        case [bytes(line)]:
            return len(line)
        case [list(words)]:
            return sum(len(word) + 64 for word in words if isinstance(word, bytes))
    return 0
