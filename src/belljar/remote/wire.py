"""The messages of a session between a client and a server: msgpack in the binary messages of a WebSocket.

A client says hello, and is welcomed or refused. From then on both sides count the messages that they send, all but
acknowledgements: after a lost connection each is told how many arrived, and sends the others again. Bytes travel in
streams. Stream 0 is the conversation with the sandbox (`abi/wire.py`); the others are descriptors of the client's that
went with one of its frames, and processes that it asked for.
"""

# No `from __future__ import annotations`: msgspec would have to compile every annotation once more.
from typing import Any, Final

import msgspec

from belljar.abi.wire import WireError, check_elements

PATH: Final = "/v1/remote"
"""The server's endpoint."""
VERSION: Final = 2
"""Raised with every change of a message's shape: no field is passed over, so that others could not read it."""
CHUNK: Final = 256 << 10
"""Bytes of a stream in one message."""
MESSAGE_MAX: Final = 1 << 20
"""Bytes of one message."""
WINDOW: Final = 1 << 20
"""Bytes of a stream that may be on their way."""
CONVERSATION_WINDOW: Final = 8 << 20
STREAMS_MAX: Final = 1024
"""Streams that a session has at a time."""
_ELEMENTS_MAX: Final = 20_000
_SMALL: Final = 4096
EXPORTS: Final = 100_000
"""File servers that one session may offer its sandbox; the first has the session's number times this."""


class _Message(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    pass


# The first message of a client.


class Create(_Message, tag="create"):
    """Make a sandbox. `limits` are those that differ from the usual ones."""

    env: dict[str, str]
    cwd: str
    user: str
    """The last two may be empty: as the server, or its image, has it."""
    hostname: str
    limits: dict[str, int | float]
    require: list[str]
    image: str
    """A name that the server knows."""
    timeout: float
    """Seconds that it goes on without a client."""
    name: str = ""
    """What its client calls it."""
    version: int = VERSION


class Attach(_Message, tag="attach"):
    """Go on with a sandbox that runs, or that the server has paused."""

    id: str
    version: int = VERSION


class Open(_Message, tag="open"):
    """Take over the branch that a fork made."""

    token: str
    version: int = VERSION


class Resume(_Message, tag="resume"):
    """Go on with a session after its connection was lost: so many of the server's messages were received."""

    token: str
    received: int
    version: int = VERSION


Hello = Create | Attach | Open | Resume

# The server's answer.


class Welcome(_Message, tag="welcome"):
    token: str
    """By which the session is resumed."""
    received: int
    """Messages of the client's that were received."""
    slot: int
    """The session's number in its sandbox: its requests have numbers from `slot << 32` on."""
    id: str
    tier: str
    image: str
    created: float
    js: str
    cwd: str
    """The directory that commands run in unless told."""
    limits: dict[str, int | float]
    keeps: float
    """Seconds that a session is kept without a connection."""
    account: list[int] = []
    """On the native tier: the user and group that its commands run as, and whether there is no other."""


class Refused(_Message, tag="refused"):
    """`kind` is one of `errors.py`."""

    kind: str
    text: str
    details: list[str] = []


Greeting = Welcome | Refused

# Both sides.


class Data(_Message, tag=1):
    """Bytes of a stream; `opens` are the numbers of new streams: descriptors that came with the first byte."""

    stream: int
    data: bytes
    opens: list[int] = []


class Grant(_Message, tag=2):
    """So many bytes of a stream were taken: as many again may follow."""

    stream: int
    count: int


class End(_Message, tag=3):
    """No more bytes of this stream."""

    stream: int


class Reset(_Message, tag=4):
    """Nothing of this stream is taken any more."""

    stream: int


class Request(_Message, tag=5):
    """A client's request beside the conversation; `server/remote_session.py` has them."""

    id: int
    name: str
    arguments: list[Any]


class Response(_Message, tag=6):
    id: int
    value: Any
    error: Refused | None = None


class Over(_Message, tag=7):
    """From a server: the session has ended, and why. From a client: it wants no more of it."""

    kind: str
    text: str


class Acknowledge(_Message, tag=8):
    """So many messages were received. Not counted itself."""

    count: int


Message = Data | Grant | End | Reset | Request | Response | Over | Acknowledge

_encoder: Final = msgspec.msgpack.Encoder()
_messages: Final = msgspec.msgpack.Decoder(Message)
_hellos: Final = msgspec.msgpack.Decoder(Hello)
_greetings: Final = msgspec.msgpack.Decoder(Greeting)


def encode(message: Message | Hello | Greeting) -> bytes:
    return _encoder.encode(message)


def decode(data: bytes) -> Message:
    """WireError for what is none."""
    message: Message = _decode(_messages, data)
    return message


def decode_hello(data: bytes) -> Hello:
    hello: Hello = _decode(_hellos, data)
    if hello.version != VERSION:
        raise WireError(
            f"version {hello.version} of the protocol is not spoken here, but version {VERSION}: "
            "client and server need the same version of belljar"
        )
    return hello


def decode_greeting(data: bytes) -> Greeting:
    greeting: Greeting = _decode(_greetings, data)
    return greeting


def _decode(decoder: Any, data: bytes) -> Any:
    if len(data) > MESSAGE_MAX:
        raise WireError(f"a message of {len(data)} bytes; the limit is {MESSAGE_MAX}")
    if len(data) > _SMALL:
        check_elements(memoryview(data), _ELEMENTS_MAX)
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(f"a message that does not decode: {error}") from None
