"""The frames between a host and a worker: a length, then one msgpack message of a known shape.

Guest text travels as bytes (it need not be UTF-8). Sizes are checked before anything is allocated, and a frame that
does not decode to one of the shapes below closes the connection.
"""

# No `from __future__ import annotations`: msgspec would have to compile every annotation once more, in every process.
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

FRAME_MAX: Final = 64 << 20
"""The largest frame either side accepts."""
CHUNK_MAX: Final = 256 << 10
"""The largest piece of a stream in one frame."""
WINDOW: Final = 4 << 20
"""Flow-control window of one stream: bytes sent before the reader grants more."""
HELLO: Final = b"!"
"""The first byte of a branch: its owner learns from it, by the kernel's word, which process sent it."""
FDS_MAX: Final = 32
"""Descriptors that one message may carry."""

CONTROL_IN: Final = 3
CONTROL_OUT: Final = 4
"""File descriptors of the control channel between an interpreter and its owner."""
LIST_PAGE: Final = 10_000
"""Entries of a directory in one answer."""
USER_RIGHTS: Final = "user:"
"""Before the name of a call about files: done with the rights of the sandbox's commands, not with all."""

_HEADER: Final = struct.Struct("<I")

Plain: TypeAlias = Any
"""Arguments and result of a call: None, bool, int, float, bytes, str, and lists and dicts of them."""


