"""The frames between a sandbox's network files and the broker: streams opened, fed, granted room and dropped.

Both ends count: neither sends more of a stream than the other has room for, and a side that does is cut off.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Annotated, Final

import msgspec

from belljar.abi.wire import FrameReader, WireError

WINDOW: Final = 1 << 20
"""Bytes of one stream that may be on the way before the reader grants more."""
CHUNK: Final = 256 << 10
"""The largest piece of a stream in one frame."""
FRAME_MAX: Final = 512 << 10
HEADERS_MAX: Final = 512
"""Header fields of one request."""
DATAGRAM_MAX: Final = 65507

_HEADER: Final = struct.Struct("<I")


class _Message(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    id: int


# From the guest's side.


class Resolve(_Message, tag="resolve"):
    """Look a name up. Answered by Resolved or Failed."""

    name: str
    kind: str


class Dial(_Message, tag="dial"):
    """Connect to a host and port over "tcp" or "udp". Answered by Opened or Failed.

    `web`: a connection over which only web requests pass will do, where there is no other.
    """

    protocol: str
    host: str
    port: int
    timeout: float
    web: bool = False


class Secure(_Message, tag="secure"):
    """Speak TLS from here on over a stream that was dialled, and verify that it is this host's. Answered by Secured or
    Failed. `protocols` are offered by ALPN."""

    name: str
    protocols: Annotated[list[str], msgspec.Meta(max_length=64)]


class Fetch(_Message, tag="fetch"):
    """Send a web request. Answered by Opened or Failed. `body`: more follows as Data, up to an End."""

    method: str
    url: str
    headers: Annotated[list[tuple[bytes, bytes]], msgspec.Meta(max_length=HEADERS_MAX)]
    body: bool
    redirects: int
    timeout: float
    connect_timeout: float
    http: str


class Drop(_Message, tag="drop"):
    """Closes a stream that is no longer wanted."""


# From the broker.


class Resolved(_Message, tag="resolved"):
    """Lines of `name ttl TYPE data`."""

    records: list[str]


class Opened(_Message, tag="opened"):
    """The stream is open: who it leads to, and of a web request the head of the response."""

    info: dict[str, str]
    head: bytes = b""


class Secured(_Message, tag="secured"):
    """TLS is established from here on: `version`, `cipher`, `protocol`, `certificate`, `peer`."""

    info: dict[str, str]


class Failed(_Message, tag="failed"):
    """The stream could not be opened, or broke: a kind of the list in docs/network.md, and a sentence."""

    kind: str
    text: str


# From either.


class Data(_Message, tag="data"):
    data: bytes


class End(_Message, tag="end"):
    """No more data from this side."""


class Grant(_Message, tag="grant"):
    """Allows as many bytes more as were taken."""

    count: int


GuestFrame = Resolve | Dial | Secure | Fetch | Data | End | Grant | Drop
BrokerFrame = Resolved | Opened | Secured | Failed | Data | End | Grant

_encoder: Final = msgspec.msgpack.Encoder()


def encode(message: GuestFrame | BrokerFrame) -> bytes:
    body = _encoder.encode(message)
    if len(body) > FRAME_MAX:
        raise WireError(f"a frame of {len(body)} bytes is over the limit of {FRAME_MAX}")
    return _HEADER.pack(len(body)) + body


@cache
def _guest_decoder() -> msgspec.msgpack.Decoder[GuestFrame]:
    return msgspec.msgpack.Decoder(GuestFrame)


@cache
def _broker_decoder() -> msgspec.msgpack.Decoder[BrokerFrame]:
    return msgspec.msgpack.Decoder(BrokerFrame)


def guest_frames() -> FrameReader[GuestFrame]:
    """Return a reader of guest frames, for the broker."""
    return FrameReader(_guest_decoder(), FRAME_MAX)


def broker_frames() -> FrameReader[BrokerFrame]:
    """Return a reader of broker frames, for the guest's side."""
    return FrameReader(_broker_decoder(), FRAME_MAX)
