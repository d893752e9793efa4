"""Things that an owner lets its sandbox use: file servers and functions of its own process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from belljar.abi.errno import EACCES, EFBIG, EIO
from belljar.abi.errors import Refused
from belljar.abi.paths import fsdecode
from belljar.abi.wire import Answer, Ask, Plain, WireError, encode
from belljar.api.await_host import Guard
from belljar.api.clock_host import HOST_CLOCK, ProcessorShare
from belljar.api.network_host import NetworkAccess, Observe
from belljar.kernel.fs.remote import Export
from belljar.kernel.vfs.server import FileServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from belljar.abi.clock import Clock
    from belljar.api.bridge import HostCall
    from belljar.api.native_mounts import NativeMounts
    from belljar.api.tools import Tool
    from belljar.store.errors import StoreError

    ParseCall = Callable[[], HostCall]

FileAnswer = tuple[bytes, list[tuple[str, dict[str, Any]]]]
"""The frame, and the kinds and data of events to tell the owner of."""

REPORTS: Final = 20
"""Errors of its file servers that an owner is told of."""


def answer_frame(number: int, value: Plain) -> bytes:
    """The frame that answers a question; EFBIG instead of more than a frame can hold."""
    try:
        return encode(Answer(number, value))
    except WireError:
        return encode(Answer(number, None, EFBIG))


class _Opened:
    """A server that was opened for a sandbox, and how many branches of that use it."""

    __slots__ = ("server", "users")

    def __init__(self, server: FileServer) -> None:
        self.server = server
        self.users = 1


class Offers:
    """Checks each question against what was offered: anything else ends the conversation.

    `guard` is held while a server is at work: a sandbox and its branches use the same ones.
    """

    def __init__(self, guard: Guard, first: int = 0, clock: Clock = HOST_CLOCK) -> None:
        self.guard = guard
        self._clock = clock
        self._first = first
        """The number of the first file server: a sandbox on a server may be offered some by several clients."""
        self._exports: list[Export] = []
        self._opened: list[_Opened] = []
        self.share = ProcessorShare(clock)
        self._reported = 0
        self._failures: list[StoreError] = []
        self._tools: dict[bytes, Tool] = {}
        self.network: NetworkAccess | None = None
        """The way to the network, if one was granted or its refusals are to be recorded."""
        self.native_mounts: NativeMounts | None = None
        """On the native tier: mounts are served from here."""

    def branch(self) -> Offers:
        """The same, for a branch of the sandbox."""
        branch = Offers(self.guard, self._first, self._clock)
        with self.guard:
            branch._exports = [export.branch() for export in self._exports]
            branch._opened = self._opened.copy()
            for opened in branch._opened:
                opened.users += 1
        branch._tools = self._tools.copy()
        return branch

    def export(self, server: FileServer, ours: bool) -> int:
        """Let the sandbox use a file server; gives the number it asks for it by. `ours` was opened for it alone."""
        self._exports.append(Export(server, self.report))
        if ours:
            self._opened.append(_Opened(server))
        return self._first + len(self._exports) - 1

    def exported(self, number: int) -> Export | None:
        """What the sandbox asks for by this number."""
        return self._exports[number - self._first] if 0 <= number - self._first < len(self._exports) else None

    def exports_any(self, kind: str) -> bool:
        """Whether a server of this kind is among what the sandbox may use."""
        return any(export.server.kind == kind for export in self._exports)

    def store_failed(self, error: StoreError) -> None:
        """Tell the owner, by an event and in the log, why a file of a snapshot can't be read."""
        self._failures.append(error)
        self.report(error)

    def report(self, error: BaseException) -> None:
        """Tell the owner what a server of its own raised, which the guest sees as EIO; not for ever, it asks on."""
        self._reported += 1
        if self._reported <= REPORTS:
            import logging  # only now: most programs never need it

            logging.getLogger("belljar").error("a mounted file server raised; its guest sees EIO", exc_info=error)

    def close(self) -> None:
        """The sandbox is gone: let go of all that was opened for it. Idempotent."""
        if self.network is not None:
            self.network.close()
        with self.guard:
            for export in self._exports:
                export.close()
            opened, self._opened = self._opened, []
            for entry in opened:
                entry.users -= 1
                if not entry.users:
                    entry.server.close()

    def offer(self, tool: Tool) -> None:
        """Let the sandbox call a function."""
        self._tools[tool.name.encode()] = tool

    def __bool__(self) -> bool:
        return bool(self._exports or self._tools)

    def network_stats(self) -> dict[str, float]:
        """Counters of the network so far; nothing where there is none."""
        return {} if self.network is None else self.network.stats()

    def network_answer(self, ask: Ask, observe: Observe | None) -> tuple[bytes, list[int]]:
        """The frame that answers a question for the network, and the descriptor that goes with it."""
        if ask.operation != "open":
            raise WireError(f"asked the network for {ask.operation!r}")
        if self.network is None:
            return encode(Answer(ask.id, None, EACCES)), []
        return encode(Answer(ask.id, None, fds=1)), [self.network.open(observe)]

    def file_answer(self, ask: Ask) -> Callable[[], FileAnswer] | None:
        """Answers a question about files, on any thread; None if it is about something else."""
        if ask.operation != "file":
            return None
        target = ask.target
        export = self.exported(int(target)) if target.isdigit() and len(target) <= 9 else None
        if export is None or len(ask.arguments) != 1:
            raise WireError("asked for a mount that was never offered")

        def answer() -> FileAnswer:
            events: list[tuple[str, dict[str, Any]]] = []

            def refused(error: Refused) -> None:
                events.append(("refused", {"path": error.host_path, "rule": error.rule, "why": error.why}))

            with self.guard:
                reply = export.serve(ask.arguments[0], refused)
                failures, self._failures = self._failures, []
            events += [("store", {"error": str(error)}) for error in failures]
            try:
                return answer_frame(ask.id, dict(reply)), events
            except (TypeError, ValueError, OverflowError) as error:  # a server of the owner's gave what is no answer
                self.report(error)
                return encode(Answer(ask.id, {"errno": EIO})), events

        return lambda: self.share.charge(answer)

    def value_call(self, ask: Ask) -> ParseCall | None:
        """The call a question asks for, by values, still to be parsed; None if it is about something else."""
        if ask.operation != "call":
            return None
        tool = self._tools.get(ask.target)
        match ask.arguments:
            case [bytes(line)] if tool is not None:
                from belljar.api.bridge import HostCall  # most sandboxes have no tools

                return partial(HostCall.parse, ask.id, tool.name, tool.checked, line)
        raise WireError(f"asked for a call of {ask.target[:40]!r}, which was never offered")

    def tool_call(self, ask: Ask) -> tuple[Tool, list[str]]:
        """The function a question is for, and its arguments. WireError if it was never offered."""
        tool = self._tools.get(ask.target)
        if ask.operation != "tool" or tool is None or len(ask.arguments) != 1 or not isinstance(ask.arguments[0], list):
            raise WireError(f"asked for {ask.operation!r} of {ask.target[:40]!r}, which was never offered")
        if not all(isinstance(arg, bytes) for arg in ask.arguments[0]):
            raise WireError("a tool's arguments are bytes")
        return tool, [fsdecode(arg) for arg in ask.arguments[0]]
