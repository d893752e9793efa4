"""Messages that outlive their connection: whatever is lost on the way, both ends have all of it, once, in order."""

from __future__ import annotations

import hashlib
import random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.wire import WireError
from belljar.remote import wire
from belljar.remote.session import KEPT_MAX, Session
from belljar.remote.wire import VERSION, Acknowledge, Attach, Data, Request, decode, decode_hello, encode

SHAPES = "64b07012393f9e45"
"""Of the messages of VERSION."""


def test_another_shape_is_another_version() -> None:
    messages = [each for union in (wire.Hello, wire.Greeting, wire.Message) for each in get_args(union)]
    shapes = [[each.__struct_config__.tag, *each.__struct_fields__] for each in messages]
    found = hashlib.sha256(repr(shapes).encode()).hexdigest()[:16]
    assert (found, VERSION) == (SHAPES, 2), "raise VERSION, and write both down here"


def test_another_version_is_told_what_to_do() -> None:
    assert decode_hello(encode(Attach("i"))) == Attach("i")
    with pytest.raises(WireError, match=r"version 1 .* but version 2: client and server need the same version"):
        decode_hello(encode(Attach("i", version=1)))


def numbered(n: int, size: int = 1) -> Data:
    return Data(0, n.to_bytes(4, "little") * size)


@given(seed=st.integers(0, 10**6), count=st.integers(1, 400), loss=st.floats(0, 0.3))
def test_all_arrive_once_and_in_order(seed: int, count: int, loss: float) -> None:
    chance = random.Random(seed)
    ends = [Session(), Session()]
    heard: list[list[int]] = [[], []]
    said = [0, 0]
    while min(map(len, heard)) < count:
        me = chance.randrange(2)
        if said[me] < count:
            ends[me].put(numbered(said[me], chance.randrange(1, 5000)))
            said[me] += 1
        if (data := ends[me].next()) is None:
            continue
        if chance.random() < loss:  # the connection is lost, and what was on its way
            received = [end.received for end in ends]
            ends[0].resume(received[1])
            ends[1].resume(received[0])
            continue
        message = ends[1 - me].take(data)
        if message is not None:
            assert isinstance(message, Data)
            heard[1 - me].append(int.from_bytes(message.data[:4], "little"))
    assert heard == [list(range(count))] * 2


def test_what_was_received_is_forgotten() -> None:
    sender, receiver = Session(), Session()
    for n in range(1000):
        sender.put(numbered(n, 1000))
        data = sender.next()
        assert data is not None
        receiver.take(data)
        while (answer := receiver.next()) is not None:
            assert sender.take(answer) is None
    assert sender.kept_bytes < 400_000


def test_a_short_exchange_is_not_acknowledged() -> None:
    """An acknowledgement for each message would double them."""
    sender, receiver = Session(), Session()
    sender.put(numbered(1))
    data = sender.next()
    assert data is not None
    receiver.take(data)
    assert receiver.next() is None


@pytest.mark.parametrize("count", [-1, 2, 1 << 40])
def test_counts_that_can_not_be(count: int) -> None:
    session = Session()
    session.put(numbered(0))
    session.next()
    with pytest.raises(WireError, match="can't have been received"):
        session.take(encode(Acknowledge(count)))
    with pytest.raises(WireError, match="can't have been received"):
        session.resume(count)


def test_one_who_takes_nothing() -> None:
    session = Session()
    request = Request(1, "x", [bytes(500_000)])
    for _ in range(KEPT_MAX // 500_020):
        session.put(request)
    with pytest.raises(WireError, match="wait to be received"):
        session.put(request)


@given(st.binary(max_size=300))
def test_whatever_is_no_message_is_refused(data: bytes) -> None:
    try:
        message = decode(data)
    except WireError:
        return
    assert decode(encode(message)) == message
