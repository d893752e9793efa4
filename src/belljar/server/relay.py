"""Clients of a sandbox that speak to its worker through the server: each frame is checked, and handed on.

A sandbox's requests are told apart by their numbers: those of session n are `n << 32` and following (`api/core.py`),
its file servers `n * EXPORTS` and following. So nothing is renumbered on the way. What a client sends is hostile: it
may end its own session by it, and its own sandbox, and nothing else. No I/O here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Final, Protocol

from belljar.abi.errno import EIO
from belljar.abi.limits import Limits
from belljar.abi.wire import (
    CONTROL_IN,
    USER_RIGHTS,
    WINDOW,
    Answer,
    Ask,
    Boot,
    Call,
    Credit,
    Exited,
    Failure,
    HostMessage,
    Incident,
    Input,
    Output,
    Renew,
    Reply,
    Resize,
    Signal,
    Start,
    Started,
    WireError,
    WorkerMessage,
    client_frames,
    encode,
)
from belljar.api.core import RELAYED
from belljar.api.errors import EndedError
from belljar.remote.wire import EXPORTS

_SHIFT: Final = 32
SLOTS_MAX: Final = 9_000
"""Sessions that one sandbox has in its life: a file server's number has nine digits."""
REQUESTS_MAX: Final = 4096
"""Requests of one client that are under way."""
_CALLS: Final = frozenset(
    "read write list stat mkdir symlink readlink remove rename chmod differences read_lower lower_place "
    "services_boot services service_log service_begin service_end "
    "stats mount unmount watch changes unwatch capture captured_records captured_data capture_end".split()
)
"""Calls that are handed on as they are; `Member._check_call` has the others."""
_ENDS: Final = (Exited, Reply, Failure)
_NET: Final = b"net"
Send = Callable[[bytes, Sequence[int]], None]


class Listener(Protocol):
    """The session of a client."""

    def hear(self, frame: bytes) -> None:
        """What the worker says."""

    def fork(self, number: int, interpreters: list[int]) -> None:
        """Make a branch, which is answered under this number."""

    def charge(self) -> str | None:
        """Count a command. What is wrong if there were too many."""

    def keeps_files(self) -> None:
        """Files of the sandbox are changes to a tree of the client's from now on: the server can't keep it."""

    def end(self, error: EndedError) -> None: ...


class Member:
    """One client of a sandbox."""

    def __init__(self, relay: Relay, slot: int, listener: Listener, limits: Limits) -> None:
        self._relay = relay
        self.slot = slot
        self.listener = listener
        self._limits: Mapping[str, int | float] = asdict(limits)
        self._frames = client_frames()
        self._descriptors: list[int] = []
        self.requests: set[int] = set()
        self._interpreters: set[int] = set()
        self.asks: dict[int, bool] = {}
        """Questions to it, and whether a descriptor may come with the answer."""

    @property
    def tools(self) -> list[bytes]:
        """The functions that it offers."""
        return [name for name, member in self._relay.tools.items() if member is self]

    def feed(self, data: bytes, descriptors: Sequence[int]) -> None:
        """Take in what the client sent, and the descriptors that came with it. WireError."""
        self._descriptors += descriptors
        for message in self._frames.feed(data):
            self._take(message)

    def unused(self) -> list[int]:
        """Descriptors that no frame wanted: for the session's end."""
        unused, self._descriptors = self._descriptors, []
        return unused

    def _take(self, message: HostMessage) -> None:
        match message:
            case Start(id=number):
                self._begin(number)
                if message.forks and message.forks not in self.requests:
                    raise WireError("a copy of what was never started")
                message.limits = self._clamp(message.limits)
                if why := self.listener.charge():
                    self.fail(number, why)
                    return
                if message.control:
                    self._interpreters.add(number)
            case Call(id=number, name=name):
                self._begin(number)
                if name == "fork" and not self._relay.native:
                    self._fork(message)
                    return
                self._check_call(message)
            case Input() | Credit() | Signal() | Resize():
                if not self._knows(message.id):
                    return  # it has ended meanwhile
            case Renew():
                if not self._knows(message.id):
                    return
                message.limits = self._clamp(message.limits)
            case Answer(id=number):
                if number not in self.asks or message.fds > self.asks.pop(number):
                    raise WireError(f"an answer to nothing ({number})")
            case Boot():
                raise WireError("a server boots its sandboxes itself")
        fds = self._take_descriptors(message.fds) if isinstance(message, Call | Answer) else []
        self._relay.send(encode(message), fds)

    def _begin(self, number: int) -> None:
        if number >> _SHIFT != self.slot or number in self.requests:
            raise WireError(f"{number} is no number for a new request")
        if len(self.requests) >= REQUESTS_MAX:
            raise WireError(f"more than {REQUESTS_MAX} requests are under way")
        self.requests.add(number)

    def _knows(self, number: int) -> bool:
        if number >> _SHIFT != self.slot:
            raise WireError(f"{number} is another client's request")
        return number in self.requests

    def _check_call(self, call: Call) -> None:
        name = call.name.removeprefix(USER_RIGHTS)
        match call:
            case Call(name="input", arguments=[int(command), bytes()], fds=0):
                self._knows(command)
            case Call(name="port", arguments=[int()], fds=1):
                pass
            case Call(name="tool", arguments=[bytes(tool)], fds=0):
                self._relay.tools[tool] = self
            case Call(name="root", fds=0) | Call(name="mount", arguments=[_, [b"overlay", *_], *_], fds=0):
                self.listener.keeps_files()
            case Call(name="fuse", arguments=[bytes(), int(), bool()], fds=0) if self._relay.native:
                pass
            case Call(fds=0) if name in _CALLS:
                pass
            case _:
                raise WireError(f"a client can't ask for {call.name[:40]!r}")

    def _fork(self, call: Call) -> None:
        match call:
            case Call(arguments=[list(interpreters)], fds=0) if set(interpreters) <= self.requests:
                self.listener.fork(call.id, interpreters)
            case _:
                raise WireError("a fork of what was never started")

    def answer(self, number: int, value: object) -> None:
        """Answer a request in the worker's place."""
        self.requests.discard(number)
        self.listener.hear(encode(Reply(number, value)))

    def fail(self, number: int, why: str) -> None:
        self.requests.discard(number)
        self.listener.hear(encode(Failure(number, 0, why.encode())))

    def last_words(self) -> Iterator[bytes]:
        """Frames for the worker when the client is gone: what was asked of it fails, what it started goes on."""
        for number in self.asks:
            yield encode(Answer(number, None, EIO))
        for number in self.requests & self._interpreters:
            yield encode(Input(number, b"", CONTROL_IN))
        for number in self.requests:  # output that nobody takes must not stop it
            yield from (encode(Credit(number, stream, WINDOW)) for stream in (1, 2))

    def _clamp(self, limits: dict[str, int | float]) -> dict[str, int | float]:
        """Limits, none above the sandbox's own."""
        if not limits:
            return limits
        if not limits.keys() <= self._limits.keys():
            raise WireError("limits that there are not")
        return {name: min(value, self._limits[name]) for name, value in limits.items()}

    def _take_descriptors(self, count: int) -> list[int]:
        if not 0 <= count <= len(self._descriptors):
            raise WireError("a frame without its descriptors")
        taken, self._descriptors = self._descriptors[:count], self._descriptors[count:]
        return taken

    def hear(self, message: WorkerMessage) -> None:
        if isinstance(message, _ENDS):
            self.requests.discard(message.id)
        self.listener.hear(encode(message))


