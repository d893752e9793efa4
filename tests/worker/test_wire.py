"""Frames: what is taken, and that everything else ends the conversation."""

from __future__ import annotations

import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.wire import (
    FRAME_MAX,
    Call,
    Exited,
    Output,
    Ready,
    Start,
    WireError,
    encode,
    host_frames,
    worker_frames,
)
from belljar.api.core import Conversation

START = Start(1, [b"true"], {}, None, b"", False, False, {})


def test_a_frame_comes_through_in_any_pieces() -> None:
    frame = encode(START)
    reader = host_frames()
    got = [message for byte in frame + frame for message in reader.feed(bytes([byte]))]
    assert got == [START, START]
    assert not reader.partial


def frame(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<I", 0),
        struct.pack("<I", 0xFFFFFFFF),
        struct.pack("<I", FRAME_MAX + 1),
        frame(b"\xc1"),
        frame(b"\x80"),
        frame(msgspec.msgpack.encode(["nonsense", 1])),
        frame(msgspec.msgpack.encode(["output", 1, 1])),
        frame(msgspec.msgpack.encode(["output", 1, 1, b"x", "more"])),
        frame(msgspec.msgpack.encode(["output", "1", 1, b"x"])),
        frame(msgspec.msgpack.encode(["reply", 1, 2]) + b"trailing"),
        frame(b"\x91" * 10_000),
    ],
)
def test_malformed_frames_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        list(worker_frames().feed(data))


@given(st.binary(max_size=200))
def test_random_bytes_never_crash(data: bytes) -> None:
    try:
        list(worker_frames().feed(data))
    except WireError:
        return


def test_a_frame_too_large_is_never_sent() -> None:
    with pytest.raises(WireError, match="over the limit"):
        encode(Call(1, "write", [b"x" * (FRAME_MAX + 1)]))


@pytest.mark.parametrize(
    "message",
    [
        Output(7, 1, b"x"),
        Exited(7, 0, 0, None, b"", b"", False),
        Output(1, 3, b"x"),
        Output(1, 1, b"x" * (5 << 20)),
    ],
)
def test_a_worker_that_breaks_the_rules_is_ended(message: Output | Exited) -> None:
    conversation = Conversation()
    conversation.start(
        ["x"], env={}, cwd=None, stdin=b"", merge=False, live=False, limits={}, allowed_output=1 << 20, on_chunk={}
    )
    with pytest.raises(WireError):
        conversation.feed(encode(message))


def test_ready_comes_once() -> None:
    conversation = Conversation()
    conversation.feed(encode(Ready(["seccomp"], 1)))
    with pytest.raises(WireError):
        conversation.feed(encode(Ready(["seccomp"], 1)))
