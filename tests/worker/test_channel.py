"""The worker's socket: descriptors come with the message that claims them, and with no other."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence

import pytest

from belljar.abi.wire import Answer, Call, HostMessage, encode
from belljar.kernel.fiber import Hub
from belljar.kernel.machine_host import EpollPoller, HostClock
from belljar.worker.channel_host import Channel
from belljar.worker.descriptor_host import Descriptor


class Rig:
    """A channel whose other end is ours."""

    def __init__(self) -> None:
        poller = EpollPoller()
        self._poller = poller
        self.hub = Hub(HostClock(), poller)
        self.host, worker = socket.socketpair()
        self._worker = worker
        self.channel = Channel(worker, self.hub, poller)
        self.got: list[tuple[HostMessage, list[int]]] = []
        self.channel.open(self._take)

    def _take(self, message: HostMessage, descriptors: Sequence[Descriptor]) -> None:
        self.got.append((message, [descriptor.take() for descriptor in descriptors]))

    def turn(self) -> None:
        self.hub.run(lambda: self._poller.wait(0) or True)

    def close(self) -> None:
        for _, fds in self.got:
            for fd in fds:
                os.close(fd)
        self.host.close()
        self._worker.close()
        self._poller.close()


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.close()


def send(rig: Rig, data: bytes, count: int) -> None:
    reader, writer = os.pipe()
    socket.send_fds(rig.host, [data], [writer] * count)
    os.close(reader)
    os.close(writer)


def test_each_message_gets_its_own(rig: Rig) -> None:
    send(rig, encode(Answer(1, None, fds=1)), 1)
    send(rig, encode(Call(2, "fork", [], 2)), 2)
    rig.host.send(encode(Answer(3, None)))
    for _ in range(3):
        rig.turn()
    assert [len(fds) for _, fds in rig.got] == [1, 2, 0]
    assert not rig.channel.closed


def test_they_wait_for_the_rest_of_their_message(rig: Rig) -> None:
    frame = encode(Answer(1, b"x" * 100, fds=1))
    send(rig, frame[:10], 1)
    rig.turn()
    assert not rig.got
    rig.host.send(frame[10:])
    rig.turn()
    assert [len(fds) for _, fds in rig.got] == [1]


def test_those_that_nobody_claims_are_closed(rig: Rig) -> None:
    reader, writer = os.pipe()
    socket.send_fds(rig.host, [encode(Answer(1, None))], [writer] * 5)
    os.close(writer)
    os.set_blocking(reader, False)
    rig.turn()
    assert [len(fds) for _, fds in rig.got] == [0]
    assert os.read(reader, 1) == b"", "nobody has a copy of the other end"
    os.close(reader)


@pytest.mark.parametrize("claimed", [1, 3, -1])
def test_a_claim_of_what_did_not_come_ends_the_conversation(rig: Rig, claimed: int) -> None:
    rig.host.send(encode(Answer(1, None, fds=claimed)))
    rig.turn()
    assert rig.channel.closed
    assert rig.channel.error is not None
    assert not rig.got