class Relay:
    """The clients of one sandbox. Implements `api.core.Relay`."""

    def __init__(self, slots: int = 0, *, native: bool = False) -> None:
        self.native = native
        """Whether its programs are real ones, and mounts are FUSE's."""
        self._members: dict[int, Member] = {}
        self._slots = slots
        self.tools: dict[bytes, Member] = {}
        """Who offered which function last."""
        self._network: Member | None = None
        """Who is asked for the network: the client that came last."""
        self._send: Send | None = None

    def use(self, send: Send) -> None:
        self._send = send

    def send(self, frame: bytes, descriptors: Sequence[int] = ()) -> None:
        if self._send is not None:  # else the sandbox has ended
            self._send(frame, descriptors)

    def join(self, listener: Listener, limits: Limits, slot: int = 0, requests: Iterable[int] = ()) -> Member:
        """A new client; in a branch, one with the number that it has in the origin, and requests that go on here."""
        if not slot:
            if self._slots >= SLOTS_MAX:
                raise ValueError("this sandbox has had too many clients: make a new one")
            self._slots += 1
            slot = self._slots
        member = self._members[slot] = self._network = Member(self, slot, listener, limits)
        member.requests.update(requests)
        return member

    def leave(self, member: Member) -> None:
        """A client is gone."""
        if self._members.get(member.slot) is not member:
            return
        del self._members[member.slot]
        self.tools = {name: each for name, each in self.tools.items() if each is not member}
        if self._network is member:
            self._network = next(reversed(self._members.values()), None)
        for frame in member.last_words():
            self.send(frame)

    # `api.core.Relay`.

    def take(self, message: WorkerMessage) -> bool:
        match message:
            case Output(id=number) | Exited(id=number) | Started(id=number) | Reply(id=number) | Failure(id=number):
                if number < RELAYED:
                    return False
                member = self._members.get(number >> _SHIFT)
                if member is not None and number in member.requests:
                    member.hear(message)
                elif isinstance(message, Output):
                    self.send(encode(Credit(number, message.stream, len(message.data))))
                return True
            case Ask():
                return self._ask(message)
            case Incident():
                for member in self._members.values():
                    member.hear(message)
        return False

    def _ask(self, ask: Ask) -> bool:
        target = ask.target
        if target == _NET:
            member = self._network
            if member is None:
                return False  # as the server would have it: there is none
        elif target.isdigit():
            if int(target) < EXPORTS:
                return False
            member = self._members.get(int(target) // EXPORTS)
        elif target == b"engine":
            return False
        else:
            member = self.tools.get(target)
        if member is None:
            self.send(encode(Answer(ask.id, None, EIO)))
        else:
            member.asks[ask.id] = target == _NET
            member.hear(ask)
        return True

    def waits_for(self, number: int) -> bool:
        member = self._members.get(number >> _SHIFT)
        return member is not None and number in member.requests

    def branch(self) -> Relay:
        return Relay(self._slots, native=self.native)

    def end(self, error: EndedError) -> None:
        self._send = None
        members, self._members = list(self._members.values()), {}
        for member in members:
            member.listener.end(error)