class _Message(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    pass


# From the host.


class Boot(_Message, tag="boot"):
    """Configure the sandbox: sent once, first. No limits: the default ones.

    `seed` is for a worker that replays: the same commands have the same effects in all that have the same seed.
    """

    env: dict[bytes, bytes]
    cwd: bytes
    user: bytes
    hostname: bytes
    limits: dict[str, int | float]
    seed: bytes = b""


class Start(_Message, tag="start"):
    """Run a program. `stdin` is its input, in a pipe; with `follows`, Input brings more.

    `stdin` None is `/dev/null`, or with `follows` a socket, by which nobody can tell whether there will be any.
    `size` makes it a terminal of (rows, columns).

    `live` sends output as it comes; else it is sent in large pieces, the last of them with the Exited. `control` gives
    the program two more descriptors, CONTROL_IN to read and CONTROL_OUT to write, with the host at their far ends; what
    it wrote elsewhere before it wrote to CONTROL_OUT arrives before. `forks` makes it a copy of the interpreter that
    the Start of that id is, while that one waits for its owner.
    """

    id: int
    argv: list[bytes]
    env: dict[bytes, bytes]
    cwd: bytes | None
    stdin: bytes | None
    merge: bool
    live: bool
    limits: dict[str, int | float]
    size: tuple[int, int] | None = None
    control: bool = False
    forks: int = 0
    follows: bool = False
    returns: bool = False
    """Whether the part of the input that nobody read comes back with the Exited."""


class Input(_Message, tag="input"):
    """More for stream 0, standard input, or CONTROL_IN; empty: the end of it."""

    id: int
    data: bytes
    stream: int = 0


class Credit(_Message, tag="credit"):
    """The host has read this much of a stream: as much again may follow."""

    id: int
    stream: int
    count: int


class Signal(_Message, tag="signal"):
    """A signal to what was started; `all` sends SIGKILL to everything it started as well."""

    id: int
    number: int
    all: bool = False


class Resize(_Message, tag="resize"):
    id: int
    rows: int
    columns: int


class Renew(_Message, tag="renew"):
    """An interpreter that was started begins another run: these are its limits, and nothing is used of them yet.

    None are given if they are those of its last run.
    """

    id: int
    limits: dict[str, int | float]


class Call(_Message, tag="call"):
    """An operation that is answered by Reply or Failure with the same id. `fds` descriptors come with it."""

    id: int
    name: str
    arguments: list[Plain]
    fds: int = 0


class Answer(_Message, tag="answer"):
    """The host's answer to an Ask: a value, or an errno and a message. `fds` descriptors come with it."""

    id: int
    value: Plain
    errno: int = 0
    message: bytes = b""
    fds: int = 0


HostMessage = Boot | Start | Input | Credit | Signal | Resize | Renew | Call | Answer

# From the worker.


class Ready(_Message, tag="ready"):
    """The worker is locked down, by these layers."""

    layers: list[str]
    pid: int


class Output(_Message, tag="output"):
    """A piece of a stream: 1 is stdout (or the terminal), 2 is stderr, then there is CONTROL_OUT."""

    id: int
    stream: int
    data: bytes


class Exited(_Message, tag="exited"):
    """A started program has ended; with the rest of its output."""

    id: int
    code: int
    signal: int
    limit: str | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    left: bool = False
    """Processes go on without it: they may still ask for something."""
    unread: bytes = b""
    """Input that it was given and did not read, if Start said `returns`."""
    cpu_us: int = 0
    """Microseconds of processor time that it used, where a native sandbox ran it."""
    allowed: float = 0.0
    """What the limit is that stopped it, where its standard error does not tell yet."""


class Started(_Message, tag="started"):
    id: int
    pid: int


class Reply(_Message, tag="reply"):
    id: int
    value: Plain


class Failure(_Message, tag="failure"):
    """A call or start that could not be done: errno 0 means a bad request rather than a system error."""

    id: int
    errno: int
    message: bytes
    path: bytes | None = None


class Ask(_Message, tag="ask"):
    """A request to the host: an operation on a mount or a tool there."""

    id: int
    target: bytes
    operation: str
    arguments: list[Plain]


class Incident(_Message, tag="incident"):
    """A bug of ours ended one process, or (`fatal`) the worker. The guest sees only the id."""

    id: bytes
    command: bytes
    trace: bytes
    fatal: bool = False


WorkerMessage = Ready | Output | Exited | Started | Reply | Failure | Ask | Incident

_encoder = msgspec.msgpack.Encoder()
T = TypeVar("T")


class WireError(Exception):
    """The other side violated the protocol; the connection is unusable."""


def encode(message: HostMessage | WorkerMessage) -> bytes:
    """Encode one frame. WireError if it is too large."""
    body = _encoder.encode(message)
    if len(body) > FRAME_MAX:
        raise WireError(f"a frame of {len(body)} bytes is over the limit of {FRAME_MAX}")
    return _HEADER.pack(len(body)) + body


_SMALL: Final = 64 << 10
"""Frames up to this are decoded as they are: what they become is small, too."""
ELEMENTS_MAX: Final = 200_000
"""Values in one larger frame, lists and dicts included. A million empty lists would be 1 MB there and 64 MB here."""
_TAG: Final = 16
"""Bytes of a frame's body in which its tag is."""
_FIXARRAY: Final = range(0x90, 0xA0)
_FIXSTR: Final = range(0xA0, 0xC0)
"""First bytes of msgpack's short arrays and strings, which hold the length."""
_WORKER_LIMITS: Final = {
    b"output": CHUNK_MAX + 64,
    b"exited": 16 << 20,
    b"reply": 16 << 20,
    b"ask": (16 << 20) + 4096,
    b"incident": 1 << 20,
}
"""The longest frame of each kind that a worker may send, where that is more than a small one."""


class FrameReader(Generic[T]):
    """Decodes a byte stream to messages of one direction.

    `kinds`: the longest frame by tag; a longer one is refused before it is received, one of too many values before it
    is decoded.
    """

    def __init__(
        self, decoder: msgspec.msgpack.Decoder[T], limit: int = FRAME_MAX, kinds: Mapping[bytes, int] | None = None
    ) -> None:
        self._decoder = decoder
        self._limit = limit
        self._kinds = kinds
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[T]:
        """Every message completed by `data`. Raises WireError for a bad length or shape."""
        buffer = self._buffer
        if not buffer and len(data) > 4 and _HEADER.unpack_from(data)[0] == len(data) - 4 <= self._limit:
            yield self._decode(memoryview(data)[4:])  # just one, and all of it
            return
        buffer += data
        position = 0
        try:
            while len(buffer) - position >= 4:
                (length,) = _HEADER.unpack_from(buffer, position)
                if not 0 < length <= self._limit:
                    raise WireError(f"a frame claims {length} bytes; the limit is {self._limit}")
                end = position + 4 + length
                if length > _SMALL and self._kinds is not None and len(buffer) - position >= 4 + _TAG:
                    _check_kind(buffer[position + 4 : position + 4 + _TAG], length, self._kinds)
                if len(buffer) < end:
                    break
                with memoryview(buffer) as view, view[position + 4 : end] as body:
                    message = self._decode(body)
                position = end
                yield message
        finally:
            del buffer[:position]

    def _decode(self, body: memoryview) -> T:
        if len(body) > _SMALL and self._kinds is not None:
            _check_kind(bytes(body[:_TAG]), len(body), self._kinds)
            check_elements(body, ELEMENTS_MAX)
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise WireError(f"a frame does not decode: {error}") from None

    @property
    def partial(self) -> bool:
        """Whether the bytes so far end inside a frame."""
        return bool(self._buffer)


def _check_kind(head: bytes | bytearray, length: int, kinds: Mapping[bytes, int]) -> None:
    """Check the length of a frame by its tag: the first item of a short array, and a short string."""
    tag = bytes(head[2 : 2 + head[1] - _FIXSTR.start]) if head[0] in _FIXARRAY and head[1] in _FIXSTR else b""
    if length > kinds.get(tag, _SMALL):
        raise WireError(f"a frame of {length} bytes, which is too long for its kind ({bytes(tag)!r})")


def _sizes() -> list[int]:
    """Length of a msgpack value by its first byte, without nested values; 0: the length follows, or it is invalid."""
    sizes = [1] * 256
    sizes[0xA0:0xC0] = range(1, 33)
    sizes[0xC1] = 0
    sizes[0xC4:0xCA] = [0] * 6
    sizes[0xCA:0xD4] = [5, 9, 2, 3, 5, 9, 2, 3, 5, 9]
    sizes[0xD4:0xE0] = [0] * 8 + [3, 5, 3, 5]
    return sizes


_SIZES: Final = _sizes()
_LENGTHS: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""Bytes and strings: how many bytes their length takes."""


def check_elements(body: memoryview, most: int) -> None:
    """WireError if a msgpack message has more than so many values in it, at whatever depth. Nothing is decoded."""
    position, end = 0, len(body)
    sizes = _SIZES
    for _ in range(most):
        if position >= end:
            return
        kind = body[position]
        size = sizes[kind]
        if size:
            position += size
        elif (width := _LENGTHS.get(kind)) is not None:
            position += 1 + width + int.from_bytes(body[position + 1 : position + 1 + width], "big")
        else:
            raise WireError("a frame with a value of no known kind")
    if position < end:
        raise WireError(f"a frame with more than {most} values")


@cache
def _host_decoder() -> msgspec.msgpack.Decoder[HostMessage]:
    # Making one takes a millisecond, as long as all else in making a sandbox; it keeps nothing between messages.
    return msgspec.msgpack.Decoder(HostMessage)


@cache
def _worker_decoder() -> msgspec.msgpack.Decoder[WorkerMessage]:
    return msgspec.msgpack.Decoder(WorkerMessage)


def host_frames() -> FrameReader[HostMessage]:
    """A reader of the host's frames, for the worker."""
    return FrameReader(_host_decoder())


_CLIENT_LIMITS: Final = {b"start": 17 << 20, b"call": 17 << 20, b"answer": (16 << 20) + 4096, b"input": CHUNK_MAX + 64}


def client_frames() -> FrameReader[HostMessage]:
    """A reader of the frames of a client elsewhere, for a server: as hostile as a worker's."""
    return FrameReader(_host_decoder(), max(_CLIENT_LIMITS.values()), _CLIENT_LIMITS)


def worker_frames() -> FrameReader[WorkerMessage]:
    """A reader of the worker's frames, for the host."""
    return FrameReader(_worker_decoder(), max(_WORKER_LIMITS.values()), _WORKER_LIMITS)
