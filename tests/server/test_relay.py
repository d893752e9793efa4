"""Clients' frames on their way to a worker, without a server: frames in, frames out."""

from __future__ import annotations

from collections.abc import Sequence

from belljar.abi.limits import Limits
from belljar.abi.wire import Failure, Start, WorkerMessage, encode, worker_frames
from belljar.api.errors import EndedError
from belljar.server.relay import Relay


class Client:
    """A session that may start nothing."""

    def __init__(self) -> None:
        self.heard: list[WorkerMessage] = []
        self._frames = worker_frames()

    def hear(self, frame: bytes) -> None:
        self.heard += self._frames.feed(frame)

    def fork(self, number: int, interpreters: list[int]) -> None:
        raise NotImplementedError

    def charge(self) -> str | None:
        return "too many commands"

    def keeps_files(self) -> None: ...

    def end(self, error: EndedError) -> None: ...


def test_a_command_that_is_refused_is_no_longer_under_way() -> None:
    sent: list[bytes] = []

    def send(frame: bytes, _descriptors: Sequence[int]) -> None:
        sent.append(frame)

    relay, client = Relay(), Client()
    relay.use(send)
    member = relay.join(client, Limits())
    number = member.slot << 32
    start = encode(Start(number, [b"true"], {}, None, None, merge=False, live=False, limits={}))
    for _ in range(2):
        member.feed(start, ())
    assert client.heard == [Failure(number, 0, b"too many commands")] * 2
    assert not relay.waits_for(number)
    relay.leave(member)
    assert sent == [], "the worker has never heard of it"
